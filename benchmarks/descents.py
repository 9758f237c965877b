"""Regret and robust: anymix, all its starts, beside one start of SLSQP, in one run.

    python -m benchmarks.descents [--quick] [most points]

SLSQP gets anymix's own derivatives, the uniform start and 100 iterations, and may stop short of the
minimum; anymix searches from many starts and goes to 1e-10.  Seconds are those of the processor
with one thread for BLAS, the best of some repeats; the ratio is anymix's over SLSQP's one start.
"""

import sys
import warnings
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from anymix._arrays import FloatArray
from anymix.core import Problem, SolverWarning, simplex, solve
from benchmarks.peers import slsqp_worst
from benchmarks.random_problems import with_loss
from experiments import synthetic

LOSSES = ("squared", "cross-entropy", "hinge", "absolute", "pinball")
SOURCES, POINTS = (2, 3, 10, 30, 100, 300), (300, 2000, 20_000, 100_000, 1_000_000)
# Tables of more numbers take SLSQP minutes, and memory.
MOST_NUMBERS = 6_000_000
# The most that a ratio may be, from so many points on.
PROMISES = {300: 6.0, 2000: 3.0, 20_000: 1.0}


def make(loss: str, p: int, m: int) -> Problem:
    rng = np.random.default_rng(0)
    if loss == "cross-entropy":
        return synthetic.random_classification(p, m, rng)
    problem = synthetic.random_regression(p, m, rng)
    return problem if loss == "squared" else with_loss(problem, loss)


def seconds(run: Any, repeats: int) -> tuple[float, Any]:
    best, found = np.inf, None
    for _ in range(repeats):
        start = process_time()
        found = run()
        best = min(best, process_time() - start)
    return best, found


def row(loss: str, p: int, m: int, objective: str) -> dict[str, Any]:
    """Both ways on one problem."""
    problem, start = make(loss, p, m), simplex.uniform(p)
    base = problem.own_losses if objective == "regret" else np.zeros(p)
    scale = problem.robust_loss(start)
    repeats = 5 if p * m < 100_000 else 1

    def worst(z: FloatArray) -> float:
        return float((problem.source_losses(z) - base).max())

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)
        theirs, one = seconds(lambda: slsqp_worst(problem, base, start, 1e-9 * scale, 100), repeats)
        ours, found = seconds(lambda: solve(problem, objective, remember=False), repeats)
    theirs_value = np.inf if one.z is None else worst(one.z)
    return {
        "loss": loss,
        "p": p,
        "m": m,
        "objective": objective,
        "ratio": ours / theirs,
        "seconds": ours,
        "excess": (worst(found.z) - theirs_value) / scale,
        "rounds": found.n_rounds,
        "status": found.status,
    }


def judge(table: list[dict[str, Any]]) -> None:
    """Say in words what held."""
    for least, most in PROMISES.items():
        rows = [r for r in table if r["m"] == least or (least == max(PROMISES) and r["m"] > least)]
        for kinked in (False, True):
            some = [r for r in rows if (r["loss"] in LOSSES[2:]) == kinked]
            if some:
                ratios = sorted(r["ratio"] for r in some)
                within = sum(ratio <= most for ratio in ratios)
                kind = "kinks" if kinked else "smooth"
                print(
                    f"m from {least}, {kind}: at most {most:g} x one start of SLSQP on {within} of "
                    f"{len(some)} rows; median {np.median(ratios):.1f}, most {ratios[-1]:.1f}"
                )
    above = [r for r in table if r["excess"] > 1e-6]
    print(f"above that start by more than 1e-6 of the loss: {len(above)} of {len(table)} rows")
    few = [r["rounds"] for r in table if r["p"] <= 30 and r["loss"] in LOSSES[:2]]
    if few:
        print(f"rounds, smooth, p <= 30: median {np.median(few):.0f}, most {max(few)}")


def main(quick: bool = False, most: int = MOST_NUMBERS) -> list[dict[str, Any]]:
    table = []
    for m in POINTS[:1] if quick else POINTS:
        for p in (2, 3) if quick else SOURCES:
            if p * m > most or m < p:
                continue
            for loss in LOSSES:
                for objective in ("robust", "regret"):
                    table.append(row(loss, p, m, objective))
                    found = table[-1]
                    print(
                        f"{loss:13s} p {p:3d} m {m:7d} {objective:6s}  {found['ratio']:6.2f} x  "
                        f"{1e3 * found['seconds']:8.1f} ms  {found['rounds']:4d} rounds  "
                        f"{found['excess']:+.0e}  {found['status']}",
                        flush=True,
                    )
    judge(table)
    return table


if __name__ == "__main__":
    numbers = [int(float(word)) for word in sys.argv[1:] if word[0].isdigit()]
    main("--quick" in sys.argv, *numbers)
