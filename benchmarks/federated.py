"""Sites asked in rounds: what rounds tell of a row.

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
planes    of labels, gradients of the generalist at steep coefficients: 0 or 1 on either side of a
          plane, so that the difference of two of them is the row in between, with its features.
          Seven directions, 140 steps; sites refuse a spread of log-odds above `MOST_SPREAD`

A row counts as recovered if its log-odds are known within .05, by at most four guesses a row;
by planes, if both features are known within .02 of their standard deviation.
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

from anymix.engines.generalist import MOST_SPREAD
from anymix.engines.site import own_sums, part_of_site
from anymix.engines.site_queries import LEAST_WIDTH
from anymix.sources import Block, LinearRows, NumberColumns, Tables

WORDS = {"loss": "squared", "rule": "marginal"}
FOLD = {"folds": np.array(1), "without": np.array(-1), "homes": np.ones(2)}
PART = {"parts": np.array(1), "z.0": np.full(2, 0.5)}
NEAR = 0.05


def site(m: int, seed: int) -> tuple[Block, Any]:
    """A site of m rows that two sources see: its part, and the log-odds of its rows."""
    rng = np.random.default_rng(seed)
    odds, errors = rng.normal(0.0, 2.0, m), rng.normal(size=(2, m))
    tables = Tables(np.stack([odds, np.zeros(m)]), errors).labelled(np.zeros(m), 0)
    return part_of_site(tables), np.sort(odds)


def losses(part: Block, m: int, Z: Any, **arrays: Any) -> Any:
    """What the site answers, without its checks."""
    given = {"eta": np.array(1e-9), "totals": np.full(2, float(m)), "Z": Z, **FOLD, **PART}
    found = part.answer("evaluate", WORDS, given | arrays)
    return own_sums(found, int(part.tables.domain[0]))["losses"]


def poles(part: Block, m: int) -> Any:
    """Log-odds that a rational function through 1000 losses has its poles at."""
    b = np.linspace(-12, 12, 1000)
    z = 1.0 / (1.0 + np.exp(-b))
    L = losses(part, m, np.column_stack([z, 1.0 - z]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = AAA(np.exp(b), L, rtol=1e-13, max_terms=200).poles()
    real = found[(np.abs(found.imag) < 0.05 * np.abs(found.real)) & (found.real < 0)].real
    return -np.log(-real)


def calibrated(part: Block, m: int, width: float, offset: float) -> float:
    """What the site answers under one calibration."""
    given = {
        "temperature.0": np.full(2, width),
        "offset.0": np.array([-offset / width, 0.0]),
        "floor.0": np.array(-700.0),
        "sharpness.0": np.array(1.0),
    }
    return float(losses(part, m, np.full((1, 2), 0.5), **given)[0])


def peaks(part: Block, m: int, width: float) -> Any:
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
    ways: dict[str, Callable[[Block, int], Any]] = {"poles, from z alone": poles}
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


def planes(m: int, spread: float, seed: int) -> float:
    """Share of rows whose two features a server finds that asks for sums beyond planes."""
    rng = np.random.default_rng(seed)
    X, known = rng.normal(size=(m, 2)), set()
    rows = LinearRows(
        NumberColumns(1.0, False), X, np.zeros(m, int), np.ones(m), np.zeros(m, np.intp), 2
    )
    offsets, b = np.linspace(-4, 4, 800), 40
    for angle in rng.uniform(0, np.pi, 7):
        u = spread * np.array([np.cos(angle), np.sin(angle)])
        theta = np.column_stack([np.tile(u, (offsets.size, 1)), -spread * offsets])
        asked = [{"theta": t[:, None], "without": np.full(b, -1)} for t in theta.reshape(-1, b, 3)]
        sums = np.concatenate([rows.answer("step", {}, one)["gradient"][:, 0] for one in asked])
        for width in (1, 2, 4, 8, 16, 32):
            between = sums[:-width] - sums[width:]
            single = between[np.abs(between[:, 2] - 1) < 0.03]
            away = np.abs(X - (single[:, :2] / single[:, 2:])[:, None]).max(axis=2)
            known |= set(away.argmin(axis=1)[away.min(axis=1) < 0.02].tolist())
    return len(known) / m


def steep(sizes: tuple[int, ...], trials: int) -> None:
    for spread in (1e4, MOST_SPREAD, 10.0):
        cells = [np.mean([planes(m, spread, seed) for seed in range(trials)]) for m in sizes]
        shares = " | ".join(f"{cell:.2f}" for cell in cells)
        print(f"| planes, log-odds of spread {spread:g} | {shares} |", flush=True)


def main(quick: bool = False) -> None:
    steep((4, 8) if quick else (4, 8, 20, 100), 2 if quick else 10)
    attacks((1, 4, 8) if quick else (1, 2, 4, 8, 20, 100), 2 if quick else 10)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
