"""Training side by side gives what training one by one gives, and says what it does if asked."""

import copy
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import Ridge

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.estimators import GroupDRO, HardRouter, LambdaComb, SingleSource, Stacking, Uniform
from anymix.estimators._running import side_by_side
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)
TREES = HistGradientBoostingRegressor(max_iter=10, random_state=0)
FOREST = RandomForestClassifier(10, random_state=0)
MODELS = [
    (DistributionWeightedRegressor(random_state=0), regression),
    (DistributionWeightedRegressor(TREES, KDE, random_state=0), regression),
    (DistributionWeightedRegressor(Ridge(), KDE, refit=False, cv=2, random_state=0), regression),
    (DistributionWeightedClassifier(FOREST, KDE, random_state=0), classification),
    (Stacking(Ridge(), cv=2, random_state=0), regression),
    (HardRouter(TREES), regression),
    (Uniform(FOREST), classification),
]


def answers(model, X):
    told = [model.predict(X), model.source_weights(X)]
    return [*told, model.predict_proba(X)] if hasattr(model, "predict_proba") else told


@pytest.mark.parametrize(("model", "problem"), MODELS, ids=lambda m: type(m).__name__)
def test_jobs_change_no_bit(model, problem):
    X, y, domain = problem()
    alone = clone(model).fit(X, y, sample_domain=domain)
    beside = clone(model).set_params(n_jobs=2).fit(X, y, sample_domain=domain)
    for one, two in zip(answers(alone, X), answers(beside, X), strict=True):
        np.testing.assert_array_equal(one, two)
    if hasattr(alone, "certificate_"):
        assert alone.certificate_.to_json() == beside.certificate_.to_json()


def test_processes_change_no_bit_either():
    X, y, domain = regression()
    model = DistributionWeightedRegressor(TREES, KDE, random_state=0)
    alone = clone(model).fit(X, y, sample_domain=domain)
    with joblib.parallel_config("loky"):
        beside = clone(model).set_params(n_jobs=2).fit(X, y, sample_domain=domain)
    np.testing.assert_array_equal(alone.predict(X), beside.predict(X))


def test_jobs_are_really_done_side_by_side():
    """Each of two waits for the other, which one by one would wait in vain."""
    from threading import Barrier

    barrier = Barrier(2)
    assert sorted(side_by_side(barrier.wait, [(20,), (20,)], n_jobs=2)) == [0, 1]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_what_is_warned_of_elsewhere_is_heard(backend):
    with joblib.parallel_config(backend), pytest.warns(UserWarning, match="far away"):
        side_by_side(warnings.warn, [("far away",), ("far away",)], n_jobs=2)


def test_a_line_for_each_step(capsys):
    X, y, domain = regression()
    model = DistributionWeightedRegressor(Ridge(), KDE, random_state=0, verbose=True)
    model.fit(X, y, sample_domain=domain)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("[DistributionWeightedRegressor] ") for line in lines)
    assert all("total=" in line for line in lines)
    model.set_params(verbose=False).fit(X, y, sample_domain=domain)
    assert capsys.readouterr().out == ""
    GroupDRO(Ridge(), n_rounds=3, verbose=1).fit(X, y, domain)
    assert "round 3 of 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    "kind", [DistributionWeightedRegressor, Uniform, SingleSource, LambdaComb, Stacking, HardRouter]
)
def test_they_are_parameters_like_others(kind):
    model = kind(Ridge(), n_jobs=2, verbose=1)
    assert clone(model).get_params()["n_jobs"] == copy.deepcopy(model).n_jobs == 2
    assert clone(model).get_params()["verbose"] == 1


def test_a_folder_keeps_what_was_learned_and_not_how(tmp_path):
    X, y, domain = regression()
    model = DistributionWeightedRegressor(Ridge(), KDE, random_state=0, n_jobs=2)
    model.fit(X, y, sample_domain=domain)
    anymix.save(model, tmp_path / "model")
    again = anymix.load(tmp_path / "model")
    assert again.n_jobs is None
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-5)
