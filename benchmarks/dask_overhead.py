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
from anymix.core import Problem, solve
from anymix.densities import GaussianMixtureDensity
from anymix.engines import PartitionedProblem
from anymix.engines.cluster import mapping
from anymix.engines.dask import predict

Call = Callable[[], Any]
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


def side_by_side(ours: Call, theirs: Call, times: int = 5) -> float:
    """How much longer the second call takes: both in turn, so that what else runs slows both."""
    taken = np.array([[seconds(ours), seconds(theirs)] for _ in range(times)])
    return float(taken[:, 1].min() / taken[:, 0].min())


def seconds(call: Call) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def built_by_workers(draws: list[Callable[[], Problem]], client: Client) -> list[Any]:
    parts = [client.submit(one, pure=False) for one in draws]
    mapping(client)(lambda part: part.n_points, parts)
    return parts


def predicting(m: int, client: Client, pool: ThreadPoolExecutor) -> float:
    """Workers/threads for predictions at m points of five features."""
    rng = np.random.default_rng(0)
    rows, domain = rng.normal(size=(400, 5)), np.arange(400) % 2
    rows += 2.0 * domain[:, None]
    model = DistributionWeightedRegressor(density=GaussianMixtureDensity(1), random_state=0)
    model.fit(rows, rows.sum(axis=1) ** 2, domain)
    X = da.random.default_rng(0).normal(size=(m, 5), chunks=(min(m, PART), 5))
    here, there = (predict(model, X, client=one).mean() for one in (None, client))
    return side_by_side(
        lambda: here.compute(scheduler="threads", pool=pool),
        lambda: client.compute(there).result(),
        3,
    )


def compare(m: int, client: Client, started: float) -> dict[str, float]:
    """Ratios of workers to threads at m points."""
    n, size = max(1, m // PART), min(m, PART)
    totals = np.full(P, m / P)
    draws = [partial(draw, i, size, totals) for i in range(n)]
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        ours = PartitionedProblem(list(pool.map(lambda one: one(), draws)), map=pool.map)
        theirs = PartitionedProblem(built_by_workers(draws, client), map=mapping(client))
        both, z, found = (ours, theirs), np.full((1, P), 1 / P), []
        row = {
            "m": m,
            "pass": side_by_side(*(partial(one.evaluate_many, z, z) for one in both)),
            "solve": side_by_side(*(lambda o=o: found.append(solved(o)) for o in both), 2),
            "predict": predicting(m, client, pool),
            "start, in passes": started / seconds(partial(ours.evaluate_many, z, z)),
            "z apart": float(np.abs(found[0] - found[1]).max()),
        }
    print(f"{m:>9}  " + "  ".join(f"{k} {v:.3g}" for k, v in list(row.items())[1:]), flush=True)
    return row


def solved(problem: PartitionedProblem) -> np.ndarray:
    return solve(problem, remember=False).z


def main(quick: bool = False) -> list[dict[str, float]]:
    """Print workers/threads for a pass, a solve and predictions."""
    start = perf_counter()
    with LocalCluster(**LOCAL) as cluster, Client(cluster, set_as_default=False) as client:
        started = perf_counter() - start
        return [compare(m, client, started) for m in ((20_000,) if quick else (10**6, 10**7))]


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
