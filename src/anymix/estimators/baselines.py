"""Baselines: common ways to use models from several sources, with one interface.

`privileged` marks those that use information the others do not have: the target's mixture, or all
rows in one place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import Rule, check, did_you_mean, seed_rule
from anymix.core import Problem, simplex, solve
from anymix.densities import GaussianKDE
from anymix.estimators._ensemble import SourceEnsemble, store_parameters
from anymix.estimators._row_checks import check_order, check_weight, take_columns
from anymix.estimators._rows import FOLDS, Rows, folds_of
from anymix.estimators._source_training import Indifferent, SourceTrainer, folds_in_turn
from anymix.estimators.reweighting import ReweightedEstimator
from anymix.exceptions import ParameterError
from anymix.sources import Source, evaluate


class _Average(SourceEnsemble):
    """The same weight for a source everywhere: Σ_k α_k h_k(x).

    Paper: Lemma 7, Lemma 8, App. A.
    """

    alpha_: FloatArray

    def __init__(
        self,
        estimator: Any = None,
        *,
        sources: Sequence[Source] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def _weights(self, X: Any) -> FloatArray:
        return np.repeat(self.alpha_[:, None], n_rows(X), axis=1)


class Uniform(_Average):
    """The plain average Σ_k h_k(x) / p.

    Examples
    --------
    >>> from anymix import Source
    >>> low, high = Source("low", lambda X: 0 * X[:, 0]), Source("high", lambda X: 0 * X[:, 0] + 1)
    >>> Uniform.from_sources([low, high]).fit([[0.0], [1.0]], [0, 1], [0, 1]).predict([[5.0]])
    array([0.5])

    Paper: Sec. 5.1, Sec. 5.2.
    """

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        self.alpha_ = simplex.uniform(len(self.sources_))


class VolumeWeighted(_Average):
    """Σ_k (n_k/n) h_k(x): sources count by their stated number of training rows."""

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        sizes = [
            source.n_rows or int((rows.domain == k).sum()) for k, source in enumerate(self.sources_)
        ]
        self.alpha_ = np.asarray(sizes) / np.sum(sizes)


class SingleSource(_Average):
    """One source's own predictor, everywhere; `source` is its name or, else, its position.

    Paper: Sec. 5.1.
    """

    def __init__(
        self,
        estimator: Any = None,
        source: int | str = 0,
        *,
        sources: Sequence[Source] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def _check_sources_named(self) -> None:
        names = [str(name) for name in self.source_names_]
        k = self._place()
        if not isinstance(k, Integral) or int(k) not in range(len(names)):
            meant = did_you_mean(self.source, names) or "."
            raise ParameterError(f"there is no source {self.source!r} among {names}{meant}")

    def _place(self) -> Any:
        names = [str(name) for name in self.source_names_]
        return names.index(str(self.source)) if str(self.source) in names else self.source

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        self.alpha_ = np.eye(len(self.source_names_))[self._place()]


class LambdaComb(_Average):
    """Σ_k λ_k h_k(x) with the target's true mixture λ, which is unknown in practice: privileged.

    Paper: Sec. 5.1.
    """

    privileged: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any = None,
        mixture: ArrayLike | None = None,
        *,
        sources: Sequence[Source] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def _check_sources_named(self) -> None:
        if self.mixture is not None:
            simplex.check(self.mixture, len(self.source_names_), "mixture")

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        p = len(self.sources_)
        given = simplex.uniform(p) if self.mixture is None else self.mixture
        self.alpha_ = simplex.check(given, p, "mixture")

    def for_mixture(self, mixture: ArrayLike) -> Self:
        """Return the same sources with another λ."""
        other = copy.copy(self)
        other.alpha_ = simplex.check(mixture, len(self.sources_), "mixture")
        return other


class Stacking(_Average):
    """Σ_k α_k h_k(x) with α on the simplex that is best for all held-out rows together.

    It is the problem of `anymix.core` with the same mass for every source everywhere, which makes
    h_z the average Σ_k z_k h_k, and one measure for all: the pool.
    """

    _takes: ClassVar[Mapping[str, Rule]] = {"random_state": seed_rule}

    def __init__(
        self,
        estimator: Any = None,
        *,
        sources: Sequence[Source] | None = None,
        cv: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def _check_sources_named(self) -> None:
        if len(self.source_names_) > 1:
            check(self.cv, "cv", FOLDS)

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        p, classes = len(self.sources_), self._labels
        if p == 1:
            self.alpha_ = np.ones(1)
            return
        fold = np.zeros(rows.y.size, dtype=np.intp)
        if not self.sources:
            fold = folds_of(rows, self.cv, classes is not None, self.random_state)
        tables = trainer.blank(rows, classes)
        for held, rest in folds_in_turn(rows, fold):
            asked = rows.take(held).X, classes, Indifferent(p)
            tables.predictions[:, held] = evaluate(trainer.predictors(rest), *asked).predictions
        weight = np.ones(rows.y.size) if rows.weight is None else rows.weight
        problem = Problem(
            np.full((p, rows.y.size), 1.0 / (p * rows.y.size)),
            tables.predictions,
            tables.targets,
            "squared" if classes is None else "cross_entropy",
            eta=1e-9,
            weights=np.tile(weight / weight.sum(), (p, 1)),
        )
        self.alpha_ = solve(problem, "robust", tol=1e-8).z


class HardRouter(SourceEnsemble):
    """Predict each row by its likeliest source.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import Source
    >>> low = Source("low", lambda X: 0 * X[:, 0], lambda X: -np.abs(X[:, 0]))
    >>> high = Source("high", lambda X: 0 * X[:, 0] + 1, lambda X: -np.abs(X[:, 0] - 5))
    >>> router = HardRouter.from_sources([low, high]).fit([[0.0], [5.0]], [0, 1], [0, 1])
    >>> router.predict([[1.0], [4.0]])
    array([0., 1.])
    """

    uses_density: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any = None,
        density: Any = None,
        *,
        sources: Sequence[Source] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def _density(self) -> Any:
        if self.density is not None or self.sources:
            return self.density
        return GaussianKDE(random_state=0)

    def _weights(self, X: Any) -> FloatArray:
        p = len(self.sources_)
        if p == 1:
            return np.ones((1, n_rows(X)))
        return np.eye(p)[:, self._log_masses(X).argmax(axis=0)]


class Joint(ReweightedEstimator):
    """One model trained on all rows in one place, which is often not allowed: privileged.

    Paper: Sec. 5.2.
    """

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone of the estimator to everything; `sample_domain` is not used."""
        X, _, self.left_out_ = take_columns(X, sample_domain=sample_domain)
        rows = self._rows(X, reset=True)
        check_order(X, y=y, sample_weight=sample_weight)
        self.estimator_ = self._fit_weighted(rows, y, check_weight(sample_weight, n_rows(rows)))
        return self
