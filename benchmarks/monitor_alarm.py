"""How often does the alarm ring?  With drift, without it over a year of looks, and after a fit.

    python -m benchmarks.monitor_alarm power [--runs 400] [--rows 200]
    python -m benchmarks.monitor_alarm looks [--runs 40] [--rows 200] [--days 365]
    python -m benchmarks.monitor_alarm fitted [--runs 60] [--rows 60] [--density kernels]

power: 500 rows of traffic, level 1 %; 2 % or 5 % of them 6 σ away from all sources, all noise 1.15
times as large, or 20 % of them between the sources.
looks: the share of references that ever ring falsely at level 5 %, in daily looks of 500 rows.
fitted: the share of `Monitor.from_tables(model)` that ring falsely at level 5 % after a fit.
"""

import argparse
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from anymix import DistributionWeightedRegressor
from anymix.densities import GaussianKDE, GaussianMixtureDensity
from anymix.monitor import Monitor, Scores, mixture_alarm

Array = NDArray[np.float64]
CENTRES = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])
TRAFFIC = 500


def scores(X: Array) -> Scores:
    """What the true densities of three unit Gaussians in the plane say of rows."""
    log_d = -((X - CENTRES[:, None]) ** 2).sum(axis=2) / 2
    return Scores(log_softmax(log_d, axis=0), -log_d.max(axis=0))


def reference(rows: int, rng: np.random.Generator) -> tuple[Scores, NDArray[np.intp]]:
    """So many held-out rows of each source."""
    domain = np.repeat(np.arange(3), rows)
    return scores(rng.normal(CENTRES[domain])), domain


def drifts(rng: np.random.Generator) -> dict[str, Array]:
    """Traffic of a random mixture, and what may happen to it."""
    k = rng.choice(3, TRAFFIC, p=rng.dirichlet(np.ones(3)))
    X, middle = rng.normal(CENTRES[k]), CENTRES.mean(axis=0)
    away = rng.normal(size=X.shape)
    away *= (6.0 + np.linalg.norm(CENTRES - middle, axis=1).max()) / np.linalg.norm(
        away, axis=1, keepdims=True
    )
    part = (np.arange(TRAFFIC) / TRAFFIC)[:, None]
    return {
        "none": X,
        "2 % at 6 σ": np.where(part < 0.02, middle + away, X),
        "5 % at 6 σ": np.where(part < 0.05, middle + away, X),
        "scale × 1.15": CENTRES[k] + 1.15 * (X - CENTRES[k]),
        "20 % between": np.where(part < 0.2, middle + 0.5 * rng.normal(size=X.shape), X),
    }


def power(runs: int = 400, rows: int = 200, level: float = 0.01) -> dict[str, float]:
    """How often the alarm rings at one look, for each drift."""
    rings: dict[str, list[bool]] = {}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        home, domain = reference(rows, rng)
        for name, X in drifts(rng).items():
            rings.setdefault(name, []).append(
                mixture_alarm(scores(X), home, domain, level, rng=rng).rings
            )
    return {name: float(np.mean(found)) for name, found in rings.items()}


def looks(runs: int = 40, rows: int = 200, days: int = 365, level: float = 0.05) -> dict[str, Any]:
    """The share of references that ever ring without drift, and of single looks with p ≤ level."""
    p_values = np.empty((runs, days))
    rings = np.zeros((runs, days), dtype=bool)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        home, domain = reference(rows, rng)
        always = rng.dirichlet(np.ones(3))
        for day in range(days):
            # Every other reference sees the same mixture each day, the others a new one.
            mixture = rng.dirichlet(np.ones(3)) if seed % 2 else always
            X = rng.normal(CENTRES[rng.choice(3, TRAFFIC, p=mixture)])
            alarm = mixture_alarm(scores(X), home, domain, level, 200, rng, look=day + 1)
            p_values[seed, day], rings[seed, day] = alarm.p_value, alarm.rings
    single = p_values <= level
    return {
        "ever": float(rings.any(axis=1).mean()),
        "one look": float(single.mean()),
        "ever, were each the only one": float(single.any(axis=1).mean()),
    }


def fitted(runs: int = 60, rows: int = 60, density: str = "kernels") -> dict[str, float]:
    """False alarms, and how often expected losses hold, of monitors without new reference rows."""
    centres = np.array([[0.0, 0, 0, 0], [2.0, 0, 0, 0], [0, 2.0, 0, 0]])
    names = np.array(["a", "b", "c"])
    parts = {
        "kernels": (Ridge(), GaussianKDE(random_state=0)),
        "gaussians": (Ridge(), GaussianMixtureDensity(1)),
        "trees": (DecisionTreeRegressor(max_depth=6), GaussianMixtureDensity(1)),
        "auto": (None, "auto"),
    }

    def draw(sizes: Any, rng: np.random.Generator) -> tuple[Array, Array, Any]:
        k = np.repeat(np.arange(3), sizes)
        X = rng.normal(centres[k])
        noise = np.array([0.3, 0.6, 1.0])[k] * rng.normal(size=k.size)
        return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise, names[k]

    rings, holds, ratios = [], [], []
    for seed in range(runs):
        rng = np.random.default_rng([seed, rows])
        learner = DistributionWeightedRegressor(*parts[density], random_state=0)
        X, y, domain = draw([rows] * 3, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = learner.fit(X, y, sample_domain=domain)
        mixture = rng.dirichlet(np.ones(3))
        today = draw(rng.multinomial(TRAFFIC, mixture), rng)[0]
        report = Monitor.from_tables(model, level=0.05, n_bootstrap=200).estimate(today)
        rings.append(report.alarm.rings)
        X, y, domain = draw([3000] * 3, rng)
        error = (model.predict(X) - y) ** 2
        true = float(mixture @ [error[domain == name].mean() for name in names])
        lost = report.expected_loss
        assert lost is not None
        holds.append(lost.lower <= true <= lost.upper)
        ratios.append(lost.value / true)
    return {
        "false alarms": float(np.mean(rings)),
        "expected loss holds": float(np.mean(holds)),
        "expected/true": float(np.mean(ratios)),
    }


MEASURES = {"power": power, "looks": looks, "fitted": fitted}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Rates of the alarm")
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--days", type=int)
    parser.add_argument("--density")
    settings = {name: value for name, value in vars(parser.parse_args()).items() if value}
    found = MEASURES[settings.pop("measure")](**settings)
    print(settings, ", ".join(f"{name}: {value:.3f}" for name, value in found.items()))
