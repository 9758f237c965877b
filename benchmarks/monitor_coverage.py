"""How often do the monitor's intervals hold?  Shares one by one, all at once, expected losses.

    python -m benchmarks.monitor_coverage [--quick] [--runs 1000] [--workers 2] [--power 1]

p Gaussian sources with their true responsibilities, or a power of these: with 3 they are far too
sure.  Held-out rows, their losses and traffic are drawn anew in each run.
Overlap: the likelier of two sources is the wrong one for 2 % of their rows, or for 24 %.
The losses of source k have the mean 1 + k/2 and depend on where the row lies: squared Gaussian
errors (skewness 2.8), or log-normal (6.2).  Widths are beside those of the percentiles of resampled
mixtures, which the monitor had before, in the same runs.
"""

import argparse
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from anymix.monitor import estimate_mixture, expected_loss
from anymix.monitor.mixture import invert, whitener
from anymix.monitor.uncertainty import (
    confusion_matrix,
    exact_interval,
    posterior,
    resampled_means,
    resampled_source_means,
    worth,
)

Array = NDArray[np.float64]
CONFIDENCE = 0.95
MIXTURES = {
    (2, "inside"): [0.7, 0.3],
    (2, "vertex"): [1.0, 0.0],
    (3, "inside"): [0.5, 0.3, 0.2],
    (3, "edge"): [0.7, 0.3, 0.0],
    (3, "vertex"): [1.0, 0.0, 0.0],
    (5, "inside"): [0.4, 0.25, 0.15, 0.1, 0.1],
    (5, "edge"): [0.6, 0.3, 0.1, 0.0, 0.0],
    (5, "vertex"): [1.0, 0.0, 0.0, 0.0, 0.0],
}
# How far the centres are from the origin, each along its own axis.
OVERLAPS = {"small": 2.8, "large": 1.0}
ROWS, TRAFFIC = (20, 40, 200, 1000), (100, 3000)
LOSSES: dict[str, Callable[[Array], Array]] = {
    "squared": np.square,
    "skewed": lambda error: np.exp(error - 0.5),
}
# The old way costs as much as all else; so many runs show its width and, roughly, its coverage.
OLD_RUNS, OLD_RESAMPLES = 100, 200
FIGURES = ("share", "worst share", "all shares", "squared loss", "skewed loss")


class Cell(NamedTuple):
    """One line of the table."""

    p: int
    where: str
    rows: int
    n: int
    overlap: str
    power: float = 1.0


def draw(domain: Any, cell: Cell, rng: np.random.Generator) -> tuple[Array, Array]:
    """Log-responsibilities (p, n) of rows of these sources, and how far each is from its centre."""
    x, distance = rng.normal(size=(cell.p, len(domain))), OVERLAPS[cell.overlap]
    off = x[domain, np.arange(len(domain))]
    x[domain, np.arange(len(domain))] += distance
    return log_softmax(cell.power * distance * x, axis=0), off


def percentiles(tables: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """The old way: percentiles of λ̂ on resampled rows, shares and weights fixed."""
    log_t, log_r, domain = tables
    traffic, reference = np.exp(log_t), np.exp(log_r)
    mixture = np.full(len(reference), 1 / len(reference))
    for _ in range(3):
        t, r = posterior(traffic, mixture), posterior(reference, mixture)
        W = whitener(t, r, domain)
        mixture = invert(W, confusion_matrix(r, domain), t.mean(axis=1))
    Cs = resampled_source_means(r, domain, OLD_RESAMPLES, rng)
    draws = invert(W, Cs, resampled_means(t, OLD_RESAMPLES, rng))
    tail = 50 * (1 - CONFIDENCE)
    lower, upper = np.percentile(draws, [tail, 100 - tail], axis=0)
    n = len(t.T) * worth(reference, confusion_matrix(reference, domain), domain)
    least, most = exact_interval(mixture, n, CONFIDENCE)
    return np.minimum.reduce([lower, least, mixture]), np.maximum.reduce([upper, most, mixture])


def one_run(cell: Cell, rng: np.random.Generator, old: bool) -> dict[str, Any]:
    """Which intervals hold, and how wide they are."""
    p, mixture = cell.p, np.array(MIXTURES[cell.p, cell.where])
    domain = np.repeat(np.arange(p), cell.rows)
    log_r, off = draw(domain, cell, rng)
    tables = draw(rng.choice(p, cell.n, p=mixture), cell, rng)[0], log_r, domain
    e = estimate_mixture(*tables, confidence=CONFIDENCE, rng=rng)
    error = (rng.normal(size=domain.size) + 0.5 * off) / np.sqrt(1.25)
    mean = 1 + np.arange(p) / 2
    row: dict[str, Any] = {"width": np.mean(e.upper - e.lower)}
    row["shares"] = holds(e.lower, e.upper, mixture)
    row["all shares"] = holds(*e.intervals(simultaneous=True), mixture).all()
    for name, loss in LOSSES.items():
        found = expected_loss(e, *tables, mean[domain] * loss(error))
        row[f"{name} loss"] = holds(found.lower, found.upper, mean @ mixture)
        row[f"{name} width"] = found.upper - found.lower
    if old:
        lower, upper = percentiles(tables, rng)
        row["old shares"] = holds(lower, upper, mixture)
        row["ratio"] = row["width"] / np.mean(upper - lower)
    return row


def holds(lower: Any, upper: Any, truth: Any) -> Any:
    """Whether the truth lies in each interval, but for rounding."""
    return (lower <= truth + 1e-9) & (truth <= upper + 1e-9)


def measure(cell: Cell, runs: int, old_runs: int = OLD_RUNS) -> dict[str, Any]:
    """Coverage in one cell: of a share, of the worst share, of all at once, of both losses."""
    rng = np.random.default_rng([0, *map(ord, "".join(map(str, cell)))])
    found = [one_run(cell, rng, i < old_runs) for i in range(runs)]
    shares = np.mean([row["shares"] for row in found], axis=0)
    old = np.mean([row["old shares"] for row in found[:old_runs]], axis=0)
    means = {name: float(np.mean([row[name] for row in found])) for name in FIGURES[2:]}
    middle = {
        name: float(np.median([row[name] for row in found if name in row]))
        for name in ("width", "ratio", "squared width", "skewed width")
    }
    worst = {"worst share": float(shares.min()), "old": float(old.min())}
    return {"cell": cell, "share": float(shares.mean())} | worst | means | middle


def cells(quick: bool = False, power: float = 1.0) -> list[Cell]:
    """Every combination, or a few that are quick."""
    rows, traffic = ((20, 200), (100,)) if quick else (ROWS, TRAFFIC)
    places = [key for key in MIXTURES if not quick or key[0] == 3]
    return [Cell(*key, m, n, o, power) for m, n, o, key in product(rows, traffic, OVERLAPS, places)]


def summary(table: list[dict[str, Any]]) -> list[str]:
    """A line for each number of rows, size of traffic and overlap: the worst of its cells."""
    lines = [
        "| held-out rows a source | traffic | overlap | a share | worst share | all shares | "
        "squared loss | skewed loss | worst share, old | width, new/old |",
        "|" + "---|" * 10,
    ]
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in table:
        cell = row["cell"]
        groups.setdefault((cell.rows, cell.n, cell.overlap), []).append(row)
    for key, rows in groups.items():
        low = " | ".join(f"{min(row[name] for row in rows):.3f}" for name in (*FIGURES, "old"))
        ratios = sorted(row["ratio"] for row in rows)
        width = f"{np.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        lines.append(f"| {' | '.join(map(str, key))} | {low} | {width} |")
    return lines


def short(table: list[dict[str, Any]], runs: int) -> dict[str, list[str]]:
    """The cells whose coverage is more than two standard errors below what is claimed."""
    least = CONFIDENCE - 2 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / runs)
    return {
        name: [f"{' '.join(map(str, row['cell']))}: {row[name]:.3f}" for row in found]
        for name in FIGURES
        if (found := [row for row in table if row[name] < least])
    }


def show(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print each cell when it is done."""
    print("p where rows n overlap: " + ", ".join(FIGURES) + "; width, new/old, old's worst share")
    table = []
    for row in rows:
        table.append(row)
        numbers = " ".join(f"{row[name]:.3f}" for name in FIGURES)
        print(
            f"{' '.join(map(str, row['cell']))}: {numbers}; {row['width']:.3f} {row['ratio']:.2f} "
            f"{row['old']:.3f}",
            flush=True,
        )
    return table


def main(
    quick: bool = False, runs: int | None = None, workers: int = 2, power: float = 1.0
) -> list[dict[str, Any]]:
    runs, asked = runs or (100 if quick else 1000), cells(quick, power)
    with ProcessPoolExecutor(workers) as pool:
        table = show(pool.map(measure, asked, [runs] * len(asked)))
    print("\n" + "\n".join(summary(table)) + f"\n\n{len(table)} cells, {runs} runs each")
    for name, found in short(table, runs).items():
        print(
            f"short of {CONFIDENCE} by more than two standard errors, {name}:", *found, sep="\n  "
        )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Coverage of the monitor's intervals")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--power", type=float, default=1.0)
    main(**vars(parser.parse_args()))
