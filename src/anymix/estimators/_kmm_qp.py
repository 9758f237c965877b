"""Kernel mean matching as a quadratic program, and an active-set solver.

    minimise 1/2 b'Kb - kappa'b   subject to   0 <= b_i <= B,   |Σ_i b_i - n| <= n eps

Most weights are 0 at the solution, so accelerated projected gradient runs on the kernel of a small
working set, and the whole kernel is used only to update that set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import OptimizeResult, brentq
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from threadpoolctl import threadpool_limits

Array = NDArray[np.float64]
Kernel = str | Callable[[Any, Any], float]

BLOCK_ROWS = 512
SMALL = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class BoxAndBand:
    """The feasible set {b : 0 <= b_i <= upper, low <= Σ_i b_i <= high}."""

    upper: float
    low: float
    high: float

    def project(self, v: Array) -> Array:
        """Return the nearest feasible point, clip(v - shift, 0, upper) for one shift.

        Examples
        --------
        >>> BoxAndBand(upper=2.0, low=0.0, high=3.0).project(np.array([3.0, 2.0, -1.0]))
        array([2., 1., 0.])
        """
        x = np.clip(v, 0.0, self.upper)
        total = x.sum()
        if self.low <= total <= self.high:
            return x
        target = self.low if total < self.low else self.high

        def excess(shift: float) -> float:
            return float(np.clip(v - shift, 0.0, self.upper).sum()) - target

        shift = float(brentq(excess, v.min() - self.upper, v.max()))
        return np.clip(v - shift, 0.0, self.upper)


@dataclass(frozen=True)
class MeanMatching:
    """The quadratic program: kernel K (n, n) in float32, kappa (n,) and the feasible set."""

    K: NDArray[np.float32]
    kappa: Array
    bounds: BoxAndBand

    @cached_property
    def lipschitz(self) -> float:
        """Largest eigenvalue of K, slightly rounded up."""
        return max(largest_eigenvalue(self.K), SMALL)

    @cached_property
    def scale(self) -> float:
        """Size of kappa, the unit of residuals."""
        return max(float(np.abs(self.kappa).max()), SMALL)

    def gradient(self, b: Array) -> Array:
        """Return Kb - kappa."""
        return np.asarray(self.K @ b.astype(np.float32) - self.kappa)

    def objective(self, b: Array) -> float:
        """Return 1/2 b'Kb - kappa'b."""
        return float(0.5 * b @ (self.gradient(b) - self.kappa))

    def step(self, b: Array) -> tuple[Array, float]:
        """Return the projected gradient step from b and the residual that it shows."""
        new = self.bounds.project(b - self.gradient(b) / self.lipschitz)
        return new, float(np.abs(b - new).max()) * self.lipschitz / self.scale

    def restricted(self, working: NDArray[np.intp]) -> MeanMatching:
        """Return the problem in which all weights outside the working set are 0."""
        return MeanMatching(self.K[np.ix_(working, working)], self.kappa[working], self.bounds)


def mean_matching_weights(
    X: Any, X_target: Any, kernel: Kernel, gamma: float | None, bounds: BoxAndBand, tol: float
) -> OptimizeResult:
    """Weight the rows of X to match the kernel mean of X_target (Huang et al. 2006).

    K_ij = k(x_i, x_j) and kappa_i = n mean_j k(x_i, t_j).  The result has `weights`, `objective`,
    `residual` (relative) and `n_iter`.

    Examples
    --------
    >>> X, X_target = np.array([[0.0], [1.0], [5.0]]), np.array([[0.1], [0.9]])
    >>> bounds = BoxAndBand(upper=10.0, low=1.0, high=5.0)
    >>> mean_matching_weights(X, X_target, "rbf", 1.0, bounds, 1e-6).weights.round(1)
    array([1.6, 1.6, 0. ])
    """
    n = X.shape[0]
    K, kappa = np.empty((n, n), dtype=np.float32), np.empty(n)
    # Matrix-vector products wait for memory, not for cores: a second thread only costs waiting.
    with threadpool_limits(limits=1, user_api="blas"):
        for rows, block in kernel_blocks(X, X, kernel, gamma):
            K[rows] = block
        for rows, block in kernel_blocks(X, X_target, kernel, gamma):
            kappa[rows] = n * block.mean(axis=1, dtype=np.float64)
        return solve_qp(MeanMatching(K, kappa, bounds), tol)


def kernel_blocks(
    X: Any, Y: Any, kernel: Kernel, gamma: float | None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield k(X[rows], Y) for blocks of rows, so that at most one block is held at once."""
    fast = kernel == "rbf" and not (sparse.issparse(X) or sparse.issparse(Y))
    block = _rbf_of(X, Y, gamma) if fast else None
    # A callable kernel takes two rows and knows its own width.
    options = {} if callable(kernel) else {"gamma": gamma, "filter_params": True}
    for start in range(0, X.shape[0], BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        if block is None:
            yield rows, pairwise_kernels(X[rows], Y, metric=kernel, **options)
        else:
            yield rows, block(rows)


def _rbf_of(X: Array, Y: Array, gamma: float | None) -> Callable[[slice], NDArray[Any]]:
    """Return rows -> exp(-gamma |x - y|^2): exponents by one float64 product, exp in float32."""
    gamma = 1.0 / X.shape[1] if gamma is None else gamma
    centre = X.mean(axis=0, dtype=np.float64)
    X, Y = X - centre, Y - centre
    left = np.column_stack([X, -gamma * (X * X).sum(axis=1), np.ones(len(X))])
    right = np.column_stack([2.0 * gamma * Y, np.ones(len(Y)), -gamma * (Y * Y).sum(axis=1)]).T

    def block(rows: slice) -> NDArray[Any]:
        exponent: NDArray[np.float32] = (left[rows] @ right).astype(np.float32)
        np.minimum(exponent, 0.0, out=exponent)
        np.exp(exponent, out=exponent)
        return exponent

    return block


def solve_qp(problem: MeanMatching, tol: float, max_rounds: int = 30) -> OptimizeResult:
    """Minimise 1/2 b'Kb - kappa'b over the bounds, K positive semi-definite.

    The residual is max |b - P(b - g / L)| L / max |kappa| with g = Kb - kappa and L the largest
    eigenvalue of K: zero exactly at an answer.

    Examples
    --------
    >>> bounds = BoxAndBand(upper=9.0, low=0.0, high=9.0)
    >>> problem = MeanMatching(np.eye(2, dtype=np.float32), np.array([0.5, -1.0]), bounds)
    >>> solve_qp(problem, 1e-6).weights
    array([0.5, 0. ])
    """
    n = len(problem.kappa)
    b, working, part = problem.bounds.project(np.ones(n)), np.arange(n), problem
    n_iter, budget = 0, 15
    for _ in range(max_rounds):
        b[working], taken = accelerate(part, b[working], 0.5 * tol, budget)
        n_iter += taken
        moved, residual = problem.step(b)
        if residual <= tol:
            break
        working = np.flatnonzero((b > 0) | (moved > 0))
        part = problem.restricted(working)
        # The set shrinks while it is still changing, so short runs come first and long ones last.
        budget = min(2 * budget, 4000)
    else:
        warnings.warn(
            f"Kernel mean matching stopped at a residual of {residual:.1e}, above tol = {tol:.1e}:"
            " the weights are feasible but not optimal; raise tol or change the kernel's width.",
            ConvergenceWarning,
            stacklevel=2,
        )
    value = problem.objective(b)
    return OptimizeResult(weights=b, objective=value, residual=residual, n_iter=n_iter)


def accelerate(problem: MeanMatching, b: Array, tol: float, budget: int) -> tuple[Array, int]:
    """Take projected gradient steps with Nesterov's momentum and restarts.

    Ends at a residual below tol or after `budget` steps; returns the point and the steps taken.
    """
    ahead, momentum, n_iter, residual = b, 1.0, 0, np.inf
    while n_iter < budget and residual > tol:
        n_iter += 1
        new, residual = problem.step(ahead)
        if (ahead - new) @ (new - b) > 0:
            momentum = 1.0
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead, b = new + (momentum - 1.0) / following * (new - b), new
        momentum = following
    return b, n_iter


def largest_eigenvalue(K: NDArray[np.float32]) -> float:
    """Return the largest eigenvalue of K, at most a few percent too large: a safe inverse step."""
    if len(K) < 30:
        return 1.01 * float(np.linalg.norm(K, 2))
    # A start without symmetry, so that it is orthogonal to no eigenvector by accident.
    start = 1.0 + 0.1 * np.cos(np.arange(len(K), dtype=np.float32))
    top = eigsh(K, k=1, which="LA", ncv=8, tol=0.01, v0=start, return_eigenvectors=False)
    return 1.03 * float(top[0])
