"""Every exported estimator, ready to be fitted, with a value by hand for each."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.estimator_checks import check_estimator

from anymix import Source, estimators
from anymix.densities import GaussianKDE
from anymix.estimators import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    GroupDRO,
    HardRouter,
    Joint,
    KernelMeanMatching,
    LambdaComb,
    SingleSource,
    Stacking,
    Uniform,
    VolumeWeighted,
)
from tests.estimators.several_sources import classification, regression

INNER = {"regression": Ridge, "classification": LogisticRegression}
ROWS = {"regression": regression, "classification": classification}
ONLY = {
    DistributionWeightedRegressor: "regression",
    DistributionWeightedClassifier: "classification",
}


def exported() -> list[type]:
    """Return every class of the room's door that fits and predicts."""
    things = [getattr(estimators, name) for name in estimators.__all__]
    return [t for t in things if isinstance(t, type) and {"fit", "predict"} <= set(dir(t))]


class BaselineCase(NamedTuple):
    """An estimator for one task, unfitted; `names` are those of the domains, in order of place."""

    kind: type
    task: str

    def make(self, inner: Any = None, names: tuple[str, ...] = ()) -> Any:
        inner = INNER[self.task]() if inner is None else inner
        settings = SETTINGS.get(self.kind, lambda names: {})(names)
        return self.kind(inner, **settings)

    @cache  # noqa: B019 (a few cases, and none of the tests changes a fitted model)
    def fit(self, inner: Any = None) -> Any:
        """Fit to the rows of its task."""
        X, y, domain = ROWS[self.task]()
        return self.make(inner, tuple(np.unique(domain))).fit(X, y, sample_domain=domain)


def by_place(names: tuple[str, ...]) -> np.ndarray:
    """λ ∝ 1, 2, 3 for the domains in order of place, as an entry for each name, sorted."""
    mixture = np.arange(1.0, len(names) + 1)
    return (mixture / mixture.sum())[np.argsort(names)]


KDE = GaussianKDE(bandwidth=0.8)
# What a constructor must be told for the answers to be repeatable and about a domain by its name.
SETTINGS: dict[type, Callable[[tuple[str, ...]], dict[str, Any]]] = {
    SingleSource: lambda names: {"source": names[0]} if names else {},
    LambdaComb: lambda names: {"mixture": by_place(names)} if names else {},
    Stacking: lambda names: {"random_state": 0},
    HardRouter: lambda names: {"density": KDE} if names else {},
    GroupDRO: lambda names: {"n_rounds": 5},
    DistributionWeightedRegressor: lambda names: {
        "density": KDE,
        "random_state": 0,
        "consult": False,
    },
    DistributionWeightedClassifier: lambda names: {
        "density": KDE,
        "random_state": 0,
        "consult": False,
    },
}


def cases(kinds: list[type]) -> list[BaselineCase]:
    return [BaselineCase(kind, t) for kind in kinds for t in INNER if ONLY.get(kind, t) == t]


CASES = cases(exported())
every_baseline = pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.kind.__name__}-{case.task}" for case in CASES]
)
every_classifier = pytest.mark.parametrize(
    "case", [c for c in CASES if c.task == "classification"], ids=lambda c: c.kind.__name__
)


# -- one independent value each ------------------------------------------------------------------

LOW, HIGH = (lambda X: 0 * X[:, 0]), (lambda X: 0 * X[:, 0] + 1)
AT_HOME, ABROAD = (lambda X: -np.abs(X[:, 0])), (lambda X: -np.abs(X[:, 0] - 5.0))
PAIR = [Source("low", LOW, AT_HOME, n_rows=1), Source("high", HIGH, ABROAD, n_rows=3)]
POINTS, DOMAINS = np.array([[0.0], [1.0], [4.0], [5.0]]), ["low", "low", "high", "high"]
# Means of 0.3 over all rows, 0.1 and 0.5 at home.
NUMBERS = np.array([0.0, 0.2, 0.4, 0.6])


def of_pair(kind: type, **settings: Any) -> np.ndarray:
    return kind.from_sources(PAIR, **settings).fit(POINTS, NUMBERS, DOMAINS).predict(POINTS)


def distribution_weighted() -> tuple[Any, Any]:
    """h_z from z by eq. (1): D_k = exp(−distance), U their mean."""
    settings = {"calibrate": False, "eta": 0.2, "objective": "robust"}
    model = DistributionWeightedRegressor.from_sources(PAIR, **settings)
    model.fit(POINTS, NUMBERS, DOMAINS)
    D = np.exp([AT_HOME(POINTS), ABROAD(POINTS)])
    w = model.z_[:, None] * D + 0.2 / 2 * D.mean(axis=0)
    return model.predict(POINTS), w[1] / w.sum(axis=0)


def distribution_weighted_classes() -> tuple[Any, Any]:
    """The same formula, with probabilities for what the sources say."""

    def says(p: float, log_density: Any, name: str) -> Source:
        def proba(X: Any) -> np.ndarray:
            return np.tile([1 - p, p], (len(X), 1))

        return Source(name, proba, log_density, classes=[0, 1])

    sources = [says(0.1, AT_HOME, "low"), says(0.8, ABROAD, "high")]
    model = DistributionWeightedClassifier.from_sources(sources, calibrate=False, eta=0.2)
    model.fit(POINTS, [0, 1, 1, 1], DOMAINS)
    D = np.exp([AT_HOME(POINTS), ABROAD(POINTS)])
    w = model.z_[:, None] * D + 0.2 / 2 * D.mean(axis=0)
    return model.predict_proba(POINTS)[:, 1], (0.1 * w[0] + 0.8 * w[1]) / w.sum(axis=0)


def group_dro() -> tuple[Any, Any]:
    """A constant that is equally far from groups at 0 and at 1, however many rows they have."""
    X, y = np.ones((10, 1)), np.array([0.0] * 9 + [1.0])
    model = GroupDRO(Ridge(alpha=0.0, fit_intercept=False)).fit(X, y, sample_domain=y)
    return model.predict(X[:1]), [0.5]


def kernel_mean_matching() -> tuple[Any, Any]:
    """Two rows that do not know each other and a target like the first: weights 2 and 0."""
    model = KernelMeanMatching(DummyRegressor())
    model.fit([[0.0], [99.0]], [7.0, 1.0], X_target=[[0.0]])
    return model.predict([[0.0]]), [7.0]


def joint() -> tuple[Any, Any]:
    line = np.polyfit(POINTS[:, 0], NUMBERS, 1)
    return Joint(LinearRegression()).fit(POINTS, NUMBERS).predict(POINTS), np.polyval(
        line, POINTS[:, 0]
    )


# What the estimator says, and what a person finds without it.
BY_HAND: dict[type, Callable[[], tuple[Any, Any]]] = {
    Uniform: lambda: (of_pair(Uniform), [0.5] * 4),
    VolumeWeighted: lambda: (of_pair(VolumeWeighted), [0.75] * 4),
    SingleSource: lambda: (of_pair(SingleSource, source="high"), [1.0] * 4),
    LambdaComb: lambda: (of_pair(LambdaComb, mixture=[0.9, 0.1]), [0.1] * 4),
    # the best average of 0 and 1 for all rows is their mean
    Stacking: lambda: (of_pair(Stacking), [0.3] * 4),
    HardRouter: lambda: (of_pair(HardRouter), [0.0, 0.0, 1.0, 1.0]),
    Joint: joint,
    GroupDRO: group_dro,
    KernelMeanMatching: kernel_mean_matching,
    DistributionWeightedRegressor: distribution_weighted,
    DistributionWeightedClassifier: distribution_weighted_classes,
}


def failures(estimator: Any, **expected: str) -> list[tuple[str, Any]]:
    """Return the checks of scikit-learn that fail, each with its reason."""
    results = check_estimator(
        estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    return [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]


def answer(model: Any, X: Any) -> np.ndarray:
    """Return probabilities of a classifier, numbers of a regressor."""
    return np.asarray(model.predict_proba(X) if is_classifier(model) else model.predict(X))
