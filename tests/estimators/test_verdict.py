"""Verdicts: paired differences with intervals that hold, beside rivals that are what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anymix import Tables, compare
from anymix.core import get_loss
from anymix.estimators import Verdict, compare_tables, verdicts
from anymix.estimators._mixture_losses import Interval, mean_interval


def equal(n):
    return np.full(n, 1.0 / n)


def labels(seed=0, n=60, c=3, p=2):
    """Tables of a classification, and what a model says at their points."""
    rng = np.random.default_rng(seed)
    domain, y = np.repeat(np.arange(p), n), rng.integers(0, c, p * n)
    said = rng.dirichlet(np.ones(c), (p + 1, p * n)) + 0.5 * np.eye(c)[y]
    said /= said.sum(axis=2, keepdims=True)
    tables = Tables(np.zeros((p, p * n)), said[:p], classes=np.arange(c)).labelled(y, domain)
    return tables, said[p]


def numbers(seed=0, sizes=(40, 70)):
    """Tables of a regression, and what a model says at their points."""
    rng, p, m = np.random.default_rng(seed), len(sizes), sum(sizes)
    y, domain = rng.gamma(2.0, size=m), np.repeat(np.arange(p), sizes)
    said = y + rng.normal(0, [[1.0]] * p + [[0.3]], (p + 1, m))
    return Tables(np.zeros((p, m)), said[:p]).labelled(y, domain), said[p]


def test_losses_and_differences_are_those_of_the_rows():
    tables, said = labels()
    wrong, loss = verdicts(tables, said, "cross_entropy")
    y, d, m = tables.targets, tables.sample_domain, np.arange(tables.n_points)
    own, mean = tables.predictions[d, m], tables.predictions.mean(axis=0)
    for found, judge in (
        (wrong, lambda h: h.argmax(axis=1) != y),
        (loss, lambda h: -np.log(h[m, y])),
    ):
        ours = np.array([judge(said)[d == k].mean() for k in (0, 1)])
        np.testing.assert_allclose(found.loss, [*ours, ours.mean()])
        rivals = {rival.name: rival for rival in found.rivals}
        for name, h in (("own", own), ("average", mean)):
            theirs = np.array([judge(h)[d == k].mean() for k in (0, 1)])
            np.testing.assert_allclose(rivals[name].loss, [*theirs, theirs.mean()])
            np.testing.assert_allclose(
                rivals[name].difference, found.loss - rivals[name].loss, atol=1e-12
            )
    assert (wrong.measure, loss.measure) == ("error rate", "cross-entropy")
    assert wrong.rows.tolist() == [60, 60]


def test_intervals_of_numbers_are_student_s_shared_by_the_sources():
    tables, said = numbers()
    (found,) = verdicts(tables, said, "squared", confidence=0.9)
    y, d = tables.targets, tables.sample_domain
    own = tables.predictions[d, np.arange(y.size)]
    gap = (said - y) ** 2 - (own - y) ** 2
    rival = next(one for one in found.rivals if one.name == "own")
    for k in (0, 1):
        one = gap[d == k]
        low, high = stats.t.interval(1 - 0.1 / 2, one.size - 1, one.mean(), stats.sem(one))
        assert (rival.lower[k], rival.upper[k]) == pytest.approx((low, high))
    assert (found.lower >= 0).all()


@pytest.mark.parametrize(("wrong", "n"), [(0, 20), (3, 50), (20, 20)])
def test_intervals_of_shares_are_wilson_s(wrong, n):
    values = np.repeat([1.0, 0.0], [wrong, n - wrong])
    expected = stats.binomtest(wrong, n).proportion_ci(0.95, method="wilson")
    found = mean_interval(values, equal(n), 0.05, "share")
    assert found == pytest.approx((wrong / n, expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("flips", [0.0, 0.1, 0.4])
def test_intervals_of_paired_shares_cover(flips):
    """Rows of few samples, most of them ties: the plain normal interval would fail here."""
    rng, n, held = np.random.default_rng(0), 40, 0
    for _ in range(400):
        gaps = rng.choice([-1.0, 0.0, 1.0], n, p=[flips, 1 - 1.5 * flips, flips / 2])
        _, low, high = mean_interval(gaps, equal(n), 0.05, "difference")
        held += low <= -flips / 2 <= high
    assert held >= 400 * 0.93


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5),
    st.floats(0.001, 0.5),
)
def test_mixtures_of_shares_stay_shares(counts, alpha):
    found = []
    for wrong, right in counts:
        values = np.repeat([1.0, 0.0], [wrong, right])
        found.append(mean_interval(values, equal(values.size), alpha, "share"))
    mixture = np.random.default_rng(0).dirichlet(np.ones(len(counts)))
    mean, low, high = Interval(*map(np.array, zip(*found, strict=True))).mixed(mixture)
    assert -1e-12 <= low <= mean <= high <= 1 + 1e-12


def test_a_table_of_wrong_labels_has_intervals_inside_the_unit_interval():
    tables, said = labels(n=8)
    methods = {"right": np.eye(3)[tables.targets], "anymix": said}
    found = wrong_labels_of(tables, methods)
    assert (found.lower >= 0).all()
    assert (found.upper <= 1).all()
    right = found.methods.index("right")
    assert (found.loss[right] == 0).all()
    # Nothing wrong among eight rows does not show that nothing ever is.
    assert (found.upper[right] > 0.1).all()


def wrong_labels_of(tables, said):
    class Says:
        """A model that has answered already."""

        def __init__(self, h):
            self.h = h

        def predict(self, X):
            return self.h.argmax(axis=1)

    models = {name: Says(h) for name, h in said.items()}
    rows = np.zeros((tables.n_points, 1))
    return compare(models, rows, tables.targets, tables.sample_domain, measure="error_rate")


@pytest.mark.parametrize(
    ("loss", "best"), [("squared", "mean"), ("absolute", "median"), ("poisson", "mean")]
)
def test_the_constant_is_the_best_there_is(loss, best):
    rng = np.random.default_rng(3)
    y, d = rng.gamma(2.0, size=201), np.zeros(201, dtype=int)
    tables = Tables(np.zeros((1, 201)), y[None] + 0.1).labelled(y, d)
    (found,) = verdicts(tables, y + 0.1, loss)
    rival = next(one for one in found.rivals if one.name == "constant")
    answer = np.full(y.size, getattr(np, best)(y))
    assert rival.loss[0] == pytest.approx(get_loss(loss).value(answer, y).mean(), rel=1e-6)


def test_a_rare_label_is_not_flattered_by_a_coin():
    """Of 5 per cent ill, who calls nobody ill is wrong at 5 per cent: that is to be beaten."""
    y, d = np.repeat([0, 1], [190, 10]), np.tile([0, 1], 100)
    coin = np.full((2, 200, 2), 0.5)
    tables = Tables(np.zeros((2, 200)), coin, classes=np.arange(2)).labelled(y, d)
    wrong, nats = verdicts(tables, coin[0], "cross_entropy")
    guess = {found: found.rivals[-1] for found in (wrong, nats)}
    assert guess[wrong].name == "constant"
    assert guess[wrong].loss[-1] == pytest.approx(0.05)
    entropy = -(0.05 * np.log(0.05) + 0.95 * np.log(0.95))
    assert guess[nats].loss[-1] == pytest.approx(entropy)


@pytest.mark.parametrize("seed", [0, 1])
def test_what_sites_tell_is_judged_alike_but_for_the_guess(seed):
    """Sites tell probabilities with that of the label first: how often each occurs is not known."""
    tables, said = labels(seed)
    m, y = np.arange(tables.n_points), np.asarray(tables.targets)

    def label_first(h):
        return np.take_along_axis(h, (y[:, None] + np.arange(3)) % 3, axis=1)

    first = np.stack([label_first(h) for h in tables.predictions])
    told = Tables(tables.log_masses, first, classes=tables.classes, at_label=True)
    told = told.labelled(np.zeros(m.size, dtype=int), tables.sample_domain)
    for one, other in zip(
        verdicts(tables, said, "cross_entropy"),
        verdicts(told, label_first(said), "cross_entropy"),
        strict=True,
    ):
        np.testing.assert_allclose(one.loss, other.loss)
        for a, b in zip(one.rivals[:2], other.rivals[:2], strict=True):
            np.testing.assert_allclose(a.difference, b.difference, atol=1e-12)
        assert other.rivals[2].name == "chance"


def test_errors_alone_have_no_guess():
    tables, said = numbers()
    y = np.asarray(tables.targets)
    told = Tables(tables.log_masses, tables.predictions - y, at_label=True)
    told = told.labelled(np.zeros(y.size), tables.sample_domain)
    (found,) = verdicts(told, said - y, "squared")
    assert [rival.name for rival in found.rivals] == ["average", "own"]


def test_weights_count_rows():
    tables, said = numbers()
    twice = np.concatenate([np.arange(tables.n_points), np.flatnonzero(tables.sample_domain == 1)])
    again = tables.taken(twice)
    weighed = tables.labelled(
        tables.targets, tables.sample_domain, np.where(tables.sample_domain == 1, 2.0, 1.0)
    )
    (a,), (b,) = verdicts(again, said[twice], "squared"), verdicts(weighed, said, "squared")
    np.testing.assert_allclose(a.loss, b.loss)


def test_a_verdict_is_written_and_read():
    tables, said = labels()
    for found in verdicts(tables, said, "cross_entropy"):
        again = Verdict.from_dict(found.to_dict())
        assert again.to_dict() == found.to_dict()


def test_one_row_has_no_interval():
    tables, said = numbers(sizes=(1, 30))
    (found,) = verdicts(tables, said, "squared")
    assert found.upper[0] == np.inf
    assert found.to_dict()["upper"][0] is None


def test_comparisons_carry_no_verdict_of_the_rows_that_taught():
    tables, _ = labels()
    found = compare_tables(tables, {"a": 0}, ["a", "b"], "cross_entropy")
    assert found.verdicts == ()
