"""Two hundred random problems: is γ = 0 found, and is the worst loss or regret as low as SLSQP's?

    python -m benchmarks.random_problems [--quick] [number of problems] [largest p] [largest m]

Gaussian domains and Dirichlet-like tables, squared loss and cross-entropy, and the same tables with
every other loss, p from 2 to 100 and m from 300 to 10 000, both log-uniform.  "gamma" must reach
γ ≤ 1e-8 of the worst loss; "robust" and "regret" must not be above the best of ten starts of SLSQP
by more than 1e-6 of the worst loss; and as all these problems have the pooled measure, the regret
must be at most ηM.  SLSQP gets anymix's derivatives, the uniform start and nine random ones (for γ
the uniform start alone), and 100 iterations for each.  Two processes with one thread each share the
work; a line of JSON a problem goes into a temporary file as it is done.
"""

import json
import multiprocessing
import os
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from anymix._arrays import FloatArray
from anymix.core import Problem, SolverWarning, simplex, solve
from anymix.core.losses import CrossEntropy
from benchmarks.peers import slsqp_worst
from experiments import synthetic

KINDS = ("Gaussian squared", "Gaussian entropy", "tables squared", "tables entropy")
OTHERS = ("absolute", "pinball", "hinge", "huber", "logistic", "brier")
KINDS += tuple(f"{family} {loss}" for loss in OTHERS for family in ("Gaussian", "tables"))
OBJECTIVES = ("gamma", "robust", "regret")
GAMMA_TOL, EXCESS_TOL = 1e-8, 1e-6
ETAS = 1e-6, 1e-1


def make(seed: int, largest_p: int = 100, largest_m: int = 10_000) -> Problem:
    """The problem of a seed; the kinds take turns."""
    rng = np.random.default_rng(seed)
    p = round(float(np.exp(rng.uniform(np.log(2), np.log(largest_p)))))
    m = round(float(np.exp(rng.uniform(np.log(300), np.log(largest_m)))))
    eta = float(np.exp(rng.uniform(*np.log(ETAS))))
    problem = at_default_eta(seed, p, m, rng)
    y = None if isinstance(problem.loss, CrossEntropy) else problem.targets
    return Problem(problem.masses, problem.predictions, y, problem.loss, eta)


def at_default_eta(seed: int, p: int, m: int, rng: np.random.Generator) -> Problem:
    family, loss = KINDS[seed % len(KINDS)].split()
    if loss == "entropy":
        of_tables = partial(synthetic.random_tables, loss="cross_entropy")
        return (of_tables if family == "tables" else synthetic.random_classification)(p, m, rng)
    of_numbers = synthetic.random_tables if family == "tables" else synthetic.random_regression
    problem = of_numbers(p, m, rng)
    return problem if loss == "squared" else with_loss(problem, loss)


def with_loss(problem: Problem, loss: str) -> Problem:
    """The same masses and predictors with another loss: of numbers, of margins, of two classes."""
    D, h, y = problem.masses, problem.predictions, problem.targets
    if loss in ("hinge", "logistic"):
        margins = (h - np.median(y)) / h.std()
        return Problem(D, margins, np.where(y > np.median(y), 1.0, -1.0), loss=loss)
    if loss == "brier":
        proba = 1.0 / (1.0 + np.exp((np.median(y) - h) / h.std()))
        return Problem(D, np.stack([1 - proba, proba], axis=2), y > np.median(y), loss=loss)
    return Problem(D, h, y, loss=loss)


def baseline(problem: Problem, objective: str) -> FloatArray | None:
    if objective == "gamma":
        return None
    return problem.own_losses if objective == "regret" else np.zeros(problem.n_sources)


def judged(problem: Problem, objective: str, z: FloatArray) -> float:
    """What the objective is at z, relative to the worst loss there for γ."""
    if objective == "gamma":
        return problem.gamma(z) / problem.robust_loss(z)
    return problem.regret(z) if objective == "regret" else problem.robust_loss(z)


def rival(problem: Problem, objective: str, n_starts: int, max_iter: int) -> dict[str, Any]:
    """Run SLSQP from several starts; keep the best value and the seconds of all."""
    rng, p = np.random.default_rng(0), problem.n_sources
    start, values = perf_counter(), []
    for n in range(n_starts):
        z0 = simplex.random(p, rng) if n else simplex.uniform(p)
        ftol = 1e-9 * problem.robust_loss(z0)
        found = slsqp_worst(problem, baseline(problem, objective), z0, ftol, max_iter)
        values.append(np.inf if found.z is None else judged(problem, objective, found.z))
    return {"best": min(values), "seconds": perf_counter() - start}


def examine(seed: int, n_starts: int = 10, max_iter: int = 100, **sizes: int) -> dict[str, Any]:
    """Solve one problem in every way."""
    warnings.simplefilter("ignore", SolverWarning)
    problem = make(seed, **sizes)
    scale = problem.robust_loss(simplex.uniform(problem.n_sources))
    row: dict[str, Any] = {"seed": seed, "p": problem.n_sources, "m": problem.n_points}
    row |= {"kind": KINDS[seed % len(KINDS)], "bound": problem.eta * problem.loss_bound}
    for objective in OBJECTIVES:
        start = perf_counter()
        solution = solve(problem, objective, tol=GAMMA_TOL if objective == "gamma" else 1e-10)
        ours = {"seconds": perf_counter() - start, "evaluations": solution.n_evaluations}
        ours["rounds"] = solution.n_rounds
        ours |= {"status": solution.status, "value": judged(problem, objective, solution.z)}
        theirs = rival(problem, objective, 1 if objective == "gamma" else n_starts, max_iter)
        worst = max(problem.robust_loss(solution.z), 1e-6 * scale)
        ours["excess"] = (ours["value"] - theirs["best"]) / worst
        row[objective] = {"ours": ours, "SLSQP": theirs}
    return row


def _one_thread() -> None:
    threadpool_limits(1)


def examine_all(
    seeds: range, processes: int, path: Path, sizes: dict[str, int]
) -> list[dict[str, Any]]:
    """Share the seeds between processes and write each answer down as it comes."""
    # Threads of a parent's BLAS do not survive a fork, so the children start afresh.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    table = []
    with context.Pool(processes, initializer=_one_thread) as pool, path.open("w") as file:
        for row in pool.imap_unordered(partial(examine, **sizes), seeds):
            table.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
    return table


def is_solved(row: dict[str, Any], objective: str) -> bool:
    ours = row[objective]["ours"]
    return bool(
        ours["value"] <= GAMMA_TOL if objective == "gamma" else ours["excess"] <= EXCESS_TOL
    )


def has_kink(row: dict[str, Any]) -> bool:
    return row["kind"].split()[1] in ("absolute", "pinball", "hinge")


def summary(table: list[dict[str, Any]]) -> None:
    """Print counts, worst excess, evaluations and seconds for each objective."""
    n = len(table)
    for objective in OBJECTIVES:
        ours = [row[objective]["ours"] for row in table]
        theirs = [row[objective]["SLSQP"] for row in table]
        solved = sum(is_solved(row, objective) for row in table)
        evaluations = [o["evaluations"] for o in ours]
        print(f"\n{objective}: anymix solved {solved} of {n}")
        if objective == "gamma":
            print(f"  largest γ {max(o['value'] for o in ours):.0e} of the worst loss")
            print(f"  SLSQP solved {sum(t['best'] <= GAMMA_TOL for t in theirs)}")
        else:
            print(f"  worst excess over SLSQP's best {max(o['excess'] for o in ours):+.0e}")
            lower = sum(o["excess"] < -EXCESS_TOL for o in ours)
            print(f"  below SLSQP's best by more than {EXCESS_TOL:.0e}: {lower}")
        print(f"  evaluations: median {np.median(evaluations):.0f}, most {max(evaluations):.0f}")
        for kinked in (False, True):
            few = [row[objective]["ours"]["rounds"] for row in table if has_kink(row) == kinked]
            if few:
                told = f"median {np.median(few):.0f}, 9 in 10 {np.quantile(few, 0.9):.0f}"
                print(f"  rounds, {'kinks' if kinked else 'smooth'}: {told}, most {max(few)}")
        seconds = [float(np.median([o["seconds"] for o in side])) for side in (ours, theirs)]
        print(f"  seconds, median: anymix {seconds[0]:.4f}, SLSQP (all starts) {seconds[1]:.4f}")
        failed = [row["seed"] for row in table if not is_solved(row, objective)]
        if failed:
            print(f"  NOT solved: seeds {failed}")
    over = [row["seed"] for row in table if row["regret"]["ours"]["value"] > row["bound"]]
    print(f"\nregret at most ηM: {n - len(over)} of {n}{f'; NOT for seeds {over}' if over else ''}")


def main(
    quick: bool = False, n: int = 200, largest_p: int = 100, largest_m: int = 10_000
) -> list[dict[str, Any]]:
    sizes = {"largest_p": largest_p, "largest_m": largest_m}
    if quick:
        table = [examine(seed, 2, 60, largest_p=8, largest_m=600) for seed in range(5)]
    else:
        path = Path(tempfile.mkdtemp(prefix="anymix-")) / "random_problems.jsonl"
        print(f"{n} random problems; answers go to {path}", flush=True)
        table = examine_all(range(n), 2, path, sizes)
    summary(table)
    return table


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main("--quick" in sys.argv, *numbers)
