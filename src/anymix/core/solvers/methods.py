"""solve(problem): the default path to z, with a status, a count and a trace; no silent failure.

    gamma             Lemma 4's fixed point (`equilibrium`), from further starts while γ > tol
    robust, regret    descent (`minimax`) from the prior, from the equilibrium of the same baseline,
                      and from near corners; the best is kept, so never worse than the equilibrium

With many points all of that happens on some of them first, and the answer is polished on all.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.problem import Problem, gap
from anymix.core.records import Objective, Solution, SolverWarning, Step
from anymix.core.solvers.dca import dca
from anymix.core.solvers.equilibrium import Equilibrium, brouwer_map, find_equilibrium
from anymix.core.solvers.minimax import Minimax, Penalty, descend
from anymix.core.solvers.oracle import Oracle
from anymix.core.solvers.shrinkage import automatic_shrinkage

# From here on the search runs on some of the points first: a pass over all costs milliseconds.
MANY_POINTS = 40_000
# One point in so many; from many starts a pass is paid for many times.
THINNING, THINNING_FOR_STARTS = 10, 20


class _Answer(NamedTuple):
    z: FloatArray
    status: str
    optimality: float
    n_evaluations: float
    trace: tuple[Step, ...]
    n_hessians: float = 0.0


def solve(
    problem: Problem,
    objective: Objective = "regret",
    method: str = "auto",
    shrinkage: float | str = 0.0,
    tol: float = 1e-10,
    rng: int | np.random.Generator = 0,
    *,
    prior: ArrayLike | None = None,
    start: ArrayLike | None = None,
    n_starts: int = 12,
) -> Solution:
    """Find z.

    Parameters
    ----------
    problem : Problem
    objective : "regret", "robust" or "gamma"
        min_z max_k (L_k − ε_k), what h_z loses to each source's own predictor at home;
        min_z max_k L_k; or γ(z) = 0, the paper's.
    method : "auto", "dca" or "map"
        The default path; the DC algorithm of eq. (6); Lemma 4's map alone ("gamma" only).
    shrinkage : float or "auto"
        ρ of the penalty ρ KL(prior ‖ z) for "regret" and "robust".  "auto" takes three times the
        largest paired standard error at the prior; use it when the points are held-out rows.
    tol : float
        On γ, or on the decrease still promised, relative to the losses.
    rng : int or Generator
        For further starts, and the choice of points when there are many.
    prior : array (p,), optional
        Where shrinkage pulls to and the search begins; uniform by default.
    start : array (p,), optional
        Where the DCA or the map begins, or a further start of the default path.
    n_starts : int
        Starts of the default path for "regret" and "robust": the prior, the equilibrium of the
        same baseline, and points near corners of the simplex, at most p + 2.  Problems with
        several minima are rare but real; all starts are followed to the end, since the first
        steps do not tell which will come lowest.

    Returns
    -------
    Solution
        With a `SolverWarning` if its status is not "converged".

    Examples
    --------
    >>> from anymix.core import Problem, solve
    >>> problem = Problem([[.9, .1], [.2, .8]], [[0., .5], [.5, 1.]], [0., 1.])
    >>> solution = solve(problem)
    >>> solution.status, bool(solution.regret <= problem.eta * problem.loss_bound)
    ('converged', True)

    Paper: Eq. 4, Lemma 4.
    """
    if objective not in ("regret", "robust", "gamma"):
        raise ValueError(f"objective must be 'regret', 'robust' or 'gamma'; got {objective!r}.")
    if not tol > 0:
        raise ValueError(f"tol must be positive; got {tol}.")
    p = problem.n_sources
    u = simplex.uniform(p) if prior is None else simplex.check(prior, p, "prior")
    z0 = None if start is None else simplex.check(start, p, "start")
    rho = _amount(problem, objective, method, shrinkage, u)
    rng = np.random.default_rng(rng)
    if method == "auto" and objective == "gamma":
        answer = _find_gamma(problem, u if z0 is None else z0, tol, rng)
    elif method == "auto":
        answer = _find_worst(problem, objective, Penalty(rho, u), tol, rng, z0, n_starts)
    elif method == "dca":
        answer = _Answer(*dca(problem, objective, u if z0 is None else z0, tol))
    elif method == "map" and objective == "gamma":
        answer = _iterate_map(problem, u if z0 is None else z0, tol)
    else:
        raise ValueError(f"no method {method!r} for objective {objective!r}: use 'auto' or 'dca'.")
    return _solution(problem, objective, method, rho, answer)


def _amount(
    problem: Problem, objective: str, method: str, shrinkage: float | str, prior: FloatArray
) -> float:
    if isinstance(shrinkage, str) and shrinkage != "auto":
        raise ValueError(f"shrinkage must be 'auto' or a number ≥ 0; got {shrinkage!r}.")
    if not isinstance(shrinkage, str) and not 0 <= shrinkage < np.inf:
        raise ValueError(f"shrinkage must be 'auto' or a number ≥ 0; got {shrinkage!r}.")
    if shrinkage != 0 and (objective == "gamma" or method != "auto"):
        raise ValueError("shrinkage is for objectives 'regret' and 'robust' with method='auto'.")
    return automatic_shrinkage(problem, prior) if shrinkage == "auto" else float(shrinkage)


def _find_gamma(
    problem: Problem, start: FloatArray, tol: float, rng: np.random.Generator
) -> _Answer:
    """Equilibrium from the start; from random ones while γ > tol; the smaller worst loss wins."""
    oracle = Oracle(problem, 0.0)
    bill, best = [oracle], Equilibrium(start, np.inf)
    if problem.n_points >= MANY_POINTS:
        small = Oracle(problem.thin(problem.n_points // THINNING, rng), 0.0, 1 / THINNING)
        rough = find_equilibrium(small, start, 1e-6).z
        best = find_equilibrium(oracle, rough, tol, budget=25)
        bill.append(small)
    for further in range(4):
        if best.optimality <= tol:
            break
        z = simplex.random(problem.n_sources, rng) if further else start
        best = min(best, find_equilibrium(oracle, z, tol), key=lambda e: e.optimality)
    return _answer(best.z, best.optimality, tol, bill)


def _answer(z: FloatArray, optimality: float, tol: float, bill: list[Oracle]) -> _Answer:
    """Add up the oracles' bills; the trace is that of the first, which sees all points."""
    n = sum(oracle.n_evaluations for oracle in bill)
    n_hessians = sum(oracle.n_hessians for oracle in bill)
    status = "converged" if optimality <= max(tol, 1e-12) else "stalled"
    return _Answer(simplex.clean(z), status, optimality, n, tuple(bill[0].trace), n_hessians)


def _find_worst(
    problem: Problem,
    objective: str,
    penalty: Penalty,
    tol: float,
    rng: np.random.Generator,
    start: FloatArray | None,
    n_starts: int,
) -> _Answer:
    """Descend from several starts, on few points first if there are many; keep the best."""
    oracle = Oracle(problem, problem.own_losses if objective == "regret" else 0.0)
    bill = [oracle]
    if problem.n_points >= MANY_POINTS:
        thin = problem.thin(problem.n_points // THINNING_FOR_STARTS, rng)
        b = thin.own_losses if objective == "regret" else 0.0
        small = Oracle(thin, b, 1 / THINNING_FOR_STARTS)
        rough = _best_descent(small, _starts(small, penalty, rng, start, n_starts), penalty, 1e-6)
        best = descend(oracle, rough.z, penalty, tol, multipliers=rough.multipliers)
        bill.append(small)
    else:
        starts = _starts(oracle, penalty, rng, start, n_starts)
        best = _best_descent(oracle, starts, penalty, tol)
    return _answer(best.z, best.optimality, tol, bill)


def _best_descent(
    oracle: Oracle, starts: Iterator[FloatArray], penalty: Penalty, tol: float
) -> Minimax:
    return min((descend(oracle, z, penalty, tol) for z in starts), key=lambda r: r.value)


def _starts(
    oracle: Oracle,
    penalty: Penalty,
    rng: np.random.Generator,
    start: FloatArray | None,
    n_starts: int,
) -> Iterator[FloatArray]:
    """The prior, the equilibrium of the same baseline, the user's, then some near corners."""
    yield penalty.prior
    yield find_equilibrium(oracle, penalty.prior, 1e-8, oracle.n_evaluations + 60).z
    if start is not None:
        yield start
    for k in rng.permutation(oracle.p)[: max(n_starts - 2, 0)]:
        yield 0.1 * simplex.uniform(oracle.p) + 0.9 * np.eye(oracle.p)[k]


def _iterate_map(problem: Problem, z: FloatArray, tol: float, max_iter: int = 5000) -> _Answer:
    """Lemma 4's map until γ ≤ tol."""
    oracle, left = Oracle(problem, 0.0), np.inf
    for _ in range(max_iter):
        f = oracle.losses(z)
        left = gap(f, z) / max(float(np.abs(f).max()), 1e-300)
        if left <= tol:
            break
        z = brouwer_map(z, f)
    return _answer(z, left, tol, [oracle])


def _solution(
    problem: Problem, objective: str, method: str, rho: float, answer: _Answer
) -> Solution:
    """Recompute every loss from the tables and warn if the answer falls short."""
    L = problem.source_losses(answer.z)
    if answer.status != "converged" and not (
        answer.status == "stationary" and objective != "gamma"
    ):
        warnings.warn(
            f"solve stopped with status {answer.status!r}: {objective} is optimal only to "
            f"{answer.optimality:.1e} of the losses; raise n_starts, give a start, or raise tol.",
            SolverWarning,
            stacklevel=3,
        )
    return Solution(
        z=answer.z,
        objective=objective,
        method=method,
        gamma=gap(L, answer.z),
        robust_loss=float(L.max()),
        regret=float((L - problem.own_losses).max()),
        source_losses=L,
        own_losses=problem.own_losses,
        status=answer.status,
        optimality=answer.optimality,
        n_evaluations=answer.n_evaluations,
        n_hessians=answer.n_hessians,
        shrinkage=rho,
        trace=answer.trace,
    )
