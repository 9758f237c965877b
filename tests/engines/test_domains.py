"""The classifier of domains from sums over parts is scikit-learn's on the rows of all."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from anymix.densities import DomainClassifier
from anymix.engines import FeaturePart, fit_domain_classifier
from anymix.engines.domains import MOST_COEFFICIENTS, domain_likelihood


def rows(p, d=3, n=90, seed=0):
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(p), n + 30 * np.arange(p))
    X = rng.normal(size=(domain.size, d)) * [5.0, 1.0, 0.1, *np.ones(d - 3)][:d]
    X[:, 0] += 100.0 + 2.0 * domain
    X[:, 1] += np.cos(domain)
    return X, domain


def in_parts(X, domain, p, cuts, weight=None):
    pieces = np.split(np.arange(len(X)), cuts)
    w = [None if weight is None else weight[i] for i in pieces]
    return [FeaturePart(X[i], domain[i], p, one) for i, one in zip(pieces, w, strict=True)]


@pytest.mark.parametrize("C", [1.0, 0.01])
@pytest.mark.parametrize("p", [2, 4])
@pytest.mark.parametrize("weighed", [False, True])
def test_it_is_that_of_all_rows(p, C, weighed):
    X, domain = rows(p)
    X = np.column_stack([X, np.full(len(X), 7.0)])
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighed else None
    # Two parts that hold one domain each, and one that holds the rest.
    found = fit_domain_classifier(in_parts(X, domain, p, [50, 90], weight), C=C)
    scaled = StandardScaler().fit(X, sample_weight=weight)
    due = LogisticRegression(C=C, tol=1e-10, max_iter=10_000)
    due.fit(scaled.transform(X), domain, sample_weight=weight)
    np.testing.assert_allclose(found.model_[0].mean_, scaled.mean_)
    np.testing.assert_allclose(found.model_[0].scale_, scaled.scale_)
    np.testing.assert_allclose(found.model_[1].coef_, due.coef_, atol=1e-6)
    np.testing.assert_allclose(found.model_[1].intercept_, due.intercept_, atol=1e-6)
    pooled = DomainClassifier(C=C, tol=1e-10, max_iter=10_000).fit(X, domain, weight)
    np.testing.assert_allclose(
        found.log_responsibilities(X), pooled.log_responsibilities(X), atol=1e-5
    )


def test_many_coefficients_are_found_by_gradients():
    p, d = 5, 130
    assert p * (d + 1) > MOST_COEFFICIENTS
    X, domain = rows(p, d)
    found = fit_domain_classifier(in_parts(X, domain, p, [100]), C=0.01)
    due = LogisticRegression(C=0.01, tol=1e-8, max_iter=10_000)
    due.fit(StandardScaler().fit_transform(X), domain)
    np.testing.assert_allclose(found.model_[1].coef_, due.coef_, atol=1e-6)


@pytest.mark.parametrize("r", [1, 3])
def test_derivatives_are_those_of_the_value(r):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(20, 2)), rng.uniform(0.5, 2.0, 20)
    hot, theta = np.eye(max(r, 2))[rng.integers(max(r, 2), size=20)], rng.normal(size=(r, 3))
    found, steps = domain_likelihood(X, hot, w, theta), 1e-5 * np.eye(theta.size)

    def at(step, name):
        return domain_likelihood(X, hot, w, theta + step.reshape(theta.shape))[name]

    for name, slope in (("value", "gradient"), ("gradient", "hessian")):
        due = [(at(step, name) - at(-step, name)) / 2e-5 for step in steps]
        np.testing.assert_allclose(found[slope], due, rtol=1e-6, atol=1e-6)


def test_it_routes_as_any_classifier_of_domains_does():
    X, domain = rows(3)
    found = fit_domain_classifier(in_parts(X, domain, 3, [60, 200]))
    again = DomainClassifier.from_arrays(found.to_arrays(), X.shape[1])
    np.testing.assert_array_equal(again.log_responsibilities(X), found.log_responsibilities(X))
    shares = np.exp(found.log_responsibilities(X)).mean(axis=1)
    assert shares.sum() == pytest.approx(1.0)


def test_what_cannot_be_told_apart_is_refused():
    X, domain = rows(2)
    with pytest.raises(ValueError, match="source 2 has no row"):
        fit_domain_classifier([FeaturePart(X, domain, 3)])
    with pytest.raises(ValueError, match="one source alone"):
        fit_domain_classifier([FeaturePart(X, np.zeros(len(X), dtype=int), 1)])
    with pytest.raises(ValueError, match="holds words"):
        fit_domain_classifier([FeaturePart([["a"], ["b"]], [0, 1], 2)])
    with pytest.raises(ValueError, match="finite numbers"):
        fit_domain_classifier([FeaturePart([[np.nan], [1.0]], [0, 1], 2)])
    with pytest.raises(ValueError, match="C must be positive"):
        fit_domain_classifier([FeaturePart(X, domain, 2)], C=0.0)
    with pytest.raises(ValueError, match="is not one for rows"):
        FeaturePart(X, domain, 2).answer("count", {}, {})
