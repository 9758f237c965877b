"""A problem of mixtures of the losses: without the say of some sources, or worst over a box.

In the place of L_j of such a source, and of its baseline ε_j, stands the mean over the others:

    L_j ← mean_{k kept} L_k        ε_j ← mean_{k kept} ε_k

A mean is never above the largest, so that max_k L_k and max_k (L_k − ε_k) are those of the others,
whatever rows the source has handed in; its predictor and density are combined as before.

Where shares λ are known to lie in a box, max_{λ ∈ box ∩ Δ} Σ_k λ_k L_k(z) is minimised instead
(`solve_mixtures`), by cutting planes: the worst mixture at each z joins at most p working ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core.losses import Loss
from anymix.core.problem import Problem, Sums
from anymix.core.records import SolverWarning
from anymix.core.solvers import solve


class SetAside:
    """The face of a problem that solvers see, without the claims of some sources.

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
            raise ValueError("all sites are set aside; keep the rows of one at least.")
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
        found = self.problem.evaluate_many(Z, mixed)
        return Sums(found.losses @ self.means.T, self.means @ found.jacobians, found.hessians)

    @property
    def loss(self) -> Loss:
        """ℓ."""
        return self.problem.loss

    def smoothed(self, width: float) -> SetAside:
        """Return the same with kinks rounded."""
        return SetAside(self.problem.smoothed(width), self.sites, self.means)

    def paired_moments(self, z: ArrayLike) -> FloatArray:
        """Return those of the sources that are heard, in the place of the others' their sums."""
        return np.asarray(self.problem.paired_moments(z) @ self.means.T)

    def thin(self, n: int, rng: np.random.Generator) -> SetAside:
        """Return the same on about n of the points."""
        return SetAside(self.problem.thin(n, rng), self.sites, self.means)


# Worst mixtures that are tried, and what may be left, relative to the losses.
MOST_CUTS, CUT_TOL = 50, 1e-8


def worst_mixture(losses: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return argmax Σ_k λ_k L_k over lower ≤ λ ≤ upper on the simplex: the largest L_k first.

    Examples
    --------
    >>> worst_mixture(np.array([3.0, 1.0, 2.0]), np.array([0.0, 0.2, 0.0]), np.array([0.5, 1, 1]))
    array([0.5, 0.2, 0.3])
    """
    if (lower > upper).any() or lower.sum() > 1 + 1e-9 or upper.sum() < 1 - 1e-9:
        raise ValueError(f"no mixture lies between {lower} and {upper}.")
    order, room = np.argsort(-losses, kind="stable"), upper - lower
    before = np.cumsum(room[order]) - room[order]
    mixture = lower.copy()
    mixture[order] += np.clip(1.0 - lower.sum() - before, 0.0, room[order])
    return mixture


def solve_mixtures(
    problem: Problem, lower: FloatArray, upper: FloatArray, robust: FloatArray
) -> FloatArray:
    """Return argmin_z max_{λ ∈ box ∩ Δ} Σ_k λ_k L_k(z); never worse there than the z `robust`.

    Examples
    --------
    >>> problem = Problem([[0.5, 0.5]] * 2, [[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0],
    ...     weights=[[0.9, 0.1], [0.1, 0.9]])
    >>> solve_mixtures(problem, np.array([0.9, 0.0]), np.ones(2), np.array([0.5, 0.5])).round(1)
    array([0.8, 0.2])
    """
    p, z, best, value, bound = problem.n_sources, robust, robust, np.inf, -np.inf
    cuts: list[FloatArray] = []
    for _ in range(MOST_CUTS):
        losses = problem.source_losses(z)
        cut = worst_mixture(losses, lower, upper)
        if cut @ losses < value:
            best, value = z, float(cut @ losses)
        # The working mixtures already ask for this much.
        if cut @ losses <= bound + CUT_TOL * float(np.abs(losses).max()):
            break
        cuts = [*cuts, cut][-p:]
        means = np.stack(cuts)[np.arange(p) % len(cuts)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SolverWarning)
            found = solve(
                SetAside(problem, means=means), "robust", start=best, n_starts=1, remember=False
            )
        z, bound = found.z, found.robust_loss
    return best
