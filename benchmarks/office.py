"""Office-31 features: is DW, with default settings, as good as all rows in one place?

    python -m benchmarks.office [--quick] [--data ../shared/data]

EfficientNet-Lite0 features, logistic regression, 20/8/8 training rows a class, 5 splits.  Accuracy
on each domain and on all test rows; log-loss regret: the worst over domains of the loss above that
of the domain's own model.
"""

import argparse
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from anymix import DistributionWeightedClassifier, compare
from anymix.estimators import HardRouter, Joint, SingleSource, Stacking, Uniform, VolumeWeighted
from benchmarks import real_data


def fitted(X: Any, y: Any, domain: Any) -> dict[str, Any]:
    """Fit all methods; those that combine share the sources of DW."""
    estimator = LogisticRegression(max_iter=2000)
    dw = DistributionWeightedClassifier(estimator, random_state=0).fit(X, y, sample_domain=domain)
    models: dict[str, Any] = {"DW": dw}
    for k, name in enumerate(real_data.DOMAINS):
        models[name] = SingleSource.from_sources(dw.sources_, source=k)
    for method in (Uniform, VolumeWeighted, HardRouter):
        models[method.__name__] = method.from_sources(dw.sources_)
    for name in list(models)[1:]:
        models[name].fit(X, y, domain)
    models["Stacking"] = Stacking(estimator, random_state=0).fit(X, y, domain)
    models["Joint"] = Joint(estimator).fit(X, y)
    return models


def one_split(X: Any, y: Any, domain: Any, seed: int) -> dict[str, Any]:
    """Accuracies (3 domains, pooled) in per cent, log-losses by domain, regret, for each method."""
    train, test = real_data.office_split(y, domain, seed)
    start = perf_counter()
    models = fitted(X[train], y[train], domain[train])
    seconds = perf_counter() - start
    names, Xt, yt, dt = list(models), X[test], y[test], domain[test]
    wrong = compare(models, Xt, yt, dt, measure="error_rate")
    losses = compare(models, Xt, yt, dt).loss[:, :3]
    share = np.bincount(dt) / dt.size
    own = np.array([losses[names.index(name), k] for k, name in enumerate(real_data.DOMAINS)])
    accuracy = 100 * (1 - np.column_stack([wrong.loss[:, :3], wrong.loss[:, :3] @ share]))
    dw = models["DW"]
    found = dw.combination_.calibration
    print(
        f"split {seed}: {seconds:.0f} s, z = {dw.z_.round(2)}, sharpness {found.sharpness:g}"
        f", temperatures {found.temperature.round(2)}; {dw.certificate_.sentence}",
        flush=True,
    )
    return {
        "names": names,
        "accuracy": accuracy,
        "loss": losses,
        "regret": (losses - own).max(axis=1),
    }


def verdict(names: list[str], accuracy: Any, regret: Any) -> None:
    """Say of each claim whether it holds."""
    at = {name: accuracy[a] for a, name in enumerate(names)}
    single = np.array([at[name] for name in real_data.DOMAINS])
    r = dict(zip(names, regret, strict=True))
    rivals = [*real_data.DOMAINS, "Uniform", "HardRouter"]
    claims = {
        "pooled: above every single source": at["DW"][3] > single[:, 3].max(),
        "pooled: above Uniform": at["DW"][3] > at["Uniform"][3],
        "pooled: at least level with Joint": at["DW"][3] >= at["Joint"][3] - 0.05,
        "each domain: within 0.3 of the best single source": bool(
            (at["DW"][:3] >= single[:, :3].max(axis=0) - 0.3).all()
        ),
        "regret: below Uniform, HardRouter and every single source": r["DW"]
        < min(r[name] for name in rivals),
        "regret: at most 0.005": r["DW"] <= 0.005,
    }
    for claim, holds in claims.items():
        print(f"{'yes' if holds else 'NO ':4}{claim}")


def main(quick: bool = False, data: str | None = None) -> None:
    path = real_data.find(real_data.OFFICE, data)
    if path is None:
        return
    X, y, domain = real_data.office(path)
    splits = [one_split(X, y, domain, seed) for seed in range(1 if quick else 5)]
    names = splits[0]["names"]
    mean = {
        key: np.mean([s[key] for s in splits], axis=0) for key in ("accuracy", "loss", "regret")
    }
    print(f"{'':16}{'accuracy: amazon  webcam  dslr  all':>36}    log-loss: a, w, d   regret")
    for a, name in enumerate(names):
        accuracy = "".join(f"{v:8.1f}" for v in mean["accuracy"][a])
        losses = "".join(f"{v:8.4f}" for v in mean["loss"][a])
        print(f"{name:16}{accuracy}  {losses} {mean['regret'][a]:9.4f}")
    verdict(names, mean["accuracy"], mean["regret"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data")
    main(**vars(parser.parse_args()))
