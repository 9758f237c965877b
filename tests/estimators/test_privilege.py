"""The star stays with a model that is inside of another."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix import compare
from anymix.estimators import GroupDRO, Joint, LambdaComb, Uniform
from anymix.estimators._mixture_losses import is_privileged
from tests.estimators.several_sources import regression

STAR = [
    lambda inner: make_pipeline(StandardScaler(), inner),
    lambda inner: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), inner)),
    lambda inner: TransformedTargetRegressor(inner),
    lambda inner: VotingRegressor([("one", Ridge()), ("two", inner)]),
    lambda inner: GridSearchCV(make_pipeline(StandardScaler(), inner), {}, cv=2),
]


@pytest.mark.parametrize("inside", STAR)
def test_what_holds_a_privileged_model_is_marked(inside):
    X, y, domain = regression()
    models = {"it": inside(Joint(Ridge())).fit(X, y), "other": inside(Ridge()).fit(X, y)}
    models["frozen"] = FrozenEstimator(models["it"])
    table = compare(models, X, y, domain)
    assert table.privileged == (True, False, True)
    assert "it*" in table.table()


def test_of_a_search_the_best_counts():
    X = np.random.default_rng(0).normal(size=(60, 1))
    y = X[:, 0]
    options = [{"last": [Joint(Ridge()), Ridge(1e9)]}, {"last": [Joint(Ridge(1e9)), Ridge()]}]
    for grid, starred in zip(options, (True, False), strict=True):
        pipe = make_pipeline(StandardScaler(), Ridge())
        pipe.steps[-1] = ("last", pipe.steps[-1][1])
        assert is_privileged(GridSearchCV(pipe, grid, cv=2).fit(X, y)) is starred


def test_whoever_states_it_is_taken_at_their_word():
    assert is_privileged(GroupDRO(Ridge()))
    # Each Joint sees the rows of one domain alone.
    assert not is_privileged(Uniform(Joint(Ridge())))
    assert not is_privileged(object())


def test_a_pipeline_has_a_version_for_each_mixture():
    X, y, domain = regression()
    scaled = make_pipeline(StandardScaler(), LambdaComb(LinearRegression()))
    scaled.fit(X, y, lambdacomb__sample_domain=domain)
    plain = LambdaComb(LinearRegression()).fit(X, y, domain)
    table = compare({"scaled": scaled, "plain": plain}, X, y, domain)
    assert table.privileged == (True, True)
    np.testing.assert_allclose(table.loss[0], table.loss[1])
    np.testing.assert_allclose(table.worst[0], table.worst[1])
