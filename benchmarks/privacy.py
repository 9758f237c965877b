"""What files tell of labels and of membership, and what it costs that they tell less.

    python -m benchmarks.privacy --data ../shared/data --out results/privacy.json

Heart disease at four hospitals.  *Labels*: half of each hospital trains a logistic regression, the
rest is evaluated for its site's file; labels are named from one number of the file, by the source
that does best (`labels_named`).  *Price*: z is learned from each form of the files, and judged by
the worst loss and the regret over all mixtures on rows of a third part.  *Membership*: patients of
all hospitals are split in two; who guesses that a row was among those that trained by its loss is
right with the AUC that is printed.  Means over `SEEDS` splits.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix import DistributionWeightedClassifier, Source
from anymix.densities import GaussianKDE
from anymix.estimators import candidate_estimators
from anymix.exchange import (
    commonest,
    evaluate_site,
    groups_of_rows,
    join_sites,
    labels_named,
    mean_of_rows,
)
from experiments.evidence_sets import load_heart

COLUMNS = ["age", "sex", "cp", "trestbps", "thalach", "exang", "oldpeak"]
SEEDS, SIZES = 5, (5, 10)
LEAVES = (1, 5, 10, 20)


def patients(data: Path) -> tuple[Any, Any, Any]:
    """Rows without gaps in these columns, the diagnosis, the hospital."""
    found = load_heart(data)
    X = found.X[COLUMNS].astype(float)
    whole = ~X.isna().any(axis=1).to_numpy()
    return X.to_numpy()[whole], found.y[whole], found.domain[whole]


def sites(X: Any, y: Any, domain: Any, seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Sources as received, the tables of their sites, and tables of a third part of the rows."""
    rng, sources, parts = np.random.default_rng(seed), [], []
    for name in np.unique(domain).tolist():
        rows = rng.permutation(np.flatnonzero(domain == name))
        train, held, test = np.split(rows, [rows.size // 2, rows.size * 3 // 4])
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train], y[train])
        density = GaussianKDE().fit(X[train]).shareable()
        sources.append(Source(name, model, density))
        parts.append((held, test))
    received = [
        SimpleNamespace(
            manifest=SimpleNamespace(name=one.name, classes=(0, 1), task="classification"),
            source=one,
            sha256=one.name,
        )
        for one in sources
    ]
    tables = [
        [
            evaluate_site(received, one.name, X[rows], y[rows], np.random.default_rng(seed), 2)
            for one, rows in zip(sources, which, strict=True)
        ]
        for which in zip(*parts, strict=True)
    ]
    return received, *tables


def forms(table: Any, seed: int) -> dict[str, tuple[Any, Any]]:
    """The forms in which a site's numbers may be written, and the row of the file of each row."""
    every = np.arange(table.n_rows)
    found = {"exact": (table, every), "rounded": (table.rounded(), every)}
    for size in SIZES:
        group = groups_of_rows(table, size, np.random.default_rng(seed))
        found[f"means of {size}"] = mean_of_rows(table, group).rounded(), group
    return found


def label_leaks(X: Any, y: Any, domain: Any) -> dict[str, Any]:
    """The share of labels named, and the worst loss and regret, by form."""
    named: dict[str, dict[str, list[float]]] = {}
    prices: dict[str, list[tuple[float, float]]] = {}
    for seed in range(SEEDS):
        received, held, test = sites(X, y, domain, seed)
        judged = join_sites(test, received)
        written = [forms(table, seed) for table in held]
        for table, site in zip(held, written, strict=True):
            labels = np.asarray(table.whole.targets)
            shares = named.setdefault(table.site, {"commonest label": []})
            shares["commonest label"].append(commonest(labels))
            # Of exact numbers none occurs twice: they tell more than this counts.
            for form, (one, group) in list(site.items())[1:]:
                share = labels_named(one.at_label().outcomes[:, group], labels)
                shares.setdefault(form, []).append(share)
        for form in written[0]:
            model = DistributionWeightedClassifier.from_sources(
                [one.source for one in received], random_state=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Every form as label alone, so that the same can be learned from each.
                files = [site[form][0].at_label() for site in written]
                model.fit_tables(join_sites(files, received))
            used = model.combination_
            at_label = join_sites([table.at_label() for table in test], received)
            first = used.parts[0]
            problem = at_label.weighed(first.calibration).problem(model.loss, used.eta, used.rule)
            found = problem.robust_loss(used.z), problem.regret(used.z)
            prices.setdefault(form, []).append(tuple(map(float, found)))
        assert judged.n_points
    table = {
        site: {form: mean(values) for form, values in shares.items()}
        for site, shares in named.items()
    }
    price = {form: price_of(values, prices["exact"]) for form, values in prices.items()}
    return {"labels named": table, "price": price}


def price_of(values: list[Any], exact: list[Any]) -> dict[str, float]:
    """Mean worst loss and regret, and the paired difference of the former with its error."""
    array, due = np.array(values), np.array(exact)
    apart = array[:, 0] - due[:, 0]
    return {
        "worst loss": mean(array[:, 0]),
        "regret": mean(array[:, 1]),
        "more than exact": mean(apart),
        "standard error": round(float(apart.std(ddof=1) / np.sqrt(len(apart))), 4),
    }


def mean(values: Any) -> float:
    return round(float(np.mean(values)), 4)


def membership(data: Path) -> dict[str, dict[str, float]]:
    """AUC of the loss between rows that trained and others, and the held-out loss, by learner."""
    whole = load_heart(data)
    kinds = [name for name in whole.X if whole.X[name].dtype.kind == "f"]
    X = SimpleImputer(strategy="median").fit_transform(whole.X[kinds])
    targets = {"labels": whole.y, "numbers": X[:, kinds.index("thalach")]}
    found: dict[str, dict[str, float]] = {}
    for kind, y in targets.items():
        rows = X if kind == "labels" else np.delete(X, kinds.index("thalach"), axis=1)
        labels = kind == "labels"
        learners = candidate_estimators("numbers", rows, None, labels, 0)
        forest = RandomForestClassifier if labels else RandomForestRegressor
        learners |= {
            f"forest, leaves of {n}": forest(50, min_samples_leaf=n, random_state=0, n_jobs=1)
            for n in LEAVES
        }
        for n in (5, 20):
            trees = candidate_estimators("numbers", rows, None, labels, 0)["trees"]
            learners[f"trees, leaves of {n}"] = with_leaves(trees, n)
        for name, learner in learners.items():
            pairs = [attacked(learner, rows, y, labels, seed) for seed in range(SEEDS)]
            auc, loss = np.mean(pairs, axis=0)
            found[f"{kind}, {name}"] = {"AUC": round(float(auc), 3), "held-out loss": mean(loss)}
            print(f"{kind}, {name}: AUC {auc:.3f}, held-out loss {loss:.4g}", flush=True)
    return found


def with_leaves(learner: Any, n: int) -> Any:
    """The same learner with leaves of n rows or more."""
    name = next(key for key in learner.get_params() if key.endswith("min_samples_leaf"))
    return learner.set_params(**{name: n})


def attacked(learner: Any, X: Any, y: Any, labels: bool, seed: int) -> tuple[float, float]:
    """Train on a random half; the AUC of −loss for having trained, and the mean loss of others."""
    inside = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
    learner.fit(X[inside], y[inside])
    if labels:
        h = np.clip(learner.predict_proba(X)[np.arange(len(y)), y], 1e-6, 1.0)
        loss = -np.log(h)
    else:
        loss = (learner.predict(X) - y) ** 2
    return float(roc_auc_score(inside, -loss)), float(loss[~inside].mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("results/privacy.json"))
    args = parser.parse_args()
    record = label_leaks(*patients(args.data))
    print(json.dumps(record, indent=1))
    record["membership"] = membership(args.data)
    args.out.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
