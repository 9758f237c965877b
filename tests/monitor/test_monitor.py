import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from anymix import DistributionWeightedRegressor, Source
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.monitor import Monitor

DOMAIN = np.repeat([0, 1, 2], 150)


@pytest.fixture
def monitor(planar):
    return Monitor(planar, planar.rows(DOMAIN, np.random.default_rng(0)), DOMAIN)


def test_finds_the_mixture_and_stays_quiet(monitor, planar):
    rng = np.random.default_rng(1)
    report = monitor.estimate(planar.rows(rng.choice(3, 2000, p=[0.6, 0.3, 0.1]), rng))
    np.testing.assert_allclose(report.estimate.mixture, [0.6, 0.3, 0.1], atol=0.08)
    assert not report.alarm.rings
    assert report.sentence.startswith("These 2000 rows are a mixture of ")
    assert report.sentence.index("north") < report.sentence.index("east")


def test_rings_and_says_so(monitor):
    report = monitor.estimate(np.random.default_rng(1).normal(7.0, size=(500, 2)))
    assert report.alarm.rings
    assert "not a mixture of the sources" in report.sentence


def test_names_and_positions_are_the_same_sources(monitor, planar):
    named = Monitor(planar, monitor.X_reference, np.array(planar.source_names_)[DOMAIN])
    X = planar.rows(DOMAIN[::3], np.random.default_rng(2))
    assert named.estimate(X).to_json() == monitor.estimate(X).to_json()


def test_the_reference_is_evaluated_once(planar):
    calls = []

    class Counted(type(planar)):
        def novelty(self, X):
            calls.append(len(X))
            return super().novelty(X)

    rng = np.random.default_rng(0)
    watch = Monitor(Counted(), planar.rows(DOMAIN, rng), DOMAIN, method="em", n_bootstrap=100)
    for _ in range(2):
        assert watch.estimate(planar.rows(DOMAIN[:100], rng)).estimate.method == "em"
    assert sorted(calls) == [100, 100, 450]


def test_the_report_is_json(monitor, planar):
    X = planar.rows(DOMAIN, np.random.default_rng(2))
    report = json.loads(monitor.estimate(X).to_json())
    assert report["source_names"] == ["north", "east", "west"]
    assert set(report) == {"estimate", "alarm", "source_names", "sentence", "expected_loss"}
    assert report["expected_loss"] is None


def test_an_unknown_source_gets_a_sentence(planar):
    with pytest.raises(ValueError, match="names 'south', but the sources are"):
        Monitor(planar, np.zeros((2, 2)), ["north", "south"]).estimate(np.zeros((3, 2)))


def test_held_out_tables_are_not_mistaken_for_names():
    """Sources called "1" and "0" are at positions 0 and 1: a number in tables is a position."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-2, 1, (80, 1)), rng.normal(2, 1, (80, 1))]
    sources = [
        Source(name, Ridge().fit(X, X[:, 0]), GaussianKDE(0.5).fit(part))
        for name, part in (("1", X[:80]), ("0", X[80:]))
    ]
    domain = np.repeat(["1", "0"], 80)
    model = DistributionWeightedRegressor.from_sources(sources).fit(X, X[:, 0], domain)
    traffic = rng.normal(-2, 1, (200, 1))
    by_rows = Monitor(model, X, domain, n_bootstrap=50, level=0.05).estimate(traffic)
    by_tables = Monitor.from_tables(model, n_bootstrap=50, level=0.05).estimate(traffic)
    assert by_rows.estimate.mixture[0] > 0.8
    assert by_tables.estimate.mixture[0] > 0.8


@pytest.mark.parametrize("density", [GaussianKDE(random_state=0), DomainClassifier(), "auto"])
def test_densities_trained_by_fit_tell_mixture_cost_and_alarm(density):
    """Traffic is scored by the densities of folds; those in use rang falsely in 20 to 32 %."""
    rng = np.random.default_rng(0)

    def draw(n):
        domain = np.repeat([0, 1], n)
        return rng.normal(np.where(domain, 2.0, -2.0)[:, None], 1.0, (2 * n, 2)), domain

    X, domain = draw(100)
    names = np.array(["left", "right"])[domain]
    model = DistributionWeightedRegressor(Ridge(), density, random_state=0).fit(X, X[:, 0], names)
    watch = Monitor.from_tables(model, n_bootstrap=50, level=0.05)
    rings = 0
    for _ in range(10):
        report = watch.estimate(draw(100)[0][: rng.integers(100, 200)])
        assert report.alarm.tested
        rings += report.alarm.rings
    assert rings <= 2
    assert "those in use are trained on all rows" in report.expected_loss.sentence
    between = watch.estimate(rng.normal(0.0, 0.3, (150, 2)))
    assert between.alarm.rings
    assert "not a mixture" in between.sentence


def test_a_model_without_its_folds_leaves_the_alarm_untested():
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (160, 2)) + np.repeat([[-2.0], [2.0]], 80, axis=0)
    domain = np.repeat(["left", "right"], 80)
    model = DistributionWeightedRegressor(Ridge(), random_state=0).fit(X, X[:, 0], domain)
    evidence = replace(model.result_.evidence, fold_scores=None)
    model.result_ = replace(model.result_, evidence=evidence)
    with pytest.raises(ValueError, match="keeps no densities of folds"):
        model.fold_scores(X)
    watch = Monitor.from_tables(model, n_bootstrap=50, level=0.05)
    report = watch.estimate(rng.normal(-2, 1, (100, 2)))
    assert not report.alarm.tested
    assert not report.alarm.rings
    assert report.estimate.mixture[0] > 0.8
    assert "with --reference" in report.sentence
    assert "nothing strange" not in report.sentence
    with pytest.warns(UserWarning, match="was not tested"):
        assert np.array_equal(watch.adapt(X).z_, model.z_)
