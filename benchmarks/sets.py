"""Do sets cover on each source and on mixtures, and how large are they beside the oracle's?

    python -m benchmarks.sets [--quick] [--runs 1000] [--workers 2]

p sources in the plane whose rows overlap, a linear model of each for what is not linear, noise of
another size at each.  In each run n held-out rows a source teach the combination in three parts;
sets with α = 0.1 are then made from these rows, cross-fitted, and from n fresh ones.  `plain` is
the largest p-value of plain errors, `anymix` what `predict_interval` and `predict_set` do; the
oracle is told which source each row comes from and asks its fresh rows alone.
"""

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from anymix.core import (
    Calibration,
    Combination,
    CrossFittedCombination,
    ErrorScale,
    errors_at,
    simplex,
)
from anymix.estimators._conformal import Judges, cross_fitted, error_scale_of, split
from anymix.sources import Tables, assign_folds, combined_predictions

Array = NDArray[np.float64]
ALPHA, N_CLASSES, N_WORLDS, N_MIXTURES = 0.1, 4, 8, 20
TEMPERATURES = (1.0, 1.3, 2.0)
SOURCES, ROWS, KINDS = (3, 10), (20, 40, 200, 1000), ("gauss", "t2.1", "labels")
WAYS = ("plain, fresh", "plain, crossed", "anymix, fresh", "anymix, crossed")


class Cell(NamedTuple):
    """One line of the table."""

    p: int
    n: int
    kind: str


class World:
    """p sources, and how their rows come about; `spread` is how far apart their centres lie."""

    def __init__(self, p: int, kind: str, seed: int, spread: float = 1.5):
        rng = np.random.default_rng([seed, p])
        self.p, self.kind = p, kind
        self.centres = rng.normal(size=(p, 2)) * spread
        self.noise = np.exp(rng.uniform(-0.5, 0.5, p))
        self.truth = rng.normal(size=(8, N_CLASSES))
        self.models = [self._model(k, rng) for k in range(p)]

    def _model(self, k: int, rng: np.random.Generator) -> Any:
        X = rng.normal(size=(300, 2)) + self.centres[k]
        y = self.targets(X, np.full(300, k), rng)
        if self.kind != "labels":
            return np.linalg.lstsq(np.c_[np.ones(300), X], y, rcond=None)[0]
        y[:N_CLASSES] = np.arange(N_CLASSES)
        return LogisticRegression(max_iter=300).fit(X, y)

    def targets(self, X: Array, domain: Any, rng: np.random.Generator) -> Any:
        if self.kind == "labels":
            known = np.c_[np.ones(len(X)), X, np.sin(X), np.cos(X), X[:, 0] * X[:, 1] / 3]
            shares = softmax(1.5 * known @ self.truth / self.noise[domain][:, None], axis=1)
            u = rng.random(len(X))[:, None]
            return np.minimum((shares.cumsum(axis=1) < u).sum(axis=1), N_CLASSES - 1)
        heavy = self.kind == "t2.1"
        e = 0.3 * rng.standard_t(2.1, len(X)) if heavy else 0.5 * rng.normal(size=len(X))
        return np.sin(X[:, 0]) + 0.5 * X[:, 1] * np.cos(X[:, 0]) + e * self.noise[domain]

    def tables(self, n: int, rng: np.random.Generator) -> Tables:
        """n rows of each source; densities are sharper than the truth, as usual."""
        domain = np.repeat(np.arange(self.p), n)
        X = rng.normal(size=(domain.size, 2)) + self.centres[domain]
        y = self.targets(X, domain, rng)
        log_d = np.stack([-0.65 * ((X - c) ** 2).sum(axis=1) for c in self.centres])
        if self.kind == "labels":
            h = np.stack([np.maximum(m.predict_proba(X), 1e-6) for m in self.models])
            return Tables(log_d, h, y, domain, classes=np.arange(N_CLASSES))
        return Tables(
            log_d, np.stack([np.c_[np.ones(len(X)), X] @ m for m in self.models]), y, domain
        )


world = lru_cache(maxsize=64)(World)


def learn(tables: Tables, kind: str) -> CrossFittedCombination:
    """Learn a temperature and z without each of three parts of the rows.

    To be quick, the temperature is one of three, z takes some steps of a map that raises whoever
    is let down, and nothing else is tried.
    """
    fold, parts, p = assign_folds(tables, 3), [], len(tables.log_masses)
    for t in range(3):
        rows = tables.taken(np.flatnonzero(fold != t))
        # For one number, two thousand rows are enough.
        some = rows.taken(np.arange(0, rows.n_points, max(1, rows.n_points // 2000)))
        own = some.sample_domain, np.arange(some.n_points)
        tried = [Calibration(np.full(p, T), np.zeros(p), -700.0) for T in TEMPERATURES]
        known = max(tried, key=lambda one: some.weighed(one).log_masses[own].mean())
        loss = "cross_entropy" if kind == "labels" else "squared"
        problem, z = rows.weighed(known).problem(loss, 1e-3), simplex.uniform(p)
        for _ in range(5):
            regret = problem.source_losses(z) - problem.own_losses
            z = z * np.exp(regret / np.abs(problem.own_losses).mean() / 2)
            z /= z.sum()
        parts.append(Combination(z, 1e-3, known))
    return CrossFittedCombination(tuple(parts))


def plainly(judges: Judges) -> Judges:
    """The same with errors as they are, and no tilt."""
    plain = ErrorScale(np.ones(judges.error_scales[0].spread.size))
    return replace(judges, error_scales=(plain,) * len(judges.parts))


def sets_of(judges: Judges, said: Any, test: Tables) -> tuple[Array, Array]:
    """Whether each test row is covered, and the size of its set."""
    known, y, (h, log_r) = judges.conformal(), np.asarray(test.targets), said
    if test.classes is None:
        low, high = known.interval(h, log_r, ALPHA).T
        return (low <= y) & (y <= high), high - low
    inside = known.covers([1.0 - one for one in h], log_r, ALPHA).any(axis=0)
    inside[np.arange(y.size), np.mean(h, axis=0).argmax(axis=1)] = True
    return inside[np.arange(y.size), y], inside.sum(axis=1).astype(float)


def oracle(judges: Judges, test: Tables) -> tuple[Array, Array]:
    """Take the quantile of source k's fresh errors for the rows of source k."""
    h, errors = combined_predictions(test, judges.parts[0]), errors_at(judges.h, judges.y)
    limit = np.empty(test.n_points)
    for k in range(len(test.log_masses)):
        known = np.sort(errors[judges.domain == k])
        limit[test.sample_domain == k] = known[-int(ALPHA * (known.size + 1) + 1e-9)]
    y = np.asarray(test.targets)
    if test.classes is None:
        return np.abs(y - h) <= limit, 2 * limit
    inside = 1.0 - h <= limit[:, None]
    inside[np.arange(y.size), h.argmax(axis=1)] = True
    return inside[np.arange(y.size), y], inside.sum(axis=1).astype(float)


def one_run(cell: Cell, seed: int) -> dict[str, Any]:
    """Coverage of each source, (p,), and mean size, of every way."""
    rng, place = np.random.default_rng([seed, *cell[:2]]), world(cell.p, cell.kind, seed % N_WORLDS)
    held, fresh, test = (place.tables(n, rng) for n in (cell.n, cell.n, 300 // cell.p))
    used = learn(held, cell.kind)
    crossed = cross_fitted(held, used, ALPHA)
    new = split(fresh, used, (error_scale_of(crossed, ALPHA),))
    found = {"oracle": oracle(new, test)}
    for name, judges in (("fresh", new), ("crossed", crossed)):
        said = judges.said(test)
        found[f"anymix, {name}"] = sets_of(judges, said, test)
        found[f"plain, {name}"] = sets_of(plainly(judges), said, test)
    domain = np.asarray(test.sample_domain)
    n = np.bincount(domain)
    return {
        name: (np.bincount(domain, covered) / n, float(sizes.mean()))
        for name, (covered, sizes) in found.items()
    }


def measure(cell: Cell, runs: int) -> dict[str, Any]:
    """The least coverage of a source and of a mixture, and sizes beside the oracle's."""
    found = [one_run(cell, seed) for seed in range(runs)]
    mixtures = np.random.default_rng(0).dirichlet(np.ones(cell.p), N_MIXTURES)
    oracle = np.array([run["oracle"][1] for run in found])
    row: dict[str, Any] = {"cell": cell, "oracle": float(np.median(oracle))}
    for way in (*WAYS, "oracle"):
        covered = np.array([run[way][0] for run in found])
        for what, table in (("source", covered), ("mixture", covered @ mixtures.T)):
            error = table.std(axis=0, ddof=1) / np.sqrt(runs)
            mean = table.mean(axis=0)
            row[way, what] = float(mean.min())
            row[way, what, "short"] = float((1 - ALPHA - mean - 2 * error).max())
        row[way, "mean"] = float(covered.mean())
        row[way, "size"] = float(np.median([run[way][1] for run in found] / oracle))
    return row


def cells(quick: bool = False) -> list[Cell]:
    """Every combination, or a few that are quick; the longest last."""
    p, n = ((3,), (20, 40)) if quick else (SOURCES, ROWS)
    return sorted((Cell(*one) for one in product(p, n, KINDS)), key=lambda c: c.p * c.n)


def summary(table: list[dict[str, Any]]) -> list[str]:
    """A line for each cell: coverage of the worst source and of the worst mixture, and size."""
    lines = [
        "| p | rows a source | of | " + " | ".join(WAYS) + " | oracle's size |",
        "|---|---|---|" + "---|" * (len(WAYS) + 1),
    ]
    for row in sorted(table, key=lambda row: (KINDS.index(row["cell"].kind), *row["cell"][:2])):
        said = [
            f"{row[way, 'source']:.3f} {row[way, 'mixture']:.3f} **{row[way, 'size']:.2f}**"
            for way in WAYS
        ]
        lines.append(f"| {' | '.join([*map(str, row['cell']), *said])} | {row['oracle']:.2f} |")
    return lines


def short(table: list[dict[str, Any]]) -> list[str]:
    """What lies more than two standard errors below 1 − α."""
    return [
        f"{' '.join(map(str, row['cell']))}, {way}, worst {what}: {row[way, what]:.4f}"
        for row in table
        for way in WAYS
        for what in ("source", "mixture")
        if row[way, what, "short"] > 0
    ]


def show(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print each cell when it is done."""
    table = []
    for row in rows:
        table.append(row)
        print(summary([row])[-1], flush=True)
    return table


def main(quick: bool = False, runs: int | None = None, workers: int = 2) -> list[dict[str, Any]]:
    """Print coverage of the worst source, of the worst of 20 mixtures, and size / oracle's."""
    runs, asked = runs or (50 if quick else 1000), cells(quick)
    with ProcessPoolExecutor(workers) as pool:
        table = show(pool.map(measure, asked, [runs] * len(asked)))
    print("\n" + "\n".join(summary(table)) + f"\n\n{len(table)} cells, {runs} runs each")
    found = short(table)
    print(
        f"short of {1 - ALPHA} by more than two standard errors:", *(found or ["none"]), sep="\n  "
    )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Coverage and size of sets and intervals")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--workers", type=int, default=2)
    main(**vars(parser.parse_args()))
