"""Does the certificate hold, what does combining cost, and what does skipping save?

    python -m benchmarks.estimators [--quick]

Synthetic problems; no data needed.
"""

import argparse
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from anymix import DistributionWeightedClassifier
from anymix.sources import evaluate

Array = NDArray[np.float64]
CENTRES = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]])
# The boundary between the classes turns from source to source.
NORMALS = np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]])


def draw(n: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """n rows of each of three Gaussian sources, with noisy linear labels."""
    domain = np.repeat(np.arange(3), n)
    X = CENTRES[domain] + rng.normal(size=(3 * n, 2))
    score = ((X - CENTRES[domain]) * NORMALS[domain]).sum(axis=1)
    y = (rng.random(3 * n) < 1 / (1 + np.exp(-3 * score))).astype(np.intp)
    return X, y, domain


def coverage(n_runs: int, n: int = 200, n_fresh: int = 5000) -> dict[str, float]:
    """Certify on n rows a source, and look at fresh rows: how often does each bound hold?"""
    fresh = draw(n_fresh, np.random.default_rng(10**6))
    held, slack = np.empty((n_runs, 2)), np.empty((n_runs, 2))
    for run in range(n_runs):
        model = DistributionWeightedClassifier(LogisticRegression(), random_state=run)
        X, y, domain = draw(n, np.random.default_rng(run))
        certificate = model.fit(X, y, sample_domain=domain).certificate_
        L, own = true_losses(model, fresh, certificate.clip)
        bound = np.array([certificate.loss_upper, certificate.regret_upper])
        slack[run] = bound - [L.max(), (L - own).max()]
        held[run] = slack[run] >= 0
    return {
        "loss holds": held[:, 0].mean(),
        "regret holds": held[:, 1].mean(),
        "loss slack": slack[:, 0].mean(),
        "regret slack": slack[:, 1].mean(),
    }


def true_losses(model: Any, fresh: Any, clip: float | None = None) -> tuple[Array, Array]:
    """Log-loss of the model and of the own models on each domain of fresh rows."""
    X, y, domain = fresh
    cap = np.inf if clip is None else clip
    losses = np.minimum(-np.log(model.predict_proba(X)[np.arange(len(y)), y]), cap)
    L, own = np.array([losses[domain == k].mean() for k in range(3)]), np.empty(3)
    for k, source in enumerate(model.sources_):
        rows = domain == k
        proba = source.predict_proba(X[rows], model.classes_)
        own[k] = np.minimum(-np.log(proba[np.arange(rows.sum()), y[rows]]), cap).mean()
    return L, own


def overhead(n: int, repeats: int = 7) -> tuple[float, float]:
    """Seconds of predict_proba, and of evaluating densities and predictors alone, on n rows.

    Seconds of the processor, the least of some runs: a busy machine changes neither.
    """
    rng = np.random.default_rng(0)
    X, y, domain = draw(300, rng)
    model = DistributionWeightedClassifier(LogisticRegression(), random_state=0)
    model.fit(X, y, sample_domain=domain)
    rows = draw(n // 3 + 1, rng)[0][:n]
    whole, parts = [], []
    for _ in range(repeats):
        start = process_time()
        model.predict_proba(rows)
        middle = process_time()
        for source in model.sources_:
            source.density.score_samples(rows)
            source.predictor.predict_proba(rows)
        whole.append(middle - start)
        parts.append(process_time() - middle)
    return min(whole), min(parts)


def saving(skip_below: float) -> tuple[float, float]:
    """Part of the evaluations that is spared with sources far apart, and the largest change.

    Sources that consult need all predictions, so these do not.
    """
    rng = np.random.default_rng(0)
    X, y, domain = draw(300, rng)
    X += 1.5 * CENTRES[domain]
    model = DistributionWeightedClassifier(LogisticRegression(), consult=False, random_state=0)
    model.fit(X, y, sample_domain=domain)
    full = evaluate(model.sources_, X, model.classes_)
    weights = model.source_weights(X).T
    exact = np.einsum("ki,kic->ic", weights, full.predictions)
    count = model.set_params(skip_below=skip_below).model_evaluations(X)
    change = np.abs(model.predict_proba(X) - exact).max()
    return count["saved"] / (count["saved"] + count["made"]), float(change)


def main(quick: bool = False, data: str | None = None) -> None:
    n_runs = 20 if quick else 200
    rates = coverage(n_runs)
    print(f"certificate at 95 %, z fitted on the same rows, {n_runs} runs of 60 rows a source:")
    print("  " + ", ".join(f"{name} {value:.3f}" for name, value in rates.items()))
    n = 20_000 if quick else 100_000
    whole, parts = overhead(n)
    print(f"predict_proba of {n} rows, 3 sources: {whole:.2f} s; densities and predictors alone")
    print(f"  {parts:.2f} s: combining adds {100 * (whole / parts - 1):.1f} % (target: at most 20)")
    for skip_below in (1e-6, 0.005, 0.02):
        spared, change = saving(skip_below)
        print(f"skip_below={skip_below:g}: spares {100 * spared:.0f} % of the model evaluations,")
        print(f"  moves a probability by at most {change:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data")
    main(**vars(parser.parse_args()))
