import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.made_up import made_up_features
from experiments.paper_numbers import columns
from experiments.recognition import Method, Setting, ask, fit, methods, records, take


def setting(table="Table 4", domains=("amazon", "webcam", "dslr"), sizes=(3, 2, 1), **parts):
    return Setting("s", table, domains, sizes, parts.get("predictor"), parts.get("density"))


@pytest.mark.parametrize(
    ("table", "domains"),
    [("Table 3", ("svhn", "mnist", "usps")), ("Table 4", ("amazon", "webcam", "dslr"))],
)
def test_the_unions_are_the_columns_of_the_paper(table, domains):
    unions = setting(table, domains).unions
    assert [*unions, "mean"] == columns(table)
    assert list(unions.values())[:3] == [[0], [1], [2]]
    letters = {name[0]: k for k, name in enumerate(domains)}
    for column, group in list(unions.items())[3:]:
        assert group == sorted(letters[letter] for letter in column)


@given(st.integers(0, 10_000))
def test_a_union_is_the_accuracy_on_its_rows_pooled(seed):
    rng = np.random.default_rng(seed)
    domain = np.repeat([0, 1, 2], rng.integers(1, 20, 3))
    y = rng.integers(0, 4, len(domain))
    proba = rng.dirichlet(np.ones(4), len(domain))
    test = made_up_features()._replace(X=proba, y=y, domain=domain)
    case = setting(sizes=tuple(np.bincount(domain)))
    cells = {r.target: r for r in records(case, [Method("DW", "clean", proba)], test, 3)}
    for column, group in case.unions.items():
        inside = np.isin(domain, group)
        brute = 100 * np.mean(proba.argmax(axis=1)[inside] == y[inside])
        assert cells[column].value == pytest.approx(brute)
    assert cells["mean"].value == pytest.approx(np.mean([cells[c].value for c in case.unions]))
    assert (cells["mean"].paper, cells["aw"].paper_sd, cells["mean"].seed) == (84.7, 0.4, 3)


class Known:
    """A predictor, and a density, that is known to be right at home only."""

    def __init__(self, kind="predictor"):
        self.kind = kind

    def get_params(self, deep=True):
        return {"kind": self.kind}

    def set_params(self, **given):
        return self

    def fit(self, X, y=None):
        self.home_ = X[0, 2].round()
        self.classes_ = np.arange(4)
        return self

    def score_samples(self, X):
        return -((X[:, 2] - self.home_) ** 2)

    def predict_proba(self, X):
        there = X[:, 2].round() == self.home_
        answer = np.where(there, X[:, 0], (X[:, 0] + 1) % 4).astype(int)
        return np.full((len(X), 4), 0.01) + 0.96 * np.eye(4)[answer]


def test_every_dw_is_perfect_where_each_source_is_perfect_at_home():
    rows = made_up_features()
    X = np.column_stack([rows.y, rows.y, 10 * rows.domain]).astype(float)
    rows = rows._replace(X=X)
    half = np.arange(len(X)) % 8 < 4
    case = setting(predictor=Known(), density=Known("density"))
    train, test = take(rows, half), take(rows, ~half)
    fitted = fit(case, train)
    held, found = (ask(fitted, part, np.arange(4)) for part in (train, test))
    accuracy = {
        (m.name, m.protocol): np.mean(m.proba.argmax(axis=1) == test.y)
        for m in methods(case, fitted, held, found)
    }
    assert accuracy.pop(("DW, domain classifier", "beyond")) == 1
    assert all(v == 1 for (name, _), v in accuracy.items() if name.startswith("DW"))
    assert [accuracy[name, "as published"] for name in "awd"] == pytest.approx([1 / 3] * 3)
