"""Kernel mean matching: seconds and objective beside skada, in one run on the same rows.

    python -m benchmarks.kmm

Source rows N(0, I), target rows N(0.3, 0.64 I) in 20 dimensions, both n; Gaussian kernel of default
width.  Each time covers kernel and quadratic program.  Objectives are recomputed in float64
from the weights and divided by n^2; "off" is the largest violation of a constraint, over n.
"""

import importlib.util
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from anymix.estimators._kmm_qp import BoxAndBand, mean_matching_weights

Array = NDArray[np.float64]
B, SPEED_TARGET = 1000.0, 4.0


def rows(n: int, d: int = 20, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), 0.8 * rng.normal(size=(n, d)) + 0.3


def bounds_of(n: int) -> BoxAndBand:
    eps = (np.sqrt(n) - 1.0) / np.sqrt(n)
    return BoxAndBand(B, n * (1.0 - eps), n * (1.0 + eps))


def ours(X: Array, X_target: Array) -> Array:
    return mean_matching_weights(X, X_target, "rbf", None, bounds_of(len(X)), 1e-4).weights


def skada(X: Array, X_target: Array) -> Array:
    from skada import KMMReweightAdapter

    sample_domain = np.repeat([1, -2], [len(X), len(X_target)])
    adapter = KMMReweightAdapter(B=B)
    adapter.fit(np.concatenate([X, X_target]), sample_domain=sample_domain)
    return np.asarray(adapter.source_weights_)


def measure(name: str, method: Callable[[Array, Array], Array], n: int) -> dict[str, Any]:
    X, X_target = rows(n)
    start = perf_counter()
    b = method(X, X_target)
    seconds = perf_counter() - start
    K, kappa = rbf_kernel(X), n * rbf_kernel(X, X_target).mean(axis=1)
    bounds = bounds_of(n)
    off = max(0.0, -b.min(), b.max() - B, bounds.low - b.sum(), b.sum() - bounds.high) / n
    objective = float(0.5 * b @ (K @ b) - kappa @ b) / n**2
    return {"name": name, "n": n, "seconds": seconds, "objective": objective, "off": off}


def main(quick: bool = False) -> list[dict[str, Any]]:
    methods = {"anymix": ours}
    if importlib.util.find_spec("skada"):
        methods["skada"] = skada
    else:
        print("skada is not installed: anymix alone is measured")
    table = []
    for n in (300, 600) if quick else (2000, 5000):
        of_n = [measure(name, method, n) for name, method in methods.items()]
        for row in of_n:
            print(
                f"n = {n:5d}  {row['name']:7s} {row['seconds']:8.2f} s   "
                f"objective {row['objective']:.7f}   off {row['off']:.0e}"
            )
        if len(of_n) == 2:
            ratio = of_n[1]["seconds"] / of_n[0]["seconds"]
            no_worse = of_n[0]["objective"] <= of_n[1]["objective"]
            print(
                f"           {ratio:.1f} times faster (target at n = 5000: {SPEED_TARGET:.0f}), "
                f"objective {'reached' if no_worse else 'NOT reached'}"
            )
        table += of_n
    return table


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
