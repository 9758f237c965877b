"""What it costs that strangers' graphs run in a process of their own.

    python -m benchmarks.sandbox

A model of three sources is saved and read; predictions in the limited process and in this one are
made in turn, so that both see the same machine.  Ratios of the medians are printed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor

import anymix
from anymix.densities import DomainClassifier

N, D, ROUNDS = 100_000, 20, 7
LEARNERS: dict[str, Any] = {
    "linear": Ridge(),
    "network": MLPRegressor(
        hidden_layer_sizes=(50,), solver="lbfgs", max_iter=3000, random_state=0
    ),
    "forest": RandomForestRegressor(30, min_samples_leaf=5, random_state=0),
}
DENSITIES: dict[str, Any] = {"kernels": None, "domain classifier": DomainClassifier()}


def seconds(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def fitted(learner: Any, density: Any) -> Any:
    rng = np.random.default_rng(0)
    domain = np.repeat(["north", "south", "west"], 400)
    X = rng.normal(size=(1200, D)) + np.repeat([-1.0, 0.0, 1.0], 400)[:, None]
    y = np.abs(X).sum(axis=1)
    model = anymix.DistributionWeightedRegressor(learner, density, random_state=0)
    return model.fit(X, y, sample_domain=domain)


def ratio(folder: str, rows: Any) -> tuple[float, float]:
    """Return the seconds in this process, and how many times as long the other takes."""
    apart, here = anymix.load(folder), anymix.load(folder, in_process=True)
    np.testing.assert_array_equal(apart.predict(rows[:100]), here.predict(rows[:100]))
    pairs = [
        (seconds(lambda: here.predict(rows)), seconds(lambda: apart.predict(rows)))
        for _ in range(ROUNDS)
    ]
    own, other = (median(times) for times in zip(*pairs, strict=True))
    return own, other / own


def main(quick: bool = False) -> None:
    """Print ratios; `quick` tries fewer rows."""
    largest = 10_000 if quick else N
    rows = np.random.default_rng(1).normal(size=(largest, D))
    print(f"{'predictor':<10} {'weights':<18} {'rows':>7} {'here, s':>9} {'apart / here':>13}")
    with tempfile.TemporaryDirectory() as place:
        for name, learner in LEARNERS.items():
            for kind, density in DENSITIES.items():
                folder = f"{place}/{name}-{kind}".replace(" ", "-")
                anymix.save(fitted(learner, density), folder)
                for n in (1, 1000, largest):
                    own, times = ratio(folder, rows[:n])
                    print(f"{name:<10} {kind:<18} {n:>7} {own:>9.4f} {times:>13.2f}")


if __name__ == "__main__":
    main()
