"""Every parameter is checked, in one sentence with the remedy, before anything is trained."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from anymix import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    Source,
    compare,
)
from anymix.core import Problem, solve
from anymix.densities import ContrastiveDensity, DomainClassifier, GaussianKDE
from anymix.estimators import GroupDRO, KernelMeanMatching, LambdaComb, SingleSource, Stacking
from anymix.monitor import Monitor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
D = np.repeat(["north", "south"], 30)
LABELS = np.arange(60) % 2
FITS: list[int] = []


class Counting(BaseEstimator):
    """Counts how often it is fitted."""

    def fit(self, X, y, sample_weight=None):
        FITS.append(len(X))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))


class CountingClassifier(ClassifierMixin, Counting):
    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class CountingRegressor(RegressorMixin, Counting):
    pass


def refused(model, sentence, y=LABELS, **given):
    FITS.clear()
    with pytest.raises(ValueError, match=sentence) as error:
        model.fit(X, y, **({"sample_domain": D} | given))
    assert FITS == []
    said = str(error.value)
    assert said.endswith((".", "?"))
    assert "\n" not in said


WRONG = [
    ({"objective": "min"}, "objective must be 'regret', 'robust' or 'gamma', not 'min'"),
    ({"objective": "regrets"}, r"did you mean 'regret'\?"),
    ({"eta": -1}, "eta must be a number above 0, not -1"),
    ({"eta": "small"}, "eta must be a number above 0, not 'small'"),
    ({"confidence": 95}, r"confidence is a share between 0 and 1: write 0\.95, not 95"),
    ({"shrinkage": "atuo"}, r"'auto', or a number of 0 or more, not 'atuo'; did you mean 'auto'\?"),
    ({"shrinkage": -0.1}, "shrinkage must be 'auto', or a number of 0 or more"),
    ({"objective": "gamma", "shrinkage": 0.5}, "shrinkage is for the objectives"),
    ({"cv": 1}, "cv must be a whole number of 2 or more, or a splitter"),
    ({"cv": 2.5}, "cv must be a whole number"),
    ({"skip_below": -1e-3}, "skip_below must be a number of 0 or more"),
    ({"calibrate": "no"}, "calibrate must be True or False, not 'no'"),
    ({"consult": 2}, "consult must be True or False, not 2"),
    ({"refit": None}, "refit must be True or False, not None"),
    ({"random_state": "today"}, "random_state must be a whole number"),
    ({"set_aside": ["nroth"]}, "names 'nroth'; the sources are north, south"),
    ({"set_aside": "north"}, "takes a list of names, or 'worst'"),
    ({"density": GaussianKDE(bandwidth=-1.0)}, "bandwidth must be .* not -1.0"),
    ({"density": GaussianKDE(bandwidth="scot")}, r"did you mean 'scott'\?"),
    ({"density": DomainClassifier(C=0)}, "C must be a number above 0, not 0"),
    ({"density": ContrastiveDensity(n_draws=0)}, "n_draws must be a number above 0"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
@pytest.mark.parametrize("labels", [True, False])
def test_a_wrong_parameter_trains_nothing(given, sentence, labels):
    kind = DistributionWeightedClassifier if labels else DistributionWeightedRegressor
    inner = CountingClassifier() if labels else CountingRegressor()
    refused(kind(inner, **given), sentence)


@pytest.mark.parametrize(
    ("labels", "loss", "sentence"),
    [
        (True, "accuracy", "cannot be minimised; use 'cross_entropy', and pass measure='accuracy'"),
        (True, "log_loss", "loss 'log_loss' is called 'cross_entropy' here"),
        (True, "squared", "a classification needs 'cross_entropy' or 'brier'"),
        (True, "cross_entrpy", r"did you mean 'cross_entropy'\?"),
        (False, "mae", "loss 'mae' is called 'absolute' here"),
        (False, "rmse", "cannot be minimised; use 'squared'"),
        (False, "brier", "a regression needs"),
        (False, 3, "loss must be 'squared'"),
    ],
)
def test_a_wrong_loss_trains_nothing(labels, loss, sentence):
    kind = DistributionWeightedClassifier if labels else DistributionWeightedRegressor
    inner = CountingClassifier() if labels else CountingRegressor()
    refused(kind(inner, loss=loss), sentence)


def test_a_wrong_rule_or_density_trains_nothing():
    inner = CountingClassifier()
    refused(DistributionWeightedClassifier(inner, rule="normalized"), r"mean 'normalised'\?")
    FITS.clear()
    with pytest.raises(TypeError, match=r"GaussianKDE\(\), or 'auto'; got 'kde'"):
        DistributionWeightedClassifier(inner, density="kde").fit(X, LABELS, D)
    assert FITS == []


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (SingleSource(CountingRegressor(), "nort"), r"no source 'nort' .* did you mean 'north'\?"),
        (SingleSource(CountingRegressor(), 2), "no source 2 among"),
        (LambdaComb(CountingRegressor(), [0.5, 0.4]), "mixture"),
        (Stacking(CountingRegressor(), cv=0), "cv must be a whole number of 2 or more"),
        (Stacking(CountingRegressor(), random_state=-1), "random_state must be"),
        (GroupDRO(CountingRegressor(), n_rounds=0), "n_rounds must be a whole number of 1 or more"),
        (GroupDRO(CountingRegressor(), step_size=-1), "step_size must be a number above 0"),
        (KernelMeanMatching(CountingRegressor(), B=0), "B must be a number above 0"),
        (KernelMeanMatching(CountingRegressor(), tol=-1), "tol must be a number above 0"),
        (KernelMeanMatching(CountingRegressor(), eps="x"), "eps must be .* or None, not 'x'"),
    ],
)
def test_a_wrong_parameter_of_a_baseline_trains_nothing(model, sentence):
    refused(model, sentence)


@pytest.mark.parametrize("kind", [DistributionWeightedRegressor, Stacking, GroupDRO])
def test_the_name_of_a_column_is_not_the_source_of_each_row(kind):
    refused(kind(CountingRegressor()), "sample_domain='colour' is a word", sample_domain="colour")


class Watched:
    """A model whose sources are never to be asked."""

    source_names_ = np.array(["north", "south"])

    def log_responsibilities(self, X):
        raise AssertionError("asked")

    novelty = log_responsibilities


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"confidence": 95}, "confidence is a share"),
        ({"method": "inverse"}, "method must be 'inversion' or 'em'"),
        ({"level": 5}, "level is a share between 0 and 1: write 0.05"),
        ({"n_bootstrap": 3}, "n_bootstrap must be a whole number of 20 or more"),
        ({"level": 1e-4}, "too few resamples show the tail"),
    ],
)
def test_a_monitor_asks_nothing_with_wrong_settings(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        Monitor(Watched(), X, D, **given).estimate(X)


def test_questions_to_a_model_are_checked_before_its_sources_are_asked():
    asked = []

    def predict(rows):
        asked.append(len(rows))
        return rows[:, 0]

    pair = [
        Source(name, predict, lambda X, c=c: -((X[:, 0] - c) ** 2))
        for name, c in (("north", 0.0), ("south", 1.0))
    ]
    model = DistributionWeightedRegressor.from_sources(pair).fit(X, X[:, 0] + 0.1, D)
    asked.clear()
    new = X + 0.1
    for ask, sentence in (
        (lambda: model.certify(new, X[:, 0], D, confidence=95), "confidence is a share"),
        (lambda: model.certify(new, X[:, 0], D, loss_bound=-1), "loss_bound must be"),
        (lambda: model.certify(new, X[:, 0], D, measure="accuracy"), "is for labels"),
        (lambda: model.certify(new, X[:, 0], D, measure="rmse"), "certify 'mse'"),
        (lambda: model.predict_interval(new, 10), r"write 0\.1, not 10"),
        (lambda: model.predict_or_abstain(new, 95), "max_novelty must be"),
        (lambda: compare({"m": model}, new, X[:, 0], D, confidence=95), "confidence is a share"),
        (lambda: compare({"m": model}, new, X[:, 0], D, measure="maee"), "did you mean 'mae'"),
        (lambda: compare({"m": model}, new, X[:, 0], D, measure="auc"), "predicts numbers"),
        (lambda: compare({"m": model}, new, X[:, 0], "colour"), "is a word"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ask()
    assert asked == []


def test_print_of_a_solution_is_short():
    problem = Problem([[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.5], [0.5, 1.0]], [0.0, 1.0])
    found = solve(problem)
    assert found.trace
    assert "trace" not in str(found)
    assert "digests" not in str(found)
    assert "regret" in str(found)
    assert len(str(found)) < 600
