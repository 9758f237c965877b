"""Finding z with γ(z) = 0: anymix beside its rivals, on the same tables, in one run.

    python -m benchmarks.solvers

Every method starts at z = 1/p and may stop at γ ≤ 1e-8 of the worst loss; γ is always recomputed by
`problem.gamma`.  Seconds run from the tables to z, so cvxpy's compiling and casadi's building
count, their imports do not; they are seconds of the processor, with one thread for BLAS, so that
a busy machine does not favour the quick.  A rival is stopped after a minute.  Then: one evaluation
beside the matrix products it is made of, evaluations of whole solves, and memory.
"""

import importlib.util
import multiprocessing
import sys
import tracemalloc
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from anymix.core import Problem, simplex, solve
from benchmarks.peers import LIMIT, RIVALS, Found, Rival
from experiments import synthetic

TOL = 1e-8
NEEDS = {"IPOPT": ["casadi"], "DCA ECOS": ["cvxpy", "ecos"], "DCA Clarabel": ["cvxpy", "clarabel"]}
NEEDS["DCCP"] = ["cvxpy", "dccp", "clarabel"]


def rows(quick: bool) -> list[tuple[str, Callable[[], Problem]]]:
    """The problems by name; quick: the two smallest."""

    def row(name, make, *size):
        return name, lambda: make(*size, np.random.default_rng(0))

    paper = [("paper, squared, p 2", synthetic.paper_regression)]
    paper += [("paper, cross-entropy, p 3", synthetic.paper_classification)]
    sizes = (600,) if quick else (600, 10_000, 100_000)
    table = [row(f"{name}, m {m}", make, m) for name, make in paper for m in sizes]
    family = [("random, squared", synthetic.random_regression)]
    family += [("random, cross-entropy", synthetic.random_classification)]
    for p, m in () if quick else ((10, 2000), (30, 100_000)):
        table += [row(f"{name}, p {p}, m {m}", make, p, m) for name, make in family]
    return table


def anymix(problem: Problem, tol: float, stop: Callable[[], bool]) -> Found:
    # Own losses are kept by the problem; a new user pays for them.
    problem.__dict__.pop("own_losses", None)
    solution = solve(problem, "gamma", tol=tol)
    return Found(solution.z, round(solution.n_evaluations))


def timed(method: Rival, problem: Problem, seconds: float) -> dict[str, Any]:
    """Run once or more, within about half a second, and keep the quickest."""
    best, spent, n = np.inf, 0.0, 0
    deadline = perf_counter() + seconds
    with threadpool_limits(1):
        while n == 0 or (spent < 0.5 and n < 50):
            start = process_time()
            found = method(problem, TOL, lambda: perf_counter() > deadline)
            best, n = min(best, process_time() - start), n + 1
            spent += process_time() - start
    gamma = np.inf if found.z is None else problem.gamma(found.z) / problem.robust_loss(found.z)
    return {"seconds": best, "gamma": gamma, "iterations": found.n_iterations, "note": found.note}


def _in_child(pipe, method: Rival, problem: Problem, seconds: float) -> None:
    timed(method, synthetic.paper_classification(30, np.random.default_rng(0)), seconds)
    pipe.send(timed(method, problem, seconds))


def measure(method: Rival, problem: Problem, quick: bool) -> dict[str, Any]:
    """Time a method in a process of its own, which ends when the limit is passed."""
    if quick:
        return timed(method, problem, LIMIT)
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_in_child, args=(send, method, problem, LIMIT), daemon=True)
    child.start()
    send.close()
    try:
        answered = receive.poll(LIMIT + 20.0)
        result = receive.recv() if answered else None
    except EOFError:
        answered, result = True, None
    child.terminate()
    child.join()
    note = "crashed" if answered else f"over {LIMIT:.0f} s"
    return result or {"seconds": LIMIT, "gamma": np.inf, "iterations": 0, "note": note}


def side_by_side(name: str, problem: Problem, quick: bool) -> list[dict[str, Any]]:
    print(f"\n{name}")
    ours = measure(anymix, problem, quick)
    table = []
    for rival, method in {"anymix": anymix, **RIVALS}.items():
        missing = [n for n in NEEDS.get(rival, []) if importlib.util.find_spec(n) is None]
        if missing:
            print(f"  {rival:13s} not installed: {', '.join(missing)}")
            continue
        result = ours if rival == "anymix" else measure(method, problem, quick)
        result |= {"problem": name, "method": rival, "ratio": result["seconds"] / ours["seconds"]}
        table.append(result)
        if np.isfinite(result["gamma"]) or result["note"].startswith("over"):
            solved = "" if result["gamma"] <= TOL else "  NOT solved"
            print(
                f"  {rival:13s} {result['seconds']:9.4f} s {result['ratio']:9.1f} x   "
                f"γ {result['gamma']:.0e}  {result['iterations']:4d} iterations  "
                f"{result['note']}{solved}",
                flush=True,
            )
        else:
            print(f"  {rival:13s} {result['note'] or 'no answer'}", flush=True)
    return table


def verdict(what: str, reached: bool) -> None:
    print(f"{what}: {'yes' if reached else 'NO'}")


def judge(table: list[dict[str, Any]]) -> None:
    """Say in words whether the promises hold."""
    print()
    rivals = [r for r in table if r["method"] != "anymix" and r["gamma"] <= TOL]
    slower = [
        f"{r['method']} on {r['problem']} ({r['ratio']:.2f})" for r in rivals if r["ratio"] < 1
    ]
    verdict(f"no rival that solves is faster {'; '.join(slower)}", not slower)
    verdict(
        "γ within tolerance on every row",
        all(r["gamma"] <= TOL for r in table if r["method"] == "anymix"),
    )
    wanted = "paper, cross-entropy, p 3, m 10000"
    dca = [r["ratio"] for r in rivals if r["problem"] == wanted and r["method"].startswith("DCA")]
    if dca:
        verdict(f"1000 times the DCA in cvxpy at m = 10 000 ({min(dca):.0f})", min(dca) >= 1000)


def evaluation(p: int, m: int) -> dict[str, float]:
    """One evaluation of losses and Jacobian beside two products of (p, m) by (m, p)."""
    problem = synthetic.random_tables(p, m, np.random.default_rng(0))
    D, B, z = problem.masses, problem.weighted, simplex.uniform(p)
    products, whole = np.inf, np.inf
    with threadpool_limits(1):
        for _ in range(15):
            start = process_time()
            D @ B.T, B @ D.T
            middle = process_time()
            problem.losses_and_jacobian(z)
            products = min(products, middle - start)
            whole = min(whole, process_time() - middle)
    ratio = whole / products
    print(
        f"\none evaluation at p = {p}, m = {m}: {1e3 * whole:.1f} ms, its two products "
        f"{1e3 * products:.1f} ms, ratio {ratio:.2f}"
    )
    verdict("at most 2", ratio <= 2)
    return {"evaluation": whole, "products": products, "ratio": ratio}


def whole_solves(p: int, m: int, seeds: int) -> list[float]:
    """Evaluations that each objective takes."""
    counts = []
    for make in (synthetic.random_regression, synthetic.random_classification):
        for seed in range(seeds):
            problem = make(p, m, np.random.default_rng(seed))
            found = [solve(problem, objective) for objective in ("gamma", "robust", "regret")]
            counts += [s.n_evaluations for s in found]
            listed = ", ".join(f"{s.objective} {s.n_evaluations:.0f}" for s in found)
            print(
                f"evaluations, {make.__name__}, p = {p}, m = {m}, seed {seed}: {listed}", flush=True
            )
    verdict(f"at most 60 ({max(counts):.0f})", max(counts) <= 60)
    return counts


def memory(p: int, m: int, own: bool) -> float:
    """Peak bytes of making a problem and solving it, the user's three tables included."""
    tracemalloc.start()
    rng = np.random.default_rng(0)
    log_d, h, y = rng.normal(size=(p, m)), rng.normal(size=(p, m)), rng.normal(size=m)
    domain = rng.integers(p, size=m) if own else None
    problem = Problem.from_log_densities(log_d, h, y, sample_domain=domain)
    solve(problem, "gamma")
    solve(problem, "regret")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"memory, {'own' if own else 'pooled'} measure, p = {p}, m = {m}: {peak / 2**20:.0f} MB")
    verdict("under 2 GB", peak < 2e9)
    return float(peak)


def main(quick: bool = False) -> list[dict[str, Any]]:
    table = []
    for name, make in rows(quick):
        table += side_by_side(name, make(), quick)
    judge(table)
    evaluation(30, 3000 if quick else 100_000)
    whole_solves(*((5, 500, 1) if quick else (30, 100_000, 2)))
    for own in (False, True):
        memory(10, 2000 if quick else 1_000_000, own)
    return table


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
