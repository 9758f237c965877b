"""How often does the alarm ring?  With drift, without it over a year of looks, and after a fit.

    python -m benchmarks.monitor_alarm power [--runs 400] [--rows 200]
    python -m benchmarks.monitor_alarm looks [--runs 40] [--rows 200] [--days 365]
    python -m benchmarks.monitor_alarm fitted [--runs 60] [--rows 60] [--density kernels]
    python -m benchmarks.monitor_alarm defaults [--runs 40] [--rows 200] [--days 365] [--kind texts]

power: 500 rows of traffic, level 1 %; 2 % or 5 % of them 6 σ away from all sources, all noise 1.15
times as large, or 20 % of them between the sources.
looks: the share of references that ever ring falsely at level 5 %, in daily looks of 500 rows.
fitted: the share of `Monitor.from_tables(model)` that ring falsely at level 5 % after a fit.
defaults: as looks, of models with default settings of numbers, mixed tables, texts or vectors,
without further reference rows; and how often one look at drifted traffic rings at level 1 %.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
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


SPREAD = np.random.default_rng(3).normal(size=(3, 60)) * 0.35
WORDS = np.array([f"{a}{b}word" for a in "abcdefghij" for b in "abcdefghijklmnopqrstuvwxyzabcd"])
WORD_SHARES = [
    share * np.exp(0.7 * np.random.default_rng(9 + k).normal(size=WORDS.size))
    for k, share in enumerate([1.0 / np.arange(1, WORDS.size + 1)] * 3)
]
QUADS = np.array([[0.0, 0, 0, 0], [2.0, 0, 0, 0], [0, 2.0, 0, 0]])


def rows_of(kind: str, k: Any, rng: np.random.Generator, scale: float = 1.0) -> tuple[Any, Any]:
    """Rows of the sources k and their answers; with `scale` their noise is larger."""
    n = k.size
    if kind == "numbers":
        X = QUADS[k] + scale * rng.normal(size=(n, 4))
        noise = np.array([0.3, 0.6, 1.0])[k] * rng.normal(size=n)
        return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise
    if kind == "vectors":
        X = SPREAD[k] + scale * rng.normal(size=(n, 60))
        return X, np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0, "up", "down")
    if kind == "texts":
        texts = np.empty(n, dtype=object)
        for source, share in enumerate(WORD_SHARES):
            own = np.flatnonzero(k == source)
            drawn = rng.choice(WORDS, (own.size, 24), p=share / share.sum())
            length = rng.integers(8, 25, own.size)
            texts[own] = [" ".join(row[:m]) for row, m in zip(drawn, length, strict=True)]
        return list(texts), np.where([sum(map(ord, t)) % 7 > 3 for t in texts], "pos", "neg")
    dose, age = np.exp(rng.normal(0.3 * k, 0.5 * scale)), rng.normal(50.0 + 5.0 * k, 10.0 * scale)
    dose[rng.random(n) < 0.1 + 0.1 * k] = np.nan
    ward = np.array(["x", "y", "z", "w"])[np.minimum(3, (rng.random(n) * (2 + k)).astype(int))]
    X = pd.DataFrame({"age": age, "dose": dose, "ward": ward, "lab": rng.normal(size=n)})
    ill = age / 10 + np.nan_to_num(dose) + rng.normal(size=n) > 6
    return X, np.where(ill, "ill", "well")


def default_model(kind: str, rows: int, rng: np.random.Generator) -> Any:
    """A model with default settings of so many rows of each source."""
    home = np.repeat(np.arange(3), rows)
    X, y = rows_of(kind, home, rng)
    learner = DistributionWeightedClassifier
    if kind == "numbers":
        learner = DistributionWeightedRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learner(random_state=0).fit(X, y, sample_domain=np.array(["a", "b", "c"])[home])


def defaults(
    kind: str = "numbers", runs: int = 40, rows: int = 200, days: int = 365, first: int = 0
) -> dict[str, Any]:
    """Looks at traffic by models with default settings; the densities of folds score it."""
    ever, single, power = [], [], []
    for seed in range(first, first + runs):
        rng = np.random.default_rng([seed, rows])
        model = default_model(kind, rows, rng)
        if kind != "texts":
            X, _ = rows_of(kind, rng.choice(3, TRAFFIC), rng, scale=1.15)
            power.append(Monitor.from_tables(model).estimate(X).alarm.rings)
        kept, log_masses = model.result_.evidence.fold_scores, model.tables_.log_masses
        log_r = model.combination_.log_responsibilities(log_masses[:, kept.rows])
        home, domain = Scores(log_r, kept.novelty), model.tables_.domain[kept.rows]
        always, alarms = rng.dirichlet(np.ones(3)), []
        for day in range(days):
            if day % 40 == 0:  # scored together, which is faster
                shares = rng.dirichlet(np.ones(3), 40) if seed % 2 else [always] * 40
                k = np.concatenate([rng.choice(3, TRAFFIC, p=share) for share in shares])
                scored = model.fold_scores(rows_of(kind, k, rng)[0], rng)
            now = slice(day % 40 * TRAFFIC, (day % 40 + 1) * TRAFFIC)
            today = Scores(scored[0][:, now], scored[1][now])
            alarms.append(mixture_alarm(today, home, domain, 0.05, 100, rng, look=day + 1))
        ever.append(any(alarm.rings for alarm in alarms))
        single.append(np.mean([alarm.p_value <= 0.05 for alarm in alarms]))
        least = min(alarm.p_value for alarm in alarms)
        chosen = f"weighed by {model.density_choice_.chosen}"
        print(f"{kind} {seed}: {chosen}, {ever[-1]}, {single[-1]:.3f}, {least:.1e}", flush=True)
    return {
        "ever": float(np.mean(ever)),
        "one look": float(np.mean(single)),
        "one look of the worst reference": float(np.max(single)),
        "scale × 1.15 at 1 %": float(np.mean(power)) if power else float("nan"),
    }


MEASURES = {"power": power, "looks": looks, "fitted": fitted, "defaults": defaults}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Rates of the alarm")
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--days", type=int)
    parser.add_argument("--density")
    parser.add_argument("--kind", choices=("numbers", "mixed", "texts", "vectors"))
    parser.add_argument("--first", type=int, help="first seed")
    settings = {name: value for name, value in vars(parser.parse_args()).items() if value}
    found = MEASURES[settings.pop("measure")](**settings)
    print(settings, ", ".join(f"{name}: {value:.3f}" for name, value in found.items()))
