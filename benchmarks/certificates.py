"""How often does a default certificate fail, and how far above the truth is it?

    python -m benchmarks.certificates [--quick] [--runs 1000] [--way given] [--p 3] [--n 200] ...

In every cell sources are given (`from_sources(...).fit`) or trained (`fit`), n rows a source are
drawn, a model is learned, and its certificate is held against what the deployed model loses in
truth.  A half is counted where it is claimed; 5 % of failures are allowed for both together.  Slack
is the mean distance above the truth, beside that of the rule of version 0.2 on the same rows, which
spread Student's bound over all rounded z (and failed where harm is rare).
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from itertools import product
from multiprocessing import Pool
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.core import LossSummary, mean_upper_bound, n_rounded
from anymix.core.guarantees.certificate import rounded
from anymix.densities import GaussianMixtureDensity
from anymix.sources import LearningSettings, combined_predictions, consult, learn, learn_fold
from benchmarks.worlds import LABELS, NOISES, World

WAYS, SIZES, ROWS = ("given", "trained"), (3, 10), (20, 40, 200, 1000)
CONFIDENCE, N_WORLDS, N_TRUTH, N_BEFORE = 0.95, 8, 20_000, 100
# Calibrations that version 0.2 chose from beside z.
CALIBRATIONS = 6


class Cell(NamedTuple):
    """A way to come by sources, how many there are, rows of each, and what blurs the targets."""

    way: str
    p: int
    n: int
    noise: str


class Outcome(NamedTuple):
    """One run: bound less truth of each half, NaN where none is claimed; the same of 0.2."""

    loss: float
    regret: float
    loss_before: float
    regret_before: float
    grounds: tuple[str, str]


def run(cell: Cell, seed: int) -> Outcome:
    """Draw rows, learn, certify, and hold the certificate against the truth."""
    world = World.draw(cell.p, cell.noise, seed % N_WORLDS)
    rng = np.random.default_rng([seed, cell.n, cell.p])
    X, y, domain = world.sample(cell.n, rng)
    new, _, home = world.sample(N_TRUTH, np.random.default_rng(seed % N_WORLDS))
    loss = "cross_entropy" if world.labels else "squared"
    if cell.way == "given":
        found = learn(world.tables(X, y, domain), LearningSettings(loss=loss, consult=True))
        certificate, said = (
            found.evidence.certificate,
            combined_predictions(world.tables(new), found.combination),
        )
        own = world.tables(new).predictions[home, np.arange(home.size)]
    else:
        certificate, said, own = trained(world, X, y, domain, new, home)

    def worst(values: Any) -> float:
        return float(max(values[home == k].mean() for k in range(cell.p)))

    loss_now = worst(world.expected(said, new, certificate.clip))
    c = certificate.clip
    regret_now = worst(world.expected(said, new, c) - world.expected(own, new, c))
    before = (np.nan, np.nan)
    if cell.way == "given" and seed < N_BEFORE:
        before = as_before(world, X, y, domain, new, home)
    return Outcome(
        _excess(certificate.loss_upper, loss_now),
        _excess(certificate.regret_upper, regret_now),
        *before,
        (certificate.loss_ground, certificate.regret_ground),
    )


def _excess(bound: float | None, truth: float) -> float:
    return np.nan if bound is None else bound - truth


def trained(world: World, X: Any, y: Any, domain: Any, new: Any, home: Any) -> tuple[Any, Any, Any]:
    """Train plain sources by `fit`; what the model and each own model say of new rows."""
    density = GaussianMixtureDensity(1)
    if world.labels:
        learner: Any = LogisticRegression(C=10.0, max_iter=200)
        model: Any = DistributionWeightedClassifier(learner, density, random_state=0)
    else:
        model = DistributionWeightedRegressor(Ridge(1e-3), density, random_state=0)
    model.fit(X, y, sample_domain=domain)
    tables = model.evaluate(new)
    own = tables.predictions[home, np.arange(home.size)]
    return model.certificate_, combined_predictions(tables, model.combination_), own


def as_before(
    world: World, X: Any, y: Any, domain: Any, new: Any, home: Any
) -> tuple[float, float]:
    """The rule of version 0.2: one z on all rows, rounded, and Student's bound over all of them."""
    loss = "cross_entropy" if world.labels else "squared"
    tables, p = world.tables(X, y, domain), world.p
    used, *_ = learn_fold(tables, LearningSettings(loss=loss, consult=True))
    z = rounded(used.z)
    judged = consult(tables, loss).tables.weighed(used.calibration).problem(loss, used.eta)
    delta = (1 - CONFIDENCE) / (2 * CALIBRATIONS * n_rounded(p))
    homes = LossSummary.at(judged, z).samples
    bounds = [mean_upper_bound(one.losses, delta, "student") for one in homes]
    pairs = [mean_upper_bound(one.losses - one.own, delta, "student") for one in homes]
    fresh = world.tables(new).heard(used.consulting)
    weighed = fresh.weighed(used.calibration)
    said = type(used)(z, used.eta).predict(weighed.log_masses, fresh.predictions)
    own = fresh.predictions[home, np.arange(home.size)]
    losses, owns = world.expected(said, new), world.expected(own, new)
    true = [(losses[home == k].mean(), (losses - owns)[home == k].mean()) for k in range(p)]
    return max(bounds) - max(a for a, _ in true), max(pairs) - max(b for _, b in true)


def judge(cell: Cell, found: list[Outcome]) -> dict[str, Any]:
    """Count failures, of each half and of both together, and average the slack."""
    table = np.array([one[:4] for one in found])
    claimed = ~np.isnan(table[:, :2])
    failed = np.where(claimed, table[:, :2] < 0, False)
    row: dict[str, Any] = {**cell._asdict(), "runs": len(found)}
    for i, half in enumerate(("loss", "regret")):
        n = int(claimed[:, i].sum())
        row[half] = float(failed[:, i].sum() / n) if n else None
        row[f"{half} slack"] = float(table[claimed[:, i], i].mean()) if n else None
        old = table[~np.isnan(table[:, 2 + i]), 2 + i]
        row[f"{half} slack before"] = float(old.mean()) if old.size else None
        row[f"{half} before"] = float((old < 0).mean()) if old.size else None
    row["joint"] = float(failed.any(axis=1).mean()) if claimed.any() else None
    row["ground"] = "/".join(sorted({ground for one in found for ground in one.grounds}))
    return row


def measure(cell: Cell, runs: int) -> dict[str, Any]:
    """Run one cell in one thread."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judge(cell, [run(cell, seed) for seed in range(runs)])


def cells(quick: bool, **some: Any) -> Iterator[Cell]:
    """Name the cells, small ones first; `some` leaves those that have its values."""
    noises = ("Gaussian", LABELS) if quick else NOISES
    sizes, rows = ((3,), (200,)) if quick else (SIZES, ROWS)
    for n, p, way, noise in product(rows, sizes, WAYS, noises):
        cell = Cell(way, p, n, noise)
        if all(value in (None, getattr(cell, name)) for name, value in some.items()):
            yield cell


def shown(row: dict[str, Any]) -> str:
    """One line of the table."""

    def share(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g}"

    names = [row["way"], row["noise"], row["p"], row["n"]]
    rates = [share(row[name]) for name in ("joint", "regret", "loss")]
    slack = [f"{number(row[f'{h} slack'])} ({number(row[f'{h} slack before'])})" for h in HALVES]
    return "| " + " | ".join(map(str, [*names, row["runs"], *rates, *slack, row["ground"]])) + " |"


HALVES = ("regret", "loss")
HEAD = (
    "| sources | noise | p | n | runs | both fail, % | regret, % | loss, % | regret slack (0.2) | "
    "loss slack (0.2) | ground |\n|---|---|--:|--:|--:|--:|--:|--:|---|---|---|"
)


def main(quick: bool = False, runs: int = 1000, out: str | None = None, **some: Any) -> None:
    """Print a line for each cell; the rows go to a file, too, if one is named."""
    print(HEAD)
    n_runs = 3 if quick else runs
    with Pool(1 if quick else 2) as pool:
        jobs = [pool.apply_async(measure, (cell, n_runs)) for cell in cells(quick, **some)]
        for job in jobs:
            row = job.get()
            print(shown(row), flush=True)
            if out is not None:
                with open(out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--noise", choices=NOISES)
    parser.add_argument("--p", type=int)
    parser.add_argument("--n", type=int)
    main(**vars(parser.parse_args()))
