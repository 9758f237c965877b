"""The private path by command, on real sites: what does it lose to rows in one place?

    ANYMIX_DATA=FOLDER python -m benchmarks.private_path [heart] [housing] [airline] [--seeds 2]

Each domain is a site with a CSV file.  Its rows are split 70 to 30 as in the evidence; test rows
are read once.  Commands run as typed: reference summary, join, source pack, site evaluate
(rounded), fit --from-sites, predict.

all rows      source pack --home: every training row trains and judges; of numbers a second round
              (source pack --others) before the sites evaluate
set aside     5/7 of the training rows train, the others are evaluated
own           each site's own model at home, trained on all of its training rows
rows apart    fit(X, y, sample_domain) in Python with share_rows=False: all rows are in one place,
              and only what sites that keep theirs could compute is computed
fit           fit(X, y, sample_domain) in Python, with its defaults
joint         the same learner, trained on all rows in one place
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anymix.cli import main
from anymix.core import losses_at
from anymix.estimators import Joint, Uniform
from experiments.evidence import split
from experiments.evidence_methods import learner, own_losses, row_losses, weighted
from experiments.evidence_sets import EvidenceSet, load_airline, load_heart, load_housing

SETS = {"heart": load_heart, "housing": load_housing, "airline": load_airline}
FLOOR = 1e-6


def table_of(rows: EvidenceSet) -> pd.DataFrame:
    """Rows with their target, as a site would have them."""
    frame = pd.DataFrame({"text": rows.X}) if isinstance(rows.X, list) else rows.X.copy()
    return frame.assign(target=rows.y)


def run(*words: Any) -> None:
    """Run a command; a failure ends the benchmark."""
    if main([*map(str, words), "--quiet"]):
        raise RuntimeError(f"anymix {' '.join(map(str, words))} failed")


def by_command(train: EvidenceSet, test: EvidenceSet, folder: Path, all_rows: bool) -> Any:
    """Losses of the test rows, after the whole private path."""
    # Names of sites are plain words.
    domains = {f"site{k}": domain for k, domain in enumerate(train.domains)}
    names, rng = list(domains), np.random.default_rng(0)
    target = ["--target", "target"]
    texts = ["--text", "text"] if train.kind == "texts" else []
    task = ["--task", "classification" if train.classification else "regression"]
    for name in names:
        own = table_of(train.take(np.flatnonzero(train.domain == domains[name])))
        kept = (
            own if all_rows else own.iloc[(order := rng.permutation(len(own)))[: 5 * len(own) // 7]]
        )
        kept.to_csv(folder / f"{name}.csv", index=False)
        if not all_rows:
            own.iloc[order[len(kept) :]].to_csv(folder / f"{name}_held.csv", index=False)
        run("reference", "summary", folder / f"{name}.csv", "--name", name, *target, *texts,
            "--out", folder / f"{name}.json")  # fmt: skip
    run("reference", "join", *(folder / f"{name}.json" for name in names), "--out", folder / "ref")
    rounds = [[], ["--others"]]
    sources = {name: folder / name for name in names}
    for i, others in enumerate(rounds):
        made = {}
        for name in names:
            first = [path for other, path in sources.items() if other != name]
            home = ["--home", folder / f"{name}.home", "--force"] if all_rows else []
            made[name] = folder / f"{name}{i}"
            run("source", "pack", made[name], "--name", name, "--rows", folder / f"{name}.csv",
                "--reference", folder / "ref", *target, *texts, *task, *home,
                *([*others, *first] if others else []))  # fmt: skip
        sources = made
    for name in names:
        rows = folder / (f"{name}.csv" if all_rows else f"{name}_held.csv")
        home = ["--home", folder / f"{name}.home"] if all_rows else []
        run("site", "evaluate", *sources.values(), "--site", name, "--rows", rows, *target, *home,
            "--out", folder / f"{name}.site")  # fmt: skip
    run("fit", *sources.values(), "--from-sites", *(folder / f"{name}.site" for name in names),
        "--out", folder / "model")  # fmt: skip
    table_of(test).to_csv(folder / "test.csv", index=False)
    run("predict", folder / "model", folder / "test.csv", "--out", folder / "out.csv")
    out = pd.read_csv(folder / "out.csv")
    if not train.classification:
        return losses_at(out["prediction"].to_numpy(), test.y, "squared")
    proba = np.array([out[f"p({y})"].iloc[i] for i, y in enumerate(test.y)])
    return -np.log(np.maximum(proba, FLOOR))


def measured(rows: EvidenceSet, seed: int) -> dict[str, Any]:
    """Losses of all ways at the test rows of one split."""
    train, test = map(rows.take, split(rows, seed))
    found = {}
    for name, all_rows in (("all rows", True), ("set aside", False)):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = by_command(train, test, Path(folder), all_rows)
    base = learner(train)
    data = train.X, train.y
    found["own"] = own_losses(Uniform(base).fit(*data, sample_domain=train.domain), test)
    for name, settings in (("rows apart", {"share_rows": False}), ("fit", {})):
        model = weighted(train, seed, **settings).fit(*data, sample_domain=train.domain)
        found[name] = row_losses(model, test)
    found["joint"] = row_losses(Joint(base).fit(*data, sample_domain=train.domain), test)
    return {
        name: np.array([losses[test.domain == d].mean() for d in test.domains])
        for name, losses in found.items()
    } | {"_errors": {name: paired(losses, found["fit"], test) for name, losses in found.items()}}


def paired(a: Any, b: Any, test: EvidenceSet) -> float:
    """Standard error of the mean difference over domains, by rows."""
    parts = [(a - b)[test.domain == d] for d in test.domains]
    return float(np.sqrt(sum(x.var(ddof=1) / x.size for x in parts)) / len(parts))


def show(name: str, each: list[dict[str, Any]]) -> None:
    """Print mean losses, and differences to `fit` with the larger of two standard errors."""
    means = {key: np.array([one[key].mean() for one in each]) for key in each[0] if key[0] != "_"}
    for key, losses in means.items():
        gap = losses - means["fit"]
        spread = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        error = max(spread, float(np.mean([one["_errors"][key] for one in each])))
        joint = (losses - means["joint"]).mean()
        print(f"| {name} | {key} | {losses.mean():.4f} | {gap.mean():+.4f} ± {error:.4f} | "
              f"{joint:+.4f} |", flush=True)  # fmt: skip


def benchmark(arguments: list[str]) -> None:
    """Measure the sets that are named."""
    parser = ArgumentParser()
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    data = Path(os.environ["ANYMIX_DATA"]) if "ANYMIX_DATA" in os.environ else None
    print("| set | way | loss | minus fit | minus joint |\n|---|---|---:|---:|---:|")
    for name in args.sets:
        rows = SETS[name](data)
        show(name, [measured(rows, seed) for seed in range(args.seeds)])


if __name__ == "__main__":
    benchmark(sys.argv[1:])
