"""What does a Dask cluster cost on one machine?  The same parts by two threads and two workers.

    python -m benchmarks.dask_overhead [--quick]

Parts are drawn where they are asked, so that both ways have the same points.  A pass is L, G and
the Hessian at one z; all numbers are ratios within one run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from anymix import DistributionWeightedRegressor
from anymix.core import Problem, Solution, solve
from anymix.densities import GaussianMixtureDensity
from anymix.engines import PartitionedProblem
from anymix.engines.cluster import mapping
from anymix.engines.dask import predict

P, PART = 10, 250_000
LOCAL = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}


def draw(seed: int, size: int, totals: np.ndarray) -> Problem:
    """Some points of ten sources on a line, each of which knows the parabola near its home."""
    rng, homes = np.random.default_rng(seed), np.linspace(-3, 3, P)[:, None]
    domain = np.arange(size) % P
    x = homes[domain, 0] + rng.normal(size=size)
    y = x**2 + 0.3 * rng.normal(size=size)
    said = 2 * homes * x - homes**2
    log_d = -0.5 * (x - homes) ** 2
    return Problem.from_log_densities(log_d, said, y, sample_domain=domain, totals=totals)


def seconds(call: Callable[[], Any], times: int = 3) -> float:
    """The least time of some calls."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    return min(taken)


def measured(problem: PartitionedProblem) -> tuple[float, float, Solution]:
    """The seconds of a pass and of a solve, and what was found."""
    z = np.full((1, P), 1 / P)
    one_pass = seconds(lambda: problem.evaluate_many(z, z))
    start = perf_counter()
    found = solve(problem, remember=False)
    return one_pass, perf_counter() - start, found


def by_threads(draws: list[Callable[[], Problem]]) -> tuple[float, float, float, Solution]:
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        start = perf_counter()
        parts = list(pool.map(lambda one: one(), draws))
        built = perf_counter() - start
        return built, *measured(PartitionedProblem(parts, map=pool.map))


def by_workers(
    draws: list[Callable[[], Problem]], client: Client
) -> tuple[float, float, float, Solution]:
    start = perf_counter()
    parts = [client.submit(one, pure=False) for one in draws]
    mapping(client)(lambda part: part.n_points, parts)
    built = perf_counter() - start
    return built, *measured(PartitionedProblem(parts, map=mapping(client)))


def predicting(m: int, client: Client) -> float:
    """Ratio of workers to threads for predictions at m points of five features."""
    rng = np.random.default_rng(0)
    rows, domain = rng.normal(size=(400, 5)), np.arange(400) % 2
    rows += 2.0 * domain[:, None]
    model = DistributionWeightedRegressor(density=GaussianMixtureDensity(1), random_state=0)
    model.fit(rows, rows.sum(axis=1) ** 2, domain)
    X = da.random.default_rng(0).normal(size=(m, 5), chunks=(min(m, PART), 5))
    here, there = (predict(model, X, client=one) for one in (None, client))
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        ours = seconds(lambda: here.mean().compute(scheduler="threads", pool=pool), 2)
    return seconds(lambda: client.compute(there.mean()).result(), 2) / ours


def compare(m: int, client: Client, started: float) -> dict[str, float]:
    """Ratios of workers to threads at m points."""
    n, size = max(1, m // PART), min(m, PART)
    totals = np.full(P, m / P)
    draws = [partial(draw, i, size, totals) for i in range(n)]
    *ours, found = by_threads(draws)
    *theirs, other = by_workers(draws, client)
    row = {
        "m": m,
        "build": theirs[0] / ours[0],
        "pass": theirs[1] / ours[1],
        "solve": theirs[2] / ours[2],
        "predict": predicting(m, client),
        "start, in passes of threads": started / ours[1],
        "z apart": float(np.abs(found.z - other.z).max()),
    }
    print(f"{m:>9}  " + "  ".join(f"{k} {v:.3g}" for k, v in list(row.items())[1:]), flush=True)
    return row


def main(quick: bool = False) -> list[dict[str, float]]:
    """Print workers/threads for building, a pass and a solve."""
    start = perf_counter()
    with LocalCluster(**LOCAL) as cluster, Client(cluster, set_as_default=False) as client:
        started = perf_counter() - start
        return [compare(m, client, started) for m in ((20_000,) if quick else (10**6, 10**7))]


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
