"""solve(problem): find z, with a status, a count of evaluations and a trace.

    gamma             Lemma 4's fixed point (`equilibrium`), from further starts while γ > tol
    robust, regret    descents (`minimax`) from the prior and from near corners, in lockstep; and
                      from the equilibrium where the best is above what that is known to reach

With many points the search runs on a sample of them first, and the result is refined on all.
A new method is a function from `Request` to `SolverResult` and its line in `METHODS`.

A z that minimises an average over n_k points overfits their noise.  The penalty ρ KL(u ‖ z)
prevents this, with ρ three times the largest standard error of what is minimised, measured at z =
u.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core import simplex
from anymix.core.problem import Problem, gap
from anymix.core.records import Objective, SeenRows, Solution, SolverWarning
from anymix.core.solvers.cutting_planes import solve_mixtures
from anymix.core.solvers.dca import dca
from anymix.core.solvers.equilibrium import brouwer_map, find_equilibrium
from anymix.core.solvers.minimax import find_worst
from anymix.core.solvers.oracle import (
    ROUGH_TOL,
    TINY,
    TOL,
    Budget,
    Meter,
    Oracle,
    Penalty,
    Request,
    Solvable,
    SolverResult,
    SpentError,
    oracles,
    with_status,
)

# On five held-out sets never much worse than the better of no shrinkage and z = u.
STANDARD_ERRORS = 3.0
ROUNDING = 1e-14


def paired_standard_errors(problem: Solvable, z: FloatArray) -> FloatArray:
    """Standard error of L_k(h_z) − L_k(h_k) for each source: √Σ w²(d − d̄)², Σ w = 1."""
    w, wd, ww, wwd, wwdd = problem.paired_moments(z)
    d = wd / w
    spread = wwdd - 2.0 * d * wwd + d * d * ww
    # Differences that are all alike leave nothing but rounding.
    return np.asarray(np.sqrt(np.where(spread > ROUNDING * wwdd, spread, 0.0)) / w)


def automatic_shrinkage(problem: Solvable, prior: FloatArray, without: Sequence[int] = ()) -> float:
    """ρ = 3 max_k se_k at z = prior, over the sources that are not set aside."""
    errors = np.delete(paired_standard_errors(problem, prior), list(without))
    return STANDARD_ERRORS * float(errors.max())


# From here on the search for γ = 0 runs on some of the points first: a pass over all costs
# milliseconds.  One point in so many: one in twenty cost up to four times the evaluations.
MANY_POINTS, THINNING = 40_000, 10
# A part's answer may not do as a start: then at most this many evaluations are lost.
POLISH_BUDGET = 25
# The given start, then random ones; on 150 random problems the first was enough.
GAMMA_STARTS = 4
# Six starts near faces missed a better answer on one of 160 random problems.
N_STARTS = 12
# The map is slow at the end and can circle for ever.
MAP_STEPS = 5000


def solve(
    problem: Solvable,
    objective: Objective = "regret",
    method: str = "auto",
    shrinkage: float | str = 0.0,
    tol: float = TOL,
    rng: int | np.random.Generator = 0,
    *,
    prior: ArrayLike | None = None,
    start: ArrayLike | None = None,
    n_starts: int = N_STARTS,
    budget: Budget | None = None,
    remember: bool = True,
    mixtures: tuple[ArrayLike, ArrayLike] | None = None,
) -> Solution:
    """Find z.

    Parameters
    ----------
    problem : Problem
    objective : "regret", "robust" or "gamma"
        min_z max_k (L_k − ε_k), the excess loss over each source's own predictor on its points;
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
        Starts of the default path for "regret" and "robust": the prior, points near corners of
        the simplex, and a third as many by chance; without shrinkage also the best corner, twice
        as many with shares of all magnitudes, and then some around the best.  Several minima are
        rare but real; a start is followed until it meets another or cannot reach the best.
    budget : Budget, optional
        Evaluations and seconds after which the search ends, with status "budget" and the best z
        so far; by default far more than honest problems need.
    remember : bool
        Keep digests of the points, by which `certify` knows them again.
    mixtures : pair of arrays (p,), optional
        The least and the largest share of each source: then "regret" and "robust" are those of the
        worst mixture with such shares, and not of the worst source.

    Returns
    -------
    Solution
        With a `SolverWarning` unless its status is "converged" or, for "regret" and "robust",
        "stationary".

    Examples
    --------
    >>> from anymix.core import Problem, solve
    >>> problem = Problem([[.9, .1], [.2, .8]], [[0., .5], [.5, 1.]], [0., 1.])
    >>> solution = solve(problem)
    >>> solution.status, bool(solution.regret <= problem.eta * problem.loss_bound)
    ('stationary', True)

    Paper: Eq. 4, Lemma 4.
    """
    if not tol > 0:
        raise ValueError(f"tol must be positive; got {tol}.")
    p = problem.n_sources
    u = simplex.uniform(p) if prior is None else simplex.check(prior, p, "prior")
    z0 = None if start is None else simplex.check(start, p, "start")
    rho = _checked_shrinkage(problem, objective, method, shrinkage, u)
    rng = np.random.default_rng(rng)
    penalty = Penalty(rho, u)
    meter = Meter(budget, gap if objective == "gamma" else penalty.worst)
    request = Request(problem, objective, penalty, z0, n_starts, tol, rng, meter)
    if mixtures is not None:
        if objective == "gamma":
            raise ValueError("mixtures are for the objectives 'regret' and 'robust'.")
        known: dict[str, Any] = {"tol": tol, "rng": rng, "n_starts": n_starts, "budget": budget}
        known |= {"shrinkage": rho, "prior": u, "remember": False}
        of_few = partial(solve, objective=objective, **known)
        lower, upper = (np.asarray(end, dtype=float) for end in mixtures)
        return _with_rows(solve_mixtures(request, (lower, upper), of_few), problem, remember)
    try:
        found = METHODS[objective, method](request)
    except SpentError:
        best = request.first if meter.best is None else meter.best
        found = SolverResult(
            simplex.clean(best), np.inf, np.inf, "budget", n_evaluations=meter.spent
        )
    return _with_rows(_solution(request, method, found), problem, remember)


def _with_rows(solution: Solution, problem: Solvable, remember: bool) -> Solution:
    """Add digests of the points, if they are to be remembered."""
    if not remember or not isinstance(problem, Problem):
        return solution
    return replace(solution, seen=SeenRows.of(problem.content()))


def _checked_shrinkage(
    problem: Solvable, objective: str, method: str, shrinkage: float | str, prior: FloatArray
) -> float:
    """Refuse a method that the objective does not have; return ρ."""
    methods = [name for of, name in METHODS if of == objective]
    if not methods:
        raise ValueError(f"objective must be 'regret', 'robust' or 'gamma'; got {objective!r}.")
    if method not in methods:
        known = f"{', '.join(map(repr, methods[:-1]))} or {methods[-1]!r}"
        raise ValueError(f"no method {method!r} for objective {objective!r}: use {known}.")
    if shrinkage != "auto" and (isinstance(shrinkage, str) or not 0 <= shrinkage < np.inf):
        raise ValueError(f"shrinkage must be 'auto' or a number ≥ 0; got {shrinkage!r}.")
    if shrinkage != 0 and (objective == "gamma" or method != "auto"):
        raise ValueError("shrinkage is for objectives 'regret' and 'robust' with method='auto'.")
    if isinstance(shrinkage, str):
        return automatic_shrinkage(problem, prior)
    return float(shrinkage)


def _find_gamma(request: Request) -> SolverResult:
    """Equilibrium from the start; from random ones while γ > tol; the smallest γ wins."""
    n, tol = request.problem.n_points, request.tol
    *parts, oracle = oracles(request, [n // THINNING] if n >= MANY_POINTS else [])
    best = with_status(request.first, np.inf, np.inf, tol)
    for part in parts:
        rough = find_equilibrium(part, request.first, ROUGH_TOL)
        best = find_equilibrium(oracle, rough.z, tol, POLISH_BUDGET)
    for further in range(GAMMA_STARTS):
        if best.optimality <= tol:
            break
        z = simplex.random(oracle.p, request.rng) if further else request.first
        best = min(best, find_equilibrium(oracle, z, tol), key=lambda found: found.optimality)
    return oracle.billed(best)


def _run_dca(request: Request) -> SolverResult:
    """Eq. (6) from one start."""
    if not isinstance(request.problem, Problem):
        kind = type(request.problem).__name__
        raise ValueError(
            f"method='dca' needs the tables of a Problem; a {kind} has sums over them alone."
        )
    return dca(request.problem, request.objective, request.first, request.tol, meter=request.meter)


def _iterate_map(request: Request) -> SolverResult:
    """Lemma 4's map until γ ≤ tol."""
    oracle = Oracle(request.problem, 0.0, 1.0, request.meter)
    z, left, gamma = request.first, np.inf, np.inf
    for _ in range(MAP_STEPS):
        f = oracle.losses(z)
        gamma = gap(f, z)
        left = gamma / max(float(np.abs(f).max()), TINY)
        if left <= request.tol:
            break
        z = brouwer_map(z, f)
    return oracle.billed(with_status(z, gamma, left, request.tol))


METHODS: dict[tuple[str, str], Callable[[Request], SolverResult]] = {
    **dict.fromkeys([("regret", "auto"), ("robust", "auto")], find_worst),
    ("gamma", "auto"): _find_gamma,
    **dict.fromkeys([("regret", "dca"), ("robust", "dca"), ("gamma", "dca")], _run_dca),
    ("gamma", "map"): _iterate_map,
}


def _solution(request: Request, method: str, found: SolverResult) -> Solution:
    """Recompute every loss from the tables and warn if the answer falls short."""
    problem, objective, status = request.problem, request.objective, found.status
    L = problem.source_losses(found.z)
    if status != "converged" and not (status == "stationary" and objective != "gamma"):
        short = (
            f": {objective} is optimal only to {found.optimality:.1e} of the losses; raise "
            "n_starts, give a start, or raise tol."
        )
        if status == "budget":
            short = (
                f" after {found.n_evaluations:.0f} evaluations, with the best z so far; give a "
                "larger budget, fewer sources or points, or raise tol."
            )
        text = f"solve stopped with status {status!r}{short}"
        warnings.warn(text, SolverWarning, stacklevel=3)
    return Solution(
        z=found.z,
        objective=objective,
        method=method,
        gamma=gap(L, found.z),
        robust_loss=float(L.max()),
        regret=float((L - problem.own_losses).max()),
        source_losses=L,
        own_losses=problem.own_losses,
        status=status,
        optimality=found.optimality,
        n_evaluations=found.n_evaluations,
        n_hessians=found.n_hessians,
        n_rounds=found.n_rounds,
        shrinkage=request.penalty.rho,
        trace=found.trace,
    )
