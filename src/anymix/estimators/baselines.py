"""The rivals: what people do today with models from several sources, all with one interface.

`privileged` marks those that use what the others must do without: the target's mixture, or all rows
in one place.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix.core import Problem, simplex, solve
from anymix.core.simplex import FloatArray
from anymix.densities import GaussianKDE
from anymix.estimators._ensemble import SourceEnsemble
from anymix.estimators._reweighted import ReweightedEstimator
from anymix.estimators._rows import Rows
from anymix.estimators._training import cross_fitted_tables
from anymix.sources import Source, evaluate
from anymix.sources.tables import _length


class _Average(SourceEnsemble):
    """The same weight for a source everywhere: Σ_k α_k h_k(x).

    Paper: Lemma 7, Lemma 8, App. A.
    """

    alpha_: FloatArray

    def __init__(self, estimator: Any = None, *, sources: Sequence[Source] | None = None):
        self.estimator = estimator
        self.sources = sources

    def _weights(self, X: Any) -> FloatArray:
        return np.repeat(self.alpha_[:, None], _length(X), axis=1)


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

    def _learn(self, rows: Rows) -> None:
        self.alpha_ = simplex.uniform(len(self.sources_))


class VolumeWeighted(_Average):
    """Σ_k (n_k/n) h_k(x): sources count by their number of rows."""

    def _learn(self, rows: Rows) -> None:
        sizes = [
            source.n_rows or int((rows.domain == k).sum()) for k, source in enumerate(self.sources_)
        ]
        self.alpha_ = np.asarray(sizes) / np.sum(sizes)


class SingleSource(_Average):
    """One source's own predictor, everywhere.

    Paper: Sec. 5.1.
    """

    def __init__(
        self,
        estimator: Any = None,
        source: int | str = 0,
        *,
        sources: Sequence[Source] | None = None,
    ):
        super().__init__(estimator, sources=sources)
        self.source = source

    def _learn(self, rows: Rows) -> None:
        names = [str(name) for name in self.source_names_]
        if str(self.source) not in names and not isinstance(self.source, int):
            raise ValueError(f"no source {self.source!r}; there are {names}.")
        k = names.index(str(self.source)) if str(self.source) in names else int(self.source)
        self.alpha_ = np.eye(len(names))[k]


class LambdaComb(_Average):
    """Σ_k λ_k h_k(x) with the target's true mixture λ, which nobody has: privileged.

    Paper: Sec. 5.1.
    """

    privileged: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any = None,
        mixture: ArrayLike | None = None,
        *,
        sources: Sequence[Source] | None = None,
    ):
        super().__init__(estimator, sources=sources)
        self.mixture = mixture

    def _learn(self, rows: Rows) -> None:
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

    def __init__(
        self,
        estimator: Any = None,
        *,
        sources: Sequence[Source] | None = None,
        cv: int = 5,
        random_state: Any = None,
    ):
        super().__init__(estimator, sources=sources)
        self.cv = cv
        self.random_state = random_state

    def _learn(self, rows: Rows) -> None:
        p = len(self.sources_)
        if p == 1:
            self.alpha_ = np.ones(1)
            return
        classes = self.classes_ if self._classification() else None
        if self.sources:
            predictions = evaluate(self.sources_, rows.X, classes, _Alike(p)).predictions
        else:
            names = self.source_names_
            predictions = cross_fitted_tables(
                rows, names, self.estimator, None, classes, self.cv, self.random_state
            ).predictions
        y = rows.y if classes is None else np.searchsorted(classes, rows.y)
        weight = np.ones(y.size) if rows.weight is None else rows.weight
        pool = np.tile(weight / weight.sum(), (p, 1))
        loss = "squared" if classes is None else "cross_entropy"
        alike = np.full((p, y.size), 1.0 / y.size)
        problem = Problem(alike, predictions, y, loss, eta=1e-9, weights=pool)
        self.alpha_ = solve(problem, "robust", tol=1e-8).z


class _Alike:
    def __init__(self, p: int):
        self.p = p

    def log_responsibilities(self, X: Any) -> FloatArray:
        return np.zeros((self.p, _length(X)))


class HardRouter(SourceEnsemble):
    """Each row to the one source that is likeliest to have produced it."""

    uses_density: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any = None,
        density: Any = None,
        *,
        sources: Sequence[Source] | None = None,
    ):
        self.estimator = estimator
        self.density = density
        self.sources = sources

    def _density(self) -> Any:
        return GaussianKDE() if self.density is None else self.density

    def _weights(self, X: Any) -> FloatArray:
        p = len(self.sources_)
        if p == 1:
            return np.ones((1, _length(X)))
        return np.eye(p)[:, self._log_masses(X).argmax(axis=0)]


class Joint(ReweightedEstimator):
    """One model trained on all rows in one place, which is what is not allowed: privileged.

    Paper: Sec. 5.2.
    """

    privileged: ClassVar[bool] = True

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None) -> Self:
        """Fit a clone of the estimator to everything; `sample_domain` is not used."""
        rows = self._rows(X, reset=True)
        self.estimator_ = self._fit_weighted(rows, y, None)
        return self
