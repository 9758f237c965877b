"""The rivals: other ways to find z, each given the same tables, start and tolerance.

    slsqp      the direct problem, scipy's SLSQP, with anymix's own fast derivatives
    ipopt      the direct problem, casadi's derivatives, IPOPT
    dca        eq. (6) in cvxpy, its convex problems solved by ECOS or Clarabel
    dccp       the same difference of convex functions handed to DCCP

cvxpy's rules know no convex form of the squared loss' u_k, so there the last two say "not DCP".
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from anymix._arrays import FloatArray
from anymix.core import Problem, simplex
from anymix.core.losses import CrossEntropy
from anymix.core.problem import gap
from anymix.core.solvers.dca import decompose


class Found(NamedTuple):
    """The last z and the outer iterations; z is None where the rival has no answer."""

    z: FloatArray | None
    n_iterations: int = 0
    note: str = ""


# (problem, relative tolerance on γ, function that tells whether time is up) -> Found
Rival = Callable[[Problem, float, Callable[[], bool]], Found]
NOT_DCP = Found(None, note="not DCP")


def slsqp_worst(
    problem: Problem,
    baseline: FloatArray | None,
    z: FloatArray,
    ftol: float,
    max_iter: int,
    stop: Callable[[], bool] = lambda: False,
) -> Found:
    """min t subject to L_k(z) − b_k ≤ t, or, without baseline, to L_k(z) − L_z(z) ≤ t."""
    p, seen = problem.n_sources, {"key": b"", "f": np.empty(0), "G": np.empty(0)}

    def at(x: FloatArray) -> None:
        if x[:p].tobytes() == seen["key"]:
            return
        L, G = problem.losses_and_jacobian(x[:p])
        shift, slope = (x[:p] @ L, L + x[:p] @ G) if baseline is None else (baseline, 0.0)
        seen.update(key=x[:p].tobytes(), f=L - shift, G=G - slope)

    def slack(x: FloatArray) -> FloatArray:
        at(x)
        return np.asarray(x[p] - seen["f"])

    def slack_slope(x: FloatArray) -> FloatArray:
        at(x)
        return np.hstack([-np.asarray(seen["G"]), np.ones((p, 1))])

    def watch(x: FloatArray) -> None:
        if stop():
            raise StopIteration

    last, sums = np.append(np.zeros(p), 1.0), np.append(np.ones(p), 0.0)
    first = float(-slack(np.append(z, 0.0)).min())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = minimize(
            lambda x: x[p],
            np.append(z, first),
            jac=lambda x: last,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * p + [(None, None)],
            constraints=[
                {"type": "ineq", "fun": slack, "jac": slack_slope},
                {"type": "eq", "fun": lambda x: x[:p].sum() - 1.0, "jac": lambda x: sums},
            ],
            options={"ftol": ftol, "maxiter": max_iter},
            callback=watch,
        )
    if not np.isfinite(result.x).all() or result.x[:p].max() <= 0.0:
        return Found(None, int(result.nit), "NaN")
    return Found(simplex.clean(result.x[:p]), int(result.nit))


def slsqp(problem: Problem, tol: float, stop: Callable[[], bool]) -> Found:
    start = simplex.uniform(problem.n_sources)
    scale = float(problem.source_losses(start).max())
    return slsqp_worst(problem, None, start, tol * scale, 1000, stop)


def ipopt(problem: Problem, tol: float, stop: Callable[[], bool]) -> Found:
    import casadi as ca

    p = problem.n_sources
    z, t = ca.MX.sym("z", p), ca.MX.sym("t")
    J0, K0 = _constants(problem)
    K = ca.mtimes(ca.DM(problem.masses.T), z) + ca.DM(K0)
    h = (ca.mtimes(ca.DM(problem.weighted.T), z) + ca.DM(J0)) / K
    entropy = isinstance(problem.loss, CrossEntropy)
    loss = -ca.log(h) if entropy else (h - ca.DM(problem.targets)) ** 2
    L = ca.mtimes(ca.DM(problem.measure.rows()), loss)
    nlp = {"x": ca.vertcat(z, t), "f": t, "g": ca.vertcat(L - ca.dot(z, L) - t, ca.sum1(z))}
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 0.1 * tol}}
    quiet["ipopt"] |= {"max_iter": 500, "max_wall_time": LIMIT}
    solver = ca.nlpsol("solver", "ipopt", nlp, quiet)
    low, high = np.append(np.zeros(p), -np.inf), np.append(np.ones(p), np.inf)
    start = simplex.uniform(p)
    first = problem.gamma(start)
    found = solver(
        x0=np.append(start, first),
        lbx=low,
        ubx=high,
        lbg=np.append(np.full(p, -np.inf), 1.0),
        ubg=np.append(np.zeros(p), 1.0),
    )
    stats = solver.stats()
    z_found = simplex.clean(np.asarray(found["x"]).ravel()[:p])
    return Found(z_found, int(stats["iter_count"]), "time" if stop() else "")


def _constants(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """J and K at z = 0, the parts that do not depend on z."""
    h, K = problem.ratio(np.zeros(problem.n_sources))
    return h * K, K


def dca(solver: str) -> Rival:
    """The DCA in cvxpy; the slopes of v are parameters, so that cvxpy compiles once."""

    def run(problem: Problem, tol: float, stop: Callable[[], bool]) -> Found:
        import cvxpy as cp

        if not isinstance(problem.loss, CrossEntropy):
            return NOT_DCP
        parts, p = decompose(problem, "gamma"), problem.n_sources
        z, t, slope, offset = cp.Variable(p), cp.Variable(), cp.Parameter((p, p)), cp.Parameter(p)
        spread = problem.masses + problem.eta * problem.reference
        u = -spread @ cp.log(problem.weighted.T @ z + _constants(problem)[0])
        step = cp.Problem(cp.Minimize(t), [u - slope @ z - offset <= t, cp.sum(z) == 1, z >= 0])
        at, n = simplex.uniform(p), 0
        while n < 500 and not stop():
            L = problem.source_losses(at)
            if gap(L, at) <= tol * L.max():
                return Found(at, n)
            v, slope.value = parts.v(at)
            offset.value = v - slope.value @ at
            failed = _solve_quietly(step, solver)
            if failed or z.value is None:
                return Found(at, n, failed or step.status)
            at, n = simplex.clean(z.value), n + 1
        return Found(at, n, "time" if stop() else "500 steps")

    return run


def _solve_quietly(step, solver: str) -> str:
    """Solve a cvxpy problem; a refusal is an answer of the rival and becomes its note."""
    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            step.solve(solver=solver)
        except cp.error.SolverError:
            return "solver failed"
    return ""


def dccp(problem: Problem, tol: float, stop: Callable[[], bool]) -> Found:
    import cvxpy as cp
    from dccp.problem import DCCP
    from dccp.utils import DCCPSettings, NonDCCPError

    if not isinstance(problem.loss, CrossEntropy):
        return NOT_DCP
    p, (J0, K0) = problem.n_sources, _constants(problem)
    z, t = cp.Variable(p), cp.Variable()
    J, K = problem.weighted.T @ z + J0, problem.masses.T @ z + K0
    spread = problem.masses + problem.eta * problem.reference
    v = cp.sum(cp.rel_entr(K, J)) - spread @ cp.log(K)
    stated = cp.Problem(cp.Minimize(t), [-spread @ cp.log(J) <= v + t, cp.sum(z) == 1, z >= 0])
    z.value = simplex.uniform(p)
    t.value = problem.gamma(z.value)
    settings = DCCPSettings(ep=tol, max_slack=tol, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            method = DCCP(stated, settings=settings, solver="CLARABEL")
            method()
        except (cp.error.SolverError, NonDCCPError) as failure:
            return Found(None, note=f"failed: {str(failure)[:60]}")
    if z.value is None:
        return Found(None, note=str(stated.status))
    return Found(simplex.clean(z.value), int(method.iter.k))


# Seconds that a rival may take for one problem.
LIMIT = 60.0
RIVALS: dict[str, Rival] = {
    "SLSQP": slsqp,
    "IPOPT": ipopt,
    "DCA ECOS": dca("ECOS"),
    "DCA Clarabel": dca("CLARABEL"),
    "DCCP": dccp,
}
