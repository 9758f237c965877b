"""Gaussian KDE: search a bandwidth and score, beside scikit-learn, scipy and the floor, in one run.

    python -m benchmarks.kde [quick]

Rows are N(0, I). "cv" chooses among 15 bandwidths by 5 folds, and scikit-learn's GridSearchCV does
it for the same bandwidths, folds and all cores; "score" is 2000 new points. The floor is what the
distances and exponentials of the textbook method cost at the speed of this machine,

    0.8 (2 n^2 d / GEMM rate + 15 n^2 / exp rate),

0.8 being the share of pairs in different folds. We may go below it: a pair serves both of its rows,
and two of three exponentials are squares. A time marked ~ is extrapolated from a part, since all of
it would take more than a minute. "off" is the largest error against float64 differences, in nats.
"""

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from anymix.densities import GaussianKDE

SIZES = ((2, 20_000), (64, 5_000), (512, 2_000), (64, 20_000), (512, 20_000), (4096, 8_000))
LEAST_GAIN = {(64, 5_000): 40.0, (512, 2_000): 80.0}  # over scikit-learn
MOST_OVER = {(512, 20_000): 3.0}  # times the floor
MEGABYTES = 1000
N_FOLDS = 5
N_QUERIES = 2000


def seconds(call: Callable[[], Any]) -> tuple[Any, float]:
    start = perf_counter()
    answer = call()
    return answer, perf_counter() - start


def rates(size: int = 3000) -> tuple[float, float]:
    """Products a second of a float32 GEMM, and float32 exponentials a second, on all cores."""
    a = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    parts = [-np.abs(part[:100]) for part in np.array_split(a, cpu_count() or 1)]
    outs = [np.empty_like(part) for part in parts]

    def exponentials(i: int) -> None:
        for _ in range(20):
            np.exp(parts[i], out=outs[i])

    with ThreadPoolExecutor(len(parts)) as pool:
        gemm = min(seconds(lambda: a @ a)[1] for _ in range(5))
        exp = min(
            seconds(lambda: list(pool.map(exponentials, range(len(parts)))))[1] for _ in "123"
        )
    return 2 * size**3 / gemm, 20 * sum(part.size for part in parts) / exp


def floor(d: int, n: int, n_bandwidths: int, gemm: float, exp: float) -> float:
    return (1 - 1 / N_FOLDS) * n * n * (2 * d / gemm + n_bandwidths / exp)


def truth(queries: np.ndarray, rows: np.ndarray, bandwidth: float) -> np.ndarray:
    halves = np.array([np.sum(((x - rows) / bandwidth) ** 2, axis=1) / 2 for x in queries])
    least = halves.min(axis=1, keepdims=True)
    sums = np.log(np.mean(np.exp(least - halves), axis=1)) - least[:, 0]
    return sums - rows.shape[1] * np.log(bandwidth * np.sqrt(2 * np.pi))


def per_row(score: Callable[[np.ndarray], Any], queries: np.ndarray, budget: float) -> float:
    """Seconds a query, from as many queries as the budget allows."""
    score(queries[:1])
    size = 8
    while True:
        part = queries[:size]
        time = seconds(lambda part=part: score(part))[1]
        if time > budget / 4 or size >= len(queries):
            return time / len(part)
        size *= 4


def sklearn_cv(rows: np.ndarray, bandwidths: np.ndarray, budget: float) -> tuple[float, str]:
    """Seconds of the grid search, and "~" if they are extrapolated from three of its bandwidths."""
    cut = len(rows) // N_FOLDS
    parts = []
    for h in bandwidths[[0, len(bandwidths) // 2, -1]]:
        model, fit = seconds(lambda h=h: KernelDensity(bandwidth=h).fit(rows[cut:]))
        parts.append(fit + cut * per_row(model.score_samples, rows[:cut], budget / 20))
    guess = float(np.mean(parts)) * len(bandwidths) * N_FOLDS / (cpu_count() or 1)
    if guess > budget:
        return guess, "~"
    search = GridSearchCV(
        KernelDensity(),
        {"bandwidth": bandwidths},
        cv=KFold(N_FOLDS, shuffle=True, random_state=0),
        refit=False,
        n_jobs=-1,
    )
    return seconds(lambda: search.fit(rows))[1], ""


def peak_memory(rows: np.ndarray) -> float:
    """Megabytes at the peak of a fit, the rows among them."""
    tracemalloc.start()
    GaussianKDE(random_state=0).fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak + rows.nbytes) / 1e6


def measure(d: int, n: int, speed: tuple[float, float], budget: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(n, d)), rng.normal(size=(N_QUERIES, d))
    ours, cv = min(
        (seconds(lambda: GaussianKDE(random_state=0).fit(rows)) for _ in range(2)),
        key=lambda timed: timed[1],
    )
    h = ours.bandwidth_
    theirs = KernelDensity(bandwidth=h).fit(rows)
    few = queries[:20]
    exact = truth(few, rows, h)
    sklearn, mark = sklearn_cv(rows, ours.bandwidths_, budget)
    # scipy needs more rows than features, and its square root of a covariance
    scipy = gaussian_kde(rows.T, h) if n > d and d <= 512 else None
    return {
        "size": (d, n),
        "cv": cv,
        "sklearn cv": sklearn,
        "mark": mark,
        "floor": floor(d, n, len(ours.bandwidths_), *speed),
        "score": min(seconds(lambda: ours.score_samples(queries))[1] for _ in range(2)),
        "sklearn score": N_QUERIES * per_row(theirs.score_samples, queries, budget / 20),
        "scipy score": N_QUERIES * per_row(lambda q: scipy.logpdf(q.T), queries, budget / 20)
        if scipy
        else np.nan,
        "off": np.abs(ours.score_samples(few) - exact).max(),
        "sklearn off": np.abs(theirs.score_samples(few) - exact).max(),
        "memory": peak_memory(rows),
    }


def lines(row: dict[str, Any]) -> Iterator[str]:
    d, n = row["size"]
    gain, over = row["sklearn cv"] / row["cv"], row["cv"] / row["floor"]
    yield (
        f"{d:>5} {n:>6} |{row['cv']:>8.3f} {row['mark'] or ' '}{row['sklearn cv']:>8.1f}"
        f" {row['floor']:>7.3f} {gain:>6.0f}x {over:>6.2f}"
        f" |{row['score']:>7.3f} {row['sklearn score']:>8.2f} {row['scipy score']:>7.2f}"
        f" |{row['off']:>8.0e} {row['sklearn off']:>8.0e} |{row['memory']:>6.0f}"
    )
    if row["size"] in LEAST_GAIN:
        yield promise("sklearn / anymix", gain, LEAST_GAIN[row["size"]], gain)
    if row["size"] in MOST_OVER:
        yield promise("anymix / floor", over, over, MOST_OVER[row["size"]])
    if n == 20_000:
        yield promise("peak MB", row["memory"], row["memory"], MEGABYTES)


def promise(what: str, value: float, least: float, most: float) -> str:
    bound = f"at least {least:g}" if value == most else f"at most {most:g}"
    return f"{'':>12} | {what} {value:.3g}, {bound}: {'yes' if least <= most else 'NO'}"


def main(quick: bool = False) -> list[dict[str, Any]]:
    speed = rates(500 if quick else 3000)
    print(f"GEMM {speed[0] / 1e9:.0f} GFLOP/s float32, exp {speed[1] / 1e9:.2f} G/s float32")
    print(
        "             | cv (s)                                   | score 2000 (s)          "
        "| off (nats)        | peak\n"
        "    d      n |  anymix   sklearn   floor   gain  /floor | anymix  sklearn   scipy "
        "|  anymix  sklearn  |   MB"
    )
    table = []
    for d, n in ((2, 300), (40, 200)) if quick else SIZES:
        table.append(measure(d, n, speed, budget=1.0 if quick else 60.0))
        print("\n".join(lines(table[-1])), flush=True)
    return table


if __name__ == "__main__":
    main(quick="quick" in sys.argv[1:])
