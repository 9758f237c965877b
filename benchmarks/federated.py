"""Sites asked in rounds: what rounds tell of a row, and what noise costs.

    python -m benchmarks.federated [--quick]

Attack: a server that has all source folders asks one site of two sources, with m rows, for its loss
at many z or under many calibrations, and takes the sums apart.  With the odds a_i = D_1/D_2 of row
i and the errors e of both models the loss at odds u = z_1/z_2 is

    L(u) = (1/m) Σ_i ((u a_i e_i1 + e_i2) / (u a_i + 1))²

a sum of m functions, each with a pole of its own at −1/a_i: partial fractions would tell a_i of
every row, and then its errors.

poles     1000 z on the simplex, and a rational function through them (AAA), by double precision
peaks     a calibration so sharp that L jumps when its offset passes log a_i: where L changes
          fastest, there is a row.  Sites refuse calibrations below a width (temperature by
          sharpness); here they are asked without that check

A row counts as recovered if its log-odds are told within .05, by no more guesses than four a row.
Then, with noise at the sites: the worst loss and the largest regret of z, on exact numbers, beside
those without noise, and ε at δ = 1e-5.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import AAA
from scipy.signal import find_peaks
from scipy.special import expit

from anymix.core import Problem, solve
from anymix.engines import PartitionedTables, Question, TablePart
from anymix.engines.answering import LEAST_WIDTH, home_of, own_sums, part_of_site, spread
from anymix.engines.lessons import LessonInParts, SaidInParts
from anymix.engines.noise import Noise, releases_in, spent
from anymix.engines.noisy import solve_noisily
from anymix.sources import Tables
from benchmarks.real_data import find

WORDS = {"loss": "squared", "rule": "marginal"}
FOLD = {"folds": np.array(1), "without": np.array(-1), "homes": np.ones(2)}
NEAR = 0.05


def site(m: int, seed: int) -> tuple[TablePart, Any]:
    """A site of m rows that two sources see: its part, and the log-odds of its rows."""
    rng = np.random.default_rng(seed)
    odds, errors = rng.normal(0.0, 2.0, m), rng.normal(size=(2, m))
    tables = Tables(np.stack([odds, np.zeros(m)]), errors).labelled(np.zeros(m), 0)
    return part_of_site(tables), np.sort(odds)


def losses(part: TablePart, m: int, Z: Any, **arrays: Any) -> Any:
    """What the site answers, without its checks."""
    given = {"eta": np.array(1e-9), "totals": np.full(2, float(m)), "Z": Z, **FOLD, **arrays}
    found = part.answer("evaluate", WORDS, given)
    return own_sums(found, home_of(part))["losses"]


def poles(part: TablePart, m: int) -> Any:
    """Log-odds that a rational function through 1000 losses has its poles at."""
    b = np.linspace(-12, 12, 1000)
    z = 1.0 / (1.0 + np.exp(-b))
    L = losses(part, m, np.column_stack([z, 1.0 - z]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = AAA(np.exp(b), L, rtol=1e-13, max_terms=200).poles()
    real = found[(np.abs(found.imag) < 0.05 * np.abs(found.real)) & (found.real < 0)].real
    return -np.log(-real)


def calibrated(part: TablePart, m: int, width: float, offset: float) -> float:
    """What the site answers under one calibration."""
    given = {
        "temperature": np.full(2, width),
        "offset": np.array([-offset / width, 0.0]),
        "floor": np.array(-700.0),
        "sharpness": np.array(1.0),
    }
    return float(losses(part, m, np.full((1, 2), 0.5), **given)[0])


def peaks(part: TablePart, m: int, width: float) -> Any:
    """Log-odds at which the loss changes fastest when an offset passes them."""
    b = np.linspace(-12, 12, int(120 / width) + 1)
    tables = part.tables
    odds, errors = tables.log_masses[0] - tables.log_masses[1], tables.predictions
    # The site's answers in one go; a few of them are asked for, to be sure.
    told = np.empty(b.size)
    for i, rows in enumerate(np.array_split(np.arange(b.size), max(1, b.size * m // 10**6))):
        w = expit((odds - b[rows, None]) / width)
        told[rows] = ((w * errors[0] + (1 - w) * errors[1]) ** 2).mean(axis=1)
        if not i:
            known = [calibrated(part, m, width, b[k]) for k in rows[:: max(1, rows.size // 5)]]
            np.testing.assert_allclose(told[rows[:: max(1, rows.size // 5)]], known, atol=1e-7)
    slope = np.abs(np.gradient(told, b))
    places, _ = find_peaks(slope, prominence=1e-6 * slope.max())
    return b[places]


def recovered(found: Any, odds: Any) -> float:
    """Share of rows whose log-odds are among those found, unless these are too many."""
    if not found.size or found.size > 4 * odds.size:
        return 0.0
    return float((np.abs(found[:, None] - odds).min(axis=0) < NEAR).mean())


def attacks(sizes: tuple[int, ...], trials: int) -> None:
    ways: dict[str, Callable[[TablePart, int], Any]] = {"poles, from z alone": poles}
    for width in (0.01, 0.05, LEAST_WIDTH, 0.25, 1.0):
        ways[f"peaks, calibrations of width {width:g}"] = partial(peaks, width=width)
    print("| share of rows recovered, m rows | " + " | ".join(map(str, sizes)) + " |")
    print("|---" * (len(sizes) + 1) + "|")
    for name, way in ways.items():
        cells = []
        for m in sizes:
            worlds = [site(m, seed) for seed in range(trials)]
            cells.append(np.mean([recovered(way(part, m), odds) for part, odds in worlds]))
        print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)


# --- noise ---------------------------------------------------------------------------------------


def artificial(n: int) -> list[Tables]:
    """Three sites side by side, n rows each."""
    rng, parts = np.random.default_rng(0), []
    for k, centre in enumerate((-2.0, 0.0, 2.0)):
        x = rng.normal(centre, 1.0, n)
        y = np.sin(1.5 * x) + 0.3 * rng.normal(size=n)
        log_masses = np.stack([-0.5 * (x - c) ** 2 for c in (-2.0, 0.0, 2.0)])
        said = np.stack([np.sin(1.5 * c) + 1.5 * np.cos(1.5 * c) * (x - c) for c in (-2, 0, 2)])
        parts.append(Tables(log_masses, np.clip(said, -2, 2)).labelled(y, k))
    return parts


def heart() -> list[Tables] | None:
    """Four hospitals: logistic regressions and Gaussians of half of the rows, at the other half."""
    path = find("heart/heart_4_hospitals.csv", None)
    if path is None:
        return None
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    from anymix import Source, evaluate
    from anymix.densities import GaussianKDE

    frame = pd.read_csv(path)
    y, where = (frame.pop("num") > 0).to_numpy().astype(int), frame.pop("hospital").to_numpy()
    X = frame.fillna(frame.median()).to_numpy(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    drawn = np.random.default_rng(0).random(len(y)) < 0.5
    sources, parts, names = [], [], np.unique(where)
    for name in names:
        own = drawn & (where == name)
        model = LogisticRegression(C=0.1).fit(X[own], y[own])
        sources.append(Source(str(name), model, GaussianKDE(random_state=0).fit(X[own])))
    for k, name in enumerate(names):
        own = ~drawn & (where == name)
        parts.append(evaluate(sources, X[own], np.arange(2)).labelled(y[own], k))
    return parts


def with_noise(parts: list[Tables], noise: Noise, seed: int) -> tuple[PartitionedTables, list[int]]:
    """The sites, answering with noise; and a list that counts releases."""
    rng, count = np.random.default_rng(seed), [0]
    sites = [part_of_site(part) for part in parts]

    def asks(question: Question, given: Any) -> list[Any]:
        count[0] += releases_in(question)
        found = [noise.answer(question, part, rng) for part in sites]
        if question.verb != "evaluate":
            return found
        return [spread(one, k) for k, one in enumerate(found)]

    return PartitionedTables(sites, map=asks), count


def cost(name: str, parts: list[Tables], loss: str, sigmas: tuple[float, ...], trials: int) -> None:
    whole = Tables.concatenate(parts)
    exact: Problem = whole.weighed(None).problem(loss, 1e-3)
    best = solve(exact, "regret").z
    uniform = np.full(best.size, 1.0 / best.size)
    rows = [("no noise", best, None), ("equal weights, nobody asked", uniform, None)]
    # The first has no noise to speak of and cuts no row: what the few steps alone cost.
    for sigma, clip in ((1e-9, 1e6), (1e-9, 1.0), *((sigma, 1.0) for sigma in sigmas)):
        for trial in range(trials if sigma > 1e-6 else 1):
            tables, count = with_noise(parts, Noise(sigma, clip), trial)
            problem = SaidInParts(LessonInParts(tables, -1), None).problem(loss, 1e-3)
            z = solve_noisily(problem, "regret", 20).z
            steps = "20 steps, no noise, " + ("rows cut to 1" if clip == 1 else "no row cut")
            said = steps if sigma < 1e-6 else f"σ = {sigma:g}, rows cut to 1"
            rows.append((said, z, None if sigma < 1e-6 else spent(sigma, count[0])))
    for said in dict.fromkeys(row[0] for row in rows):
        same = [row for row in rows if row[0] == said]
        worst = np.mean([exact.robust_loss(z) for _, z, _ in same])
        regret = np.mean([exact.regret(z) for _, z, _ in same])
        epsilon = "–" if same[0][2] is None else f"{same[0][2]:.1f}"
        print(f"| {name} | {said} | {epsilon} | {worst:.3f} | {regret:.3f} |", flush=True)


def main(quick: bool = False) -> None:
    attacks((1, 4, 8) if quick else (1, 2, 4, 8, 20, 100), 2 if quick else 10)
    sigmas, trials = ((10.0,), 2) if quick else ((2.0, 10.0, 50.0), 10)
    print("\n| rows | noise | ε | worst loss | largest regret |")
    print("|---" * 5 + "|")
    for n in (100,) if quick else (100, 2000):
        cost(f"artificial, {n} rows a site", artificial(n), "squared", sigmas, trials)
    found = heart()
    if found is not None:
        cost("heart", found, "cross_entropy", sigmas, trials)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
