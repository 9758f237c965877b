"""Tables: each source is touched once a row, in any chunks; sites can join theirs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.metrics import brier_score_loss, log_loss

from anymix import Source, Tables, evaluate
from anymix.core import solve

RNG = np.random.default_rng(0)


class Counted:
    """A source's predictor and density that count the rows they are asked about."""

    def __init__(self):
        self.predicted, self.scored = 0, 0

    def predict(self, X):
        self.predicted += X.shape[0]
        return X[:, 0]

    def score_samples(self, X):
        self.scored += X.shape[0]
        return -np.abs(X[:, 0])


def table(n, p=2, c=None, seed=0):
    """Random tables of p sources that know targets and domains."""
    rng = np.random.default_rng(seed)
    h = rng.random((p, n)) if c is None else rng.dirichlet(np.ones(c), (p, n))
    classes = None if c is None else np.arange(c) * 10
    y = rng.random(n) if c is None else classes[rng.integers(c, size=n)]
    known = Tables(rng.normal(size=(p, n)), h, classes=classes)
    return known.labelled(y, np.arange(n) % p, rng.random(n) + 0.1)


@pytest.mark.parametrize("chunk_rows", [1, 7, 50, 1000])
def test_each_source_is_asked_once_a_row(chunk_rows):
    parts = [Counted(), Counted()]
    sources = [Source(str(k), part, part) for k, part in enumerate(parts)]
    evaluate(sources, RNG.normal(size=(50, 2)), chunk_rows=chunk_rows)
    assert [(part.predicted, part.scored) for part in parts] == [(50, 50)] * 2


@given(n=st.integers(1, 30), chunk_rows=st.integers(1, 40))
def test_chunks_change_nothing(n, chunk_rows):
    X = np.random.default_rng(n).normal(size=(n, 2))
    sources = [Source("s", lambda X: X[:, 0] ** 2, lambda X: -(X**2).sum(axis=1))]
    whole, cut = evaluate(sources, X), evaluate(sources, X, chunk_rows=chunk_rows)
    assert np.array_equal(whole.predictions, cut.predictions)
    assert np.array_equal(whole.log_masses, cut.log_masses)


def test_rows_may_be_frames_sparse_or_documents():
    X = RNG.normal(size=(5, 2))
    frame = pd.DataFrame(X, columns=["u", "v"])
    of_frame = Source("s", lambda X: X["u"], lambda X: X["v"])
    of_sparse = Source(
        "s", lambda X: X[:, [0]].toarray()[:, 0], lambda X: X[:, [1]].toarray()[:, 0]
    )
    of_text = Source("s", lambda docs: [len(d) for d in docs], lambda docs: [-len(d) for d in docs])
    for chunk_rows in (2, 100):
        first = evaluate([of_frame], frame, chunk_rows=chunk_rows)
        other = evaluate([of_sparse], sparse.csr_array(X), chunk_rows=chunk_rows)
        assert np.array_equal(first.predictions, other.predictions)
        assert np.array_equal(first.log_masses, other.log_masses)
        text = evaluate([of_text], ["a", "bc", "def"], chunk_rows=chunk_rows)
        assert text.predictions.tolist() == [[1.0, 2.0, 3.0]]


def test_no_sources_and_wrong_joins_speak():
    with pytest.raises(ValueError, match="no sources"):
        evaluate([], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="no tables"):
        Tables.concatenate([])
    with pytest.raises(ValueError, match="same sources and classes"):
        Tables.concatenate([table(4, p=2), table(4, p=3)])
    with pytest.raises(ValueError, match="same sources and classes"):
        Tables.concatenate([table(4, c=2), table(4, c=3)])
    bare = Tables(np.zeros((2, 4)), np.zeros((2, 4)))
    with pytest.raises(ValueError, match="have no targets"):
        Tables.concatenate([table(4), bare])
    with pytest.raises(ValueError, match="targets and sample_domain"):
        bare.problem("squared", 1e-3)
    with pytest.raises(ValueError, match="need targets"):
        bare.point_losses("squared")
    with pytest.raises(ValueError, match="shape"):
        bare.labelled([0.0], [0])


def test_labels_that_no_class_has_speak():
    with pytest.raises(ValueError, match="label 'c', which is not one of the classes"):
        Tables(np.zeros((1, 1)), np.ones((1, 1, 2)), classes=np.array(["a", "b"])).labelled(
            ["c"], [0]
        )


@pytest.mark.parametrize("c", [None, 3])
def test_sites_can_send_their_tables_one_by_one(c):
    loss = "squared" if c is None else "cross_entropy"
    parts = [table(20, c=c, seed=seed) for seed in range(3)]
    joined = Tables.concatenate(parts)
    assert joined.n_points == 60
    assert np.array_equal(joined.predictions[:, 20:40], parts[1].predictions)
    z = np.array([0.3, 0.7])
    # L_k is a weighted mean over all of k's points, so the parts add up with their weights.
    weights = np.stack(
        [np.bincount(t.sample_domain, weights=t.sample_weight, minlength=2) for t in parts]
    )
    L = np.stack([t.problem(loss, 1e-3).source_losses(z) for t in parts])
    expected = (weights * L).sum(axis=0) / weights.sum(axis=0)
    assert np.allclose(joined.problem(loss, 1e-3).source_losses(z), expected)


def test_point_losses_agree_with_scikit_learn():
    known = table(40, c=3)
    y = known.classes[known.targets]
    for k in range(2):
        proba = known.predictions[k]
        mean = known.point_losses("cross_entropy")[k].mean()
        assert np.isclose(mean, log_loss(y, proba, labels=known.classes))
        mean = known.point_losses("brier")[k].mean()
        assert np.isclose(
            mean, brier_score_loss(y, proba, labels=known.classes, scale_by_half=False)
        )
    numbers = table(10)
    squared = (numbers.predictions - numbers.targets) ** 2
    assert np.allclose(numbers.point_losses("squared"), squared)


def test_responsibilities_sum_to_one_and_the_problem_has_a_solution():
    known = table(30)
    assert np.allclose(logsumexp(known.log_responsibilities(), axis=0), 0)
    assert solve(known.problem("squared", 1e-3)).status == "stationary"


def test_the_normalised_rule_weighs_by_the_joint_density():
    known, z = table(30, c=3), np.array([0.4, 0.6])
    problem = known.problem("cross_entropy", 1e-9, rule="normalised")
    h = known.predictions[:, np.arange(30), known.targets]
    D = np.exp(known.log_masses) * h
    assert np.allclose(problem.combined(z), (z @ (D * h)) / (z @ D), rtol=1e-6)
    with pytest.raises(ValueError, match="cross_entropy"):
        known.problem("brier", 1e-3, rule="normalised")
