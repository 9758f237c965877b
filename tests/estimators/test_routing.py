"""Weights, folds and learners of every kind, with and without scikit-learn's metadata routing."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, compare
from anymix.densities import DomainClassifier
from anymix.estimators import Uniform
from tests.estimators.several_sources import classification, regression

X, Y, D = classification()
WEIGHT = np.random.default_rng(0).uniform(0.2, 2.0, len(X))
PIPE = make_pipeline(StandardScaler(), LogisticRegression())


def quick(estimator=PIPE, **settings):
    return DistributionWeightedClassifier(estimator, DomainClassifier(), random_state=0, **settings)


@pytest.mark.parametrize("learner", [None, LogisticRegression(), PIPE, "requests"])
def test_routed_and_unrouted_models_are_identical(learner):
    plain = PIPE if learner == "requests" else learner
    unrouted = quick(plain).fit(X, Y, sample_domain=D, sample_weight=WEIGHT)
    with sklearn.config_context(enable_metadata_routing=True):
        if learner == "requests":
            plain = make_pipeline(
                StandardScaler().set_fit_request(sample_weight=True),
                LogisticRegression().set_fit_request(sample_weight=True),
            )
        routed = quick(plain).fit(X, Y, sample_domain=D, sample_weight=WEIGHT)
    np.testing.assert_array_equal(routed.predict_proba(X), unrouted.predict_proba(X))
    if learner is PIPE:
        own = X[D == "a"], WEIGHT[D == "a"]
        scaler = routed.sources_[0].predictor[0]
        np.testing.assert_allclose(scaler.mean_, own[1] @ own[0] / own[1].sum())


def test_cross_validation_passes_the_source_on_when_routed():
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(quick(), X, Y, cv=folds, params={"sample_domain": D})
        averages = cross_val_score(Uniform(PIPE), X, Y, cv=folds, params={"sample_domain": D})
    assert min(scores.min(), averages.min()) > 0.5
    np.testing.assert_array_equal(
        cross_val_score(quick(), X, Y, cv=folds, params={"sample_domain": D}), scores
    )


def test_groups_of_a_routed_splitter_reach_fit():
    groups, site = np.arange(len(X)) // 3, {"sample_domain": D}
    with sklearn.config_context(enable_metadata_routing=True):
        params = {**site, "groups": groups}
        found = cross_validate(
            quick(), X, Y, cv=GroupKFold(2), params=params, return_estimator=True
        )
    assert all(model.tables_.groups is not None for model in found["estimator"])


def test_folds_may_be_those_of_a_splitter():
    folds = KFold(3, shuffle=True, random_state=1)
    model = quick(cv=folds).fit(X, Y, sample_domain=D)
    patients = np.arange(len(X)) // 4
    by_group = quick(cv=GroupKFold(3)).fit(X, Y, sample_domain=D, groups=patients)
    for fitted, splits in (
        (model, folds.split(X)),
        (by_group, GroupKFold(3).split(X, Y, patients)),
    ):
        for rest, held in splits:
            own = rest[D[rest] == "b"]
            expected = clone(PIPE).fit(X[own], Y[own]).predict_proba(X[held])
            np.testing.assert_allclose(fitted.tables_.predictions[1, held], expected, atol=2e-6)
    with pytest.raises(ValueError, match="cv puts a row into several test sets"):
        quick(cv=ShuffleSplit(5, random_state=0, test_size=0.5)).fit(X, Y, sample_domain=D)
    with pytest.raises(ValueError, match="cv must be a whole number of 2 or more, or a splitter"):
        quick(cv="5").fit(X, Y, sample_domain=D)


def test_stacks_without_a_last_estimator_are_learners():
    parts = [("line", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=2))]
    assert quick(StackingClassifier(parts)).fit(X, Y, sample_domain=D).score(X, Y) > 0.7
    XR, YR, DR = regression()
    stack = StackingRegressor([("line", LinearRegression()), ("ridge", Ridge())])
    model = DistributionWeightedRegressor(stack, DomainClassifier(), random_state=0)
    assert model.fit(XR, YR, sample_domain=DR).score(XR, YR) > 0.7


def test_a_search_over_the_parameters_of_an_automatic_learner_says_what_helps():
    search = GridSearchCV(DistributionWeightedClassifier(), {"estimator__C": [1.0, 10.0]}, cv=2)
    with pytest.raises(ValueError, match="estimator__C is a parameter of the estimator, which is"):
        search.fit(X, Y, sample_domain=D)


def test_a_network_is_pointed_to_its_source():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"network of PyTorch, Linear.*Source\.from_torch"):
        quick(torch.nn.Linear(2, 2)).fit(X, Y, sample_domain=D)


def test_rivals_need_predict_alone():
    class Zeros:
        def predict(self, X):
            return np.zeros(len(X))

    XR, YR, DR = regression()
    found = compare({"zeros": Zeros()}, XR, YR, DR)
    assert found.measure == "squared"
    np.testing.assert_allclose(found.loss[0, 0], (YR[DR == "north"] ** 2).mean())


def test_shapes_and_kinds_of_the_source():
    with pytest.raises(ValueError, match=r"sample_domain has the shape \(120, 2\)"):
        quick().fit(X, Y, sample_domain=np.column_stack([D, D]))
    days = np.where(D == "a", np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    assert len(quick().fit(X, Y, sample_domain=days).source_names_) == 2
