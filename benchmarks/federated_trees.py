"""Boosted trees on the grid of the agreed reference, where sites could grow them by histograms.

    ANYMIX_DATA=FOLDER python -m benchmarks.federated_trees [heart] [housing] [cars] [--seeds 5]

needs pandas and `xgboost-cpu`.  Values are moved down to a common grid: the quantiles and frequent
values in the summaries of all sites (`anymix reference summary`).  All rows are in one place here,
and trees on the grid are compared with trees of the rows as they are.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import losses_at
from anymix.densities import Summary
from anymix.tables import Columns
from experiments.evidence import split
from experiments.evidence_sets import EvidenceSet, load_cars, load_heart, load_housing

SETS = {"heart": load_heart, "housing": load_housing, "cars": load_cars}
ROUNDS, MOST_BINS = 100, 1024
TREES: dict[str, Any] = {"eta": 0.1, "max_depth": 6, "lambda": 10.0, "tree_method": "hist"}
TREES |= {"max_bin": MOST_BINS, "nthread": 1, "seed": 0, "base_score": 0.5}


def grid_of(train: EvidenceSet, X: FloatArray, columns: Columns) -> list[FloatArray]:
    """The values that any site's summary names, for each column."""
    found: list[set[float]] = [set() for _ in columns]
    for name in train.domains:
        own = X[train.domain == name]
        summary = Summary.of(own, columns=columns, name=name, kind="marginals")
        for j, marginal in enumerate(summary.marginals):
            found[j].update(marginal.values, marginal.quantiles)
    return [np.array(sorted(values)) for values in found]


def on_grid(X: FloatArray, grid: list[FloatArray]) -> FloatArray:
    """Move each value down to the next one of the grid, or up to the least; NaN stays."""
    out = X.copy()
    for j, values in enumerate(grid):
        known = ~np.isnan(X[:, j])
        if values.size:
            place = np.searchsorted(values, X[known, j], side="right") - 1
            out[known, j] = values[np.maximum(place, 0)]
    return out


def settings(classification: bool) -> dict[str, Any]:
    """Parameters of XGBoost."""
    return TREES | {"objective": "binary:logistic" if classification else "reg:squarederror"}


def pooled(X: FloatArray, y: FloatArray, classification: bool) -> Any:
    """Train on rows in one place."""
    import xgboost

    return xgboost.train(settings(classification), xgboost.DMatrix(X, y), ROUNDS)


def predicted(model: Any, X: FloatArray) -> FloatArray:
    """Predictions at rows."""
    import xgboost

    return np.asarray(model.predict(xgboost.DMatrix(X)), dtype=float)


def measured(rows: EvidenceSet, seed: int) -> dict[str, float]:
    """Mean test losses over domains."""
    train, test = map(rows.take, split(rows, seed))
    columns, labels = Columns.of(train.X), rows.classification
    X, T = columns.encode(train.X), columns.encode(test.X)
    y = train.y.astype(float)
    grid = grid_of(train, X, columns)
    G, H = on_grid(X, grid), on_grid(T, grid)
    models = {"raw": (pooled(X, y, labels), T), "grid": (pooled(G, y, labels), H)}
    found: dict[str, float] = {}
    for name, (model, at) in models.items():
        h = predicted(model, at)
        if labels:
            h, y_test = np.column_stack([1 - h, h]), test.y.astype(int)
            losses = losses_at(np.maximum(h, 1e-6), y_test, "cross_entropy")
        else:
            losses = losses_at(h, test.y, "squared")
        found[name] = float(np.mean([losses[test.domain == d].mean() for d in test.domains]))
    return found


def benchmark(arguments: list[str]) -> None:
    """Measure the sets that are named."""
    parser = ArgumentParser()
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args(arguments)
    print("| set | raw | grid minus raw |\n|---|---:|---:|")
    for name in args.sets:
        rows = SETS[name](Path(os.environ["ANYMIX_DATA"]))
        found = [measured(rows, seed) for seed in range(args.seeds)]
        raw = np.array([one["raw"] for one in found])
        gap = np.array([one["grid"] for one in found]) - raw
        error = gap.std(ddof=1) / np.sqrt(gap.size) if gap.size > 1 else 0.0
        print(f"| {name} | {raw.mean():.4f} | {gap.mean():+.4f} ± {error:.4f} |", flush=True)


if __name__ == "__main__":
    benchmark(sys.argv[1:])
