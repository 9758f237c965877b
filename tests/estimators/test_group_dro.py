"""Group DRO: the worst source sets the fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_validate
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from anymix.estimators.reweighting import GroupDRO, row_losses


def two_groups(rng, n=(90, 10)):
    """A large group with slope 1 and a small one with slope -1."""
    X = rng.normal(size=(sum(n), 1))
    domain = np.repeat([0, 1], n)
    y = np.where(domain == 0, 1, -1) * X[:, 0] + 0.1 * rng.normal(size=sum(n))
    return X, y, domain


def group_losses(model, X, y, domain):
    losses = row_losses(model, X, y)
    return np.array([losses[domain == g].mean() for g in np.unique(domain)])


def test_check_estimator_without_probabilities():
    check_estimator(GroupDRO(LinearSVC(), n_rounds=3), on_skip=None)


@pytest.mark.parametrize("seed", range(3))
def test_minimax_value_against_a_direct_minimisation(seed):
    """min over (slope, intercept) of the worst group's squared error, by scipy in epigraph form."""
    X, y, domain = two_groups(np.random.default_rng(seed))

    def losses(theta):
        squares = (theta[0] * X[:, 0] + theta[1] - y) ** 2
        return np.array([squares[domain == g].mean() for g in (0, 1)])

    constraint = {"type": "ineq", "fun": lambda t: t[2] - losses(t)}
    start = np.r_[0.0, 0.0, losses([0.0, 0.0]).max()]
    best = minimize(lambda t: t[2], start, constraints=[constraint], options={"ftol": 1e-12}).fun
    model = GroupDRO(LinearRegression(), n_rounds=50).fit(X, y, sample_domain=domain)
    assert best <= model.group_losses_.max() + 1e-6
    assert model.group_losses_.max() <= 1.02 * best
    plain = group_losses(LinearRegression().fit(X, y), X, y, domain)
    assert model.group_losses_.max() < 0.6 * plain.max()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 4))
def test_never_worse_than_the_balanced_fit(seed, p):
    rng = np.random.default_rng(seed)
    X, domain = rng.normal(size=(30 * p, 2)), np.repeat(np.arange(p), 30)
    y = np.sum(X * rng.normal(size=(p, 2))[domain], axis=1) + rng.normal(size=30 * p)
    model = GroupDRO(Ridge(), n_rounds=5).fit(X, y, sample_domain=domain)
    balanced = group_losses(Ridge().fit(X, y), X, y, domain)
    assert model.group_losses_.max() <= balanced.max() + 1e-9
    assert model.group_weights_.sum() == pytest.approx(1)
    np.testing.assert_allclose(model.group_losses_, group_losses(model.estimator_, X, y, domain))


def test_a_classifier_with_string_labels_and_named_groups():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    domain = np.where(np.arange(300) < 270, "big", "small")
    y = np.where(np.where(domain == "big", X[:, 0], X[:, 1]) > 0, "yes", "no")
    model = GroupDRO(LogisticRegression()).fit(X, y, sample_domain=domain)
    assert list(model.groups_) == ["big", "small"]
    small = domain == "small"
    plain = LogisticRegression().fit(X, y)
    before, after = (
        log_loss(y[small], m.predict_proba(X[small]), labels=["no", "yes"]) for m in (plain, model)
    )
    assert after < before
    assert after == pytest.approx(model.group_losses_[1])


def test_one_group_is_a_plain_fit():
    X, y, _ = two_groups(np.random.default_rng(4))
    model = GroupDRO(Ridge()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), Ridge().fit(X, y).predict(X))


def test_misclassification_where_there_are_no_probabilities():
    X, y = np.array([[-1.0], [1.0], [2.0]]), np.array([0, 1, 0])
    model = LinearSVC().fit(X[:2], y[:2])
    np.testing.assert_array_equal(row_losses(model, X, y), [0, 0, 1])


def test_targets_in_a_column():
    model = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [5.0]])
    np.testing.assert_allclose(row_losses(model, X, y), (model.predict(X) - y[:, 0]) ** 2)


def test_sample_domain_is_routed():
    X, y, domain = two_groups(np.random.default_rng(6))
    with config_context(enable_metadata_routing=True):
        model = GroupDRO(Ridge(), n_rounds=3).set_fit_request(sample_domain=True)
        out = cross_validate(
            model,
            X,
            y,
            cv=KFold(3, shuffle=True, random_state=0),
            params={"sample_domain": domain},
            return_estimator=True,
        )
    assert [len(fitted.groups_) for fitted in out["estimator"]] == [2, 2, 2]


def test_bad_input_speaks():
    X, y, domain = two_groups(np.random.default_rng(5))
    with pytest.raises(ValueError, match="n_rounds must be a whole number of 1 or more"):
        GroupDRO(Ridge(), n_rounds=0).fit(X, y, sample_domain=domain)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GroupDRO(Ridge()).fit(X, y, sample_domain=domain[:5])
