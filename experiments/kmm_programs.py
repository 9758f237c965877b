"""Quadratic programs of kernel mean matching with many rows: one to the end, or many half-way.

    minimise 1/2 b'Kb - kappa'b   subject to   0 <= b_i <= B,   |Σ_i b_i - n| <= n eps

Both ways leave out the upper bound and the band, which is right where these do not bind; that is
checked at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from anymix.estimators import BoxAndBand, MeanMatching

Floats = NDArray[np.float64]

# Added to the diagonal: a kernel in float32 is positive definite only so far, and copies of a text
# share their weight.
JITTER = 1e-5
ROUNDING = 1e-6


def solve_exactly(program: MeanMatching, start: NDArray[np.bool_], max_iter: int = 100) -> Floats:
    """Solve to rounding by block principal pivoting (Portugal, Judice and Vicente 1994).

    On a guess F of the rows with weight, b_F = K_FF⁻¹ kappa_F.  All rows with a negative weight
    leave F, all others with a negative slope (Kb - kappa)_i join it, until there are none.  Once
    that no longer makes them fewer, they go one by one, which always ends.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]], dtype=np.float32)
    >>> program = MeanMatching(K, np.array([1.0, -1.0]), BoxAndBand(9.0, 0.0, 9.0))
    >>> solve_exactly(program, np.array([True, True])).round(3)
    array([0.5, 0. ])
    """
    on, fewest, patience = start.copy(), len(start) + 1, 3
    smallest = -ROUNDING * program.scale
    for _ in range(max_iter):
        F = np.flatnonzero(on)
        b = np.zeros(len(on))
        b[F] = _on_the_face(program, F)
        slope = program.K[:, F].astype(np.float64) @ b[F] - program.kappa
        wrong = np.where(on, b < 0, slope < smallest)
        n_wrong = int(wrong.sum())
        if not n_wrong:
            return _inside(b, program.bounds)
        if n_wrong < fewest:
            fewest, patience = n_wrong, 3
        else:
            patience -= 1
        on ^= wrong if patience >= 0 else np.arange(len(on)) == np.flatnonzero(wrong)[-1]
    raise RuntimeError(f"{n_wrong} rows are still wrong after {max_iter} steps; use `solve_qp`.")


def _on_the_face(program: MeanMatching, F: NDArray[np.intp]) -> Floats:
    A = program.K[np.ix_(F, F)].astype(np.float64)
    A[np.diag_indices(len(F))] += JITTER
    return np.asarray(cho_solve(cho_factor(A, lower=True, overwrite_a=True), program.kappa[F]))


def solve_together(
    programs: Sequence[MeanMatching], tol: float, max_iter: int = 5000
) -> list[Floats]:
    """Solve programs of one kernel and one feasible set to a residual, as `solve_qp` does.

    One product of matrices serves all programs, a column each, where single ones wait for memory.
    """
    first = programs[0]
    K, step = first.K, np.float32(1 / first.lipschitz)
    kappa = np.stack([p.kappa for p in programs], axis=1).astype(np.float32)
    scale = np.abs(kappa).max(axis=0) * step
    todo, answers = np.arange(len(programs)), np.empty_like(kappa)
    b = ahead = np.ones_like(kappa)
    momentum = np.ones(len(programs), dtype=np.float32)
    for _ in range(max_iter):
        new = np.clip(ahead - step * (K @ ahead - kappa[:, todo]), 0, first.bounds.upper)
        open_ = np.abs(ahead - new).max(axis=0) > tol * scale[todo]
        answers[:, todo] = new
        if not open_.any():
            return [_inside(answer.astype(np.float64), first.bounds) for answer in answers.T]
        todo, new, ahead, b = todo[open_], new[:, open_], ahead[:, open_], b[:, open_]
        uphill = np.einsum("ij,ij->j", ahead - new, new - b) > 0
        momentum = np.where(uphill, np.float32(1), momentum[open_])
        following = np.asarray((1 + np.sqrt(1 + 4 * momentum**2)) / 2, dtype=np.float32)
        ahead = np.asarray(new + (momentum - 1) / following * (new - b), dtype=np.float32)
        b, momentum = new, following
    raise RuntimeError(
        f"{len(todo)} programs are not solved to {tol} after {max_iter} steps; raise the tolerance."
    )


def _inside(b: Floats, bounds: BoxAndBand) -> Floats:
    if b.max() > bounds.upper or not bounds.low < b.sum() < bounds.high:
        raise RuntimeError("A bound on the weights binds; solve the program by `solve_qp`.")
    return b
