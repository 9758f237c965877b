"""Problems with means in place of some losses: without some sources' rows, or for mixtures.

For such a source, L_j and its baseline ε_j are replaced by the mean over the others:

    L_j ← mean_{k kept} L_k        ε_j ← mean_{k kept} ε_k

A mean is never above the largest, so that max_k L_k and max_k (L_k − ε_k) are those of the others,
whatever rows the source has sent; its predictor and density are combined as before.

With rows λ of a matrix in the place of these means, max_λ Σ_k λ_k L_k(z) is minimised: `solve`
does so where the shares of sources are known to lie between bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core.losses import Loss
from anymix.core.problem import Problem, Sums


class SetAside:
    """A problem as solvers see it, without the losses of some sources.

    Examples
    --------
    >>> problem = Problem(np.eye(3), [[0.0, 0, 9], [1, 1, 9], [2, 2, 2]], [0.0, 1.0, 7.0])
    >>> z = np.full(3, 1 / 3)
    >>> problem.source_losses(z).round(3), SetAside(problem, [2]).source_losses(z).round(3)
    (array([ 0.   ,  0.   , 24.953]), array([0., 0., 0.]))
    """

    def __init__(
        self, problem: Problem, sites: Sequence[int] = (), means: FloatArray | None = None
    ):
        p = problem.n_sources
        if means is not None:
            self.problem, self.sites, self.means = problem, sites, means
            return
        aside = np.asarray(sites, dtype=np.intp)
        kept = np.setdiff1d(np.arange(p), aside)
        if not kept.size:
            raise ValueError("all sites are set aside; keep the rows of at least one.")
        self.problem, self.sites = problem, sites
        self.means = np.eye(p)
        self.means[aside] = 0.0
        self.means[np.ix_(aside, kept)] = 1.0 / kept.size

    @property
    def n_sources(self) -> int:
        """p, the sources set aside included."""
        return self.problem.n_sources

    @property
    def n_points(self) -> int:
        """m."""
        return self.problem.n_points

    @property
    def own_losses(self) -> FloatArray:
        """ε_k, shape (p,)."""
        return np.asarray(self.means @ self.problem.own_losses)

    def source_losses(self, z: ArrayLike) -> FloatArray:
        """Return L_k(z), shape (p,)."""
        return np.asarray(self.means @ self.problem.source_losses(z))

    def evaluate_many(self, Z: ArrayLike, multipliers: FloatArray | None = None) -> Sums:
        """Return L, G and Hessians for a stack of z."""
        mixed = None if multipliers is None else multipliers @ self.means
        batch = self.problem.evaluate_many(Z, mixed)
        return Sums(batch.losses @ self.means.T, self.means @ batch.jacobians, batch.hessians)

    @property
    def loss(self) -> Loss:
        """ℓ."""
        return self.problem.loss

    def smoothed(self, width: float) -> SetAside:
        """Return the same with kinks rounded."""
        return SetAside(self.problem.smoothed(width), self.sites, self.means)

    def paired_moments(self, z: ArrayLike) -> FloatArray:
        """Return the moments, with means in place of those of the sources set aside."""
        return np.asarray(self.problem.paired_moments(z) @ self.means.T)

    def thin(self, n: int, rng: np.random.Generator) -> SetAside:
        """Return the problem on about n of the points."""
        return SetAside(self.problem.thin(n, rng), self.sites, self.means)
