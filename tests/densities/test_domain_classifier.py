"""The domain classifier: responsibilities, corrected for source sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from anymix.densities.domain_classifier import DomainClassifier


def three_gaussians(rng, sizes, d=2):
    centres = 1.5 * np.eye(3, d)
    X = np.concatenate([rng.normal(size=(n, d)) + c for n, c in zip(sizes, centres, strict=True)])
    return X, np.repeat(np.arange(3), sizes)


def test_check_estimator():
    check_estimator(DomainClassifier(), on_skip=None)


def test_true_responsibilities_are_found_despite_unequal_sizes():
    """Gaussians of one covariance have linear log-ratios: the closed form is the witness."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 40_000), rng.normal(1.5, 1, 4_000)])[:, None]
    classifier = DomainClassifier().fit(X, np.repeat([0, 1], [40_000, 4_000]))
    points = np.linspace(-3, 4, 50)
    log_densities = np.stack([norm.logpdf(points, 0), norm.logpdf(points, 1.5)])
    true = log_densities - logsumexp(log_densities, axis=0)
    np.testing.assert_allclose(
        np.exp(classifier.log_responsibilities(points[:, None])), np.exp(true), atol=0.02
    )


def test_agrees_with_a_direct_minimisation():
    """The same penalised likelihood, minimised by scipy from the formula of the docstring."""
    rng = np.random.default_rng(1)
    X, domain = three_gaussians(rng, (30, 20, 10))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    one_hot = np.eye(3)[domain]

    def loss(theta):
        W, b = theta[:6].reshape(3, 2), theta[6:]
        return -np.sum(one_hot * log_softmax(Z @ W.T + b, axis=1)) + 0.5 / 0.7 * np.sum(W**2)

    theta = minimize(loss, np.zeros(9), tol=1e-10, options={"gtol": 1e-7}).x
    scores = Z @ theta[:6].reshape(3, 2).T + theta[6:] - np.log([30, 20, 10])
    log_r = DomainClassifier(C=0.7, tol=1e-8).fit(X, domain).log_responsibilities(X)
    np.testing.assert_allclose(log_r, log_softmax(scores, axis=1).T, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 4), d=st.integers(1, 3))
def test_columns_are_distributions_and_labels_are_only_names(seed, p, d):
    rng = np.random.default_rng(seed)
    X, domain = rng.normal(size=(12 * p, d)), np.tile(np.arange(p), 12)
    log_r = DomainClassifier().fit(X, domain).log_responsibilities(X)
    assert log_r.shape == (p, 12 * p)
    np.testing.assert_allclose(np.exp(log_r).sum(axis=0), 1)
    names = np.array(["a", "b", "c", "d"])[domain]
    named = DomainClassifier().fit(X, names)
    assert list(named.domains_) == ["a", "b", "c", "d"][:p]
    np.testing.assert_array_equal(named.log_responsibilities(X), log_r)


def test_weights_stand_for_copies_and_the_size_is_divided_out():
    rng = np.random.default_rng(2)
    X, domain = three_gaussians(rng, (40, 40, 40))
    copies = np.where(domain == 0, 3, 1)
    weighted = DomainClassifier(tol=1e-8).fit(X, domain, sample_weight=copies.astype(float))
    assert weighted.log_prior_ == pytest.approx(np.log([0.6, 0.2, 0.2]))
    repeated = DomainClassifier(tol=1e-8).fit(np.repeat(X, copies, axis=0), domain.repeat(copies))
    np.testing.assert_allclose(
        weighted.log_responsibilities(X), repeated.log_responsibilities(X), atol=1e-4
    )


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_counts(container):
    rng = np.random.default_rng(3)
    domain = np.repeat([0, 1, 2], 50)
    rates = np.full((3, 30), 0.2) + np.repeat(np.eye(3), 10, axis=1)
    counts = rng.poisson(rates[domain]).astype(float)
    classifier = DomainClassifier().fit(container(counts), domain)
    log_r = classifier.log_responsibilities(container(counts))
    assert (log_r.argmax(axis=0) == domain).mean() > 0.95
    np.testing.assert_allclose(log_r, classifier.log_responsibilities(counts))


def test_a_classifier_of_sparse_rows_comes_back():
    rng = np.random.default_rng(4)
    counts, domain = (
        sparse.csr_array(rng.poisson(0.5, size=(60, 5)).astype(float)),
        np.arange(60) % 3,
    )
    classifier = DomainClassifier().fit(counts, domain)
    arrays = classifier.to_arrays()
    assert not {"mean", "scale"} & set(arrays)
    again = DomainClassifier.from_arrays(arrays, 5)
    np.testing.assert_array_equal(
        again.log_responsibilities(counts), classifier.log_responsibilities(counts)
    )


def test_far_points_stay_finite():
    X = np.array([[0.0], [0.1], [1.0], [1.1]])
    classifier = DomainClassifier(C=100.0).fit(X, [0, 0, 1, 1])
    log_r = classifier.log_responsibilities([[1e5]])
    assert np.isfinite(log_r).all()
    assert log_r[0, 0] < -1e4


def test_one_source():
    classifier = DomainClassifier().fit([[1.0], [2.0]], ["only", "only"])
    np.testing.assert_array_equal(classifier.log_responsibilities([[5.0]]), [[0.0]])


def test_constant_feature():
    X = np.column_stack([np.arange(6.0), np.ones(6)])
    log_r = DomainClassifier().fit(X, [0, 0, 0, 1, 1, 1]).log_responsibilities(X)
    assert np.isfinite(log_r).all()


def test_bad_input_speaks():
    X = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match="give the source of each row"):
        DomainClassifier().fit(X, None)
    with pytest.raises(ValueError, match=r"Source .* has no weight"):
        DomainClassifier().fit(X, ["a", "a", "b", "b"], sample_weight=[1, 1, 0, 0])
    with pytest.raises(ValueError, match="NaN"):
        DomainClassifier().fit([[np.nan], [1.0]], [0, 1])


def test_clone_keeps_parameters():
    expected = {"estimator": None, "C": 3.0, "max_iter": 1000, "tol": 1e-5}
    assert clone(DomainClassifier(C=3.0)).get_params() == expected
