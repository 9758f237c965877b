"""A problem in parts: every number that a solver needs is a sum over them."""

from __future__ import annotations

from builtins import map as builtin_map
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import Loss, Sums, add_sums, gap
from anymix.sources.queries import once

# map(function, parts) gives the results in the order of the parts: that of Python, or an engine's.
Map = Callable[..., Iterable[Any]]
Step = tuple[str, tuple[Any, ...]]


class PartitionedProblem:
    """One problem from parts of its points, wherever they are.

    Parameters
    ----------
    parts : iterable of Problem, of functions that return one, or of what stands for one
        Parts of one measure: `Problem.from_log_densities(..., totals=T)` says what the weights of
        each source sum to over all parts, so that P_k of a part is w/T_k and the losses of the
        parts add up to those of all points.
    map : callable
        map(function, parts) gives the answers in the order of the parts: Python's own, that of a
        thread pool, of a cluster (the parts are then its futures), of sites.  Functions that are
        sent can be pickled.  Sums are formed in the order of the parts, whoever answers first.

    Examples
    --------
    >>> from anymix.core import Problem, solve
    >>> rng = np.random.default_rng(0)
    >>> y, domain = rng.normal(size=100), np.arange(100) % 2
    >>> log_masses, said = rng.normal(size=(2, 100)), y + rng.normal(size=(2, 100))
    >>> rows = [slice(0, 30), slice(30, 100)]
    >>> parts = [
    ...     Problem.from_log_densities(
    ...         log_masses[:, i], said[:, i], y[i], sample_domain=domain[i], totals=[50, 50]
    ...     )
    ...     for i in rows
    ... ]
    >>> whole = Problem.from_log_densities(log_masses, said, y, sample_domain=domain)
    >>> np.allclose(solve(PartitionedProblem(parts)).z, solve(whole).z, atol=1e-8)
    True
    """

    def __init__(
        self, parts: Iterable[Any], map: Map = builtin_map, *, steps: tuple[Step, ...] = ()
    ):
        self.parts: Sequence[Any] = parts if isinstance(parts, Sequence) else tuple(parts)
        self.map = map
        self.steps = steps
        if not self.parts:
            raise ValueError("a problem in parts needs one part at least; got none.")

    def answers(self, question: str, *given: Any) -> Iterator[Any]:
        """Evaluate an attribute or a method of a `Problem` on every part, in order."""
        respond = partial(_respond, steps=self.steps, question=question, given=given)
        return iter(self.map(respond, self.parts))

    def viewed(self, step: str, *given: Any) -> Self:
        """Return the same parts after one more step; nothing is computed or moved."""
        return type(self)(self.parts, self.map, steps=(*self.steps, (step, given)))

    @once
    def _counts(self) -> tuple[int, FloatArray]:
        n, own = zip(*self.answers("counted"), strict=True)
        return sum(n), np.asarray(reduce(add, own))

    @property
    def n_points(self) -> int:
        """m, of all parts."""
        return self._counts[0]

    @property
    def n_sources(self) -> int:
        """p."""
        return int(self.own_losses.size)

    @property
    def own_losses(self) -> FloatArray:
        """ε_k = L(D_k, h_k), shape (p,)."""
        return self._counts[1]

    @once
    def loss(self) -> Loss:
        """The loss, of all parts."""
        found: Loss = next(self.answers("loss"))
        return found

    def evaluate_many(self, Z: ArrayLike, multipliers: FloatArray | None = None) -> Sums:
        """Return L, G and Hessians for a stack of z (s, p), in one query to every part."""
        return add_sums(self.answers("evaluate_many", np.asarray(Z, dtype=float), multipliers))

    def paired_moments(self, z: ArrayLike) -> FloatArray:
        """Σw, Σwd, Σw², Σw²d, Σw²d² of ℓ(h_z, y) − ℓ(h_k, y) on own points, (5, p)."""
        found = self.answers("paired_moments", np.asarray(z, dtype=float))
        return np.asarray(reduce(add, found))

    def source_losses(self, z: ArrayLike) -> FloatArray:
        """Return L_k(z), shape (p,)."""
        return self.losses_and_jacobian(z)[0]

    def losses_and_jacobian(self, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return L (p,) and its Jacobian (p, p)."""
        found = self.evaluate_many(np.asarray(z, dtype=float)[None])
        return found.losses[0], found.jacobians[0]

    def hessian(self, z: ArrayLike, multipliers: FloatArray) -> FloatArray:
        """Return Σ_k λ_k ∇²L_k (p, p)."""
        found = self.evaluate_many(np.asarray(z, dtype=float)[None], np.asarray(multipliers)[None])
        return np.asarray(found.hessians)[0]

    def gamma(self, z: ArrayLike) -> float:
        """γ(z) = max_k L_k − Σ_k z_k L_k."""
        return gap(self.source_losses(z), np.asarray(z, dtype=float))

    def robust_loss(self, z: ArrayLike) -> float:
        """max_k L_k(z)."""
        return float(self.source_losses(z).max())

    def regret(self, z: ArrayLike) -> float:
        """max_k (L_k(z) − ε_k)."""
        return float((self.source_losses(z) - self.own_losses).max())

    def smoothed(self, width: float) -> Self:
        """Return the problem with the kinks of its loss rounded within `width`."""
        return self.viewed("smoothed", float(width))

    def thin(self, n: int, rng: np.random.Generator) -> Any:
        """Return the problem on about n of the points, of every part its share."""
        return self.viewed("thinned", n / self.n_points, int(rng.integers(2**31)))


def seen_through(problem: Any, steps: Iterable[Step]) -> Any:
    """Return a `Problem` after the steps "smoothed" and "thinned"."""
    for step, given in steps:
        if step == "thinned":
            # A share of the points: those of a whole source are the same anywhere.
            share, seed = given
            problem = problem.thin(share * problem.n_points, seed)
        else:
            problem = problem.smoothed(*given)
    return problem


def _respond(part: Any, steps: tuple[Step, ...], question: str, given: tuple[Any, ...]) -> Any:
    problem = seen_through(part() if callable(part) else part, steps)
    if question == "counted":
        return problem.n_points, problem.own_losses
    found = getattr(problem, question)
    return found(*given) if callable(found) else found
