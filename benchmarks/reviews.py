"""Product reviews: does DW with bigram densities beat each domain's own regressor at home?

    python -m benchmarks.reviews [--quick] [--data ../shared/data]

Four domains, title and text, rating 1 to 5; RBF support vector regression on word counts and bigram
models on the words that all domains use; 1600 training and about 400 test rows a domain, no text on
both sides, 5 splits.  Mean squared error on each domain, their mean, and the regret.
"""

import argparse
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

from anymix import DistributionWeightedRegressor, compare
from anymix.densities import BigramModel, SharedVocabulary
from anymix.estimators import HardRouter, SingleSource, Uniform
from benchmarks import real_data


def parts(texts: list[str], domain: Any) -> tuple[Any, Any]:
    """Regressor and density over the words that occur twice in each domain's training rows.

    The vocabulary is learned beforehand and frozen: one for each domain would not be shared.
    """
    words = SharedVocabulary(output="tokens").fit(texts, sample_domain=domain)
    counts = CountVectorizer(vocabulary=words.vocabulary_, token_pattern=words.token_pattern)
    return (
        make_pipeline(counts, SVR(gamma=0.00078, C=8.0)),
        make_pipeline(FrozenEstimator(words), BigramModel(vocabulary=words.vocabulary_)),
    )


def fitted(texts: list[str], y: Any, domain: Any, cv: int) -> dict[str, Any]:
    estimator, density = parts(texts, domain)
    dw = DistributionWeightedRegressor(estimator, density, cv=cv, random_state=0)
    models: dict[str, Any] = {"DW": dw.fit(texts, y, sample_domain=domain)}
    for k, name in enumerate(np.unique(domain)):
        models[str(name)] = SingleSource.from_sources(dw.sources_, source=k)
    models["Uniform"] = Uniform.from_sources(dw.sources_)
    models["HardRouter"] = HardRouter.from_sources(dw.sources_)
    for name in list(models)[1:]:
        models[name].fit(texts, y, domain)
    return models


def one_split(rows: Any, seed: int, n_train: int, cv: int) -> tuple[list[str], Any]:
    """Mean squared errors (methods, domains)."""
    texts, y, domain, group = rows
    train, test = real_data.reviews_split(domain, group, seed, n_train)
    start = perf_counter()
    models = fitted(list(texts[train]), y[train], domain[train], cv)
    seconds, dw = perf_counter() - start, models["DW"]
    table = compare(models, list(texts[test]), y[test], domain[test])
    found = dw.combination_.calibration
    print(
        f"split {seed}: {seconds:.0f} s, z = {dw.z_.round(2)}, sharpness {found.sharpness:g}"
        f", temperatures {found.temperature.round(2)}; {dw.certificate_.sentence}",
        flush=True,
    )
    return list(models), table.loss[:, : len(table.sources)]


def verdict(names: list[str], losses: Any, regret: Any) -> None:
    """Say of each claim whether it holds."""
    p = losses.shape[1]
    dw, own = losses[0], np.array([losses[1 + k, k] for k in range(p)])
    r = dict(zip(names, regret, strict=True))
    claims = {
        "below each source at home": bool((dw < own).all()),
        "below Uniform on the mean": dw.mean() < losses[names.index("Uniform")].mean(),
        "regret below Uniform's, HardRouter's and every single source's": r["DW"]
        < min(v for name, v in r.items() if name != "DW"),
        "regret at most 0.02, a standard error": r["DW"] <= 0.02,
    }
    for claim, holds in claims.items():
        print(f"{'yes' if holds else 'NO ':4}{claim}")


def main(quick: bool = False, data: str | None = None) -> None:
    path = real_data.find(real_data.REVIEWS, data)
    if path is None:
        return
    rows = real_data.reviews(path)
    size = {"n_train": 400, "cv": 3} if quick else {"n_train": 1600, "cv": 5}
    splits = [one_split(rows, seed, **size) for seed in range(1 if quick else 5)]
    names, tables = splits[0][0], np.stack([table for _, table in splits])
    p = tables.shape[2]
    own = np.stack([tables[:, 1 + k, k] for k in range(p)], axis=1)
    regret = (tables - own[:, None, :]).max(axis=2).mean(axis=0)
    losses = tables.mean(axis=0)
    print(
        f"{'':12}" + "".join(f"{name[:10]:>12}" for name in [*names[1 : p + 1], "mean", "regret"])
    )
    for a, name in enumerate(names):
        values = [*losses[a], losses[a].mean(), regret[a]]
        print(f"{name:12}" + "".join(f"{v:12.4f}" for v in values))
    verdict(names, losses, regret)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data")
    main(**vars(parser.parse_args()))
