"""The private path by command, on real sites: what does it lose to rows in one place?

    ANYMIX_DATA=FOLDER python -m benchmarks.private_path [heart] [housing] [airline] [--seeds 5]
    python -m benchmarks.private_path --page

The first adds each split to results/private_path.ndjson, the second writes the table of
docs/deployment.md from it.

Each domain is a site with a CSV file.  Its rows are split 70 to 30 as in the evidence; test rows
are read once.  Commands run as typed: reference summary, join, source pack, site evaluate
(rounded), fit --from-sites, predict.

all rows      source pack --home: every training row trains and judges
set aside     5/7 of the training rows train, the others are evaluated: 50 / 20 / 30
              in both a second round (source pack --others) before the sites evaluate
own           each site's own model at home, trained on all of its training rows
rows apart    fit(X, y, sample_domain) in Python with share_rows=False: all rows are in one place,
              and only what sites that keep theirs could compute is computed
joint         the same learner, trained on all rows in one place
"""

from __future__ import annotations

import json
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
WAYS = ("all rows", "set aside", "own", "rows apart", "joint")
COMPARED = ("rows apart", "joint")
ROOT = Path(__file__).parents[1]
RECORD, PAGE = ROOT / "results/private_path.ndjson", ROOT / "docs/deployment.md"
START, END = "<!-- private path -->", "<!-- end of private path -->"


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
    model = weighted(train, seed, share_rows=False).fit(*data, sample_domain=train.domain)
    found["rows apart"] = row_losses(model, test)
    found["joint"] = row_losses(Joint(base).fit(*data, sample_domain=train.domain), test)
    mean = {
        name: float(np.mean([losses[test.domain == d].mean() for d in test.domains]))
        for name, losses in found.items()
    }
    errors = {
        other: {name: paired(losses, found[other], test) for name, losses in found.items()}
        for other in COMPARED
    }
    return {"losses": mean, "errors": errors}


def paired(a: Any, b: Any, test: EvidenceSet) -> float:
    """Standard error of the mean difference over domains, by rows."""
    parts = [(a - b)[test.domain == d] for d in test.domains]
    return float(np.sqrt(sum(x.var(ddof=1) / x.size for x in parts)) / len(parts))


def difference(splits: list[dict[str, Any]], way: str, other: str) -> tuple[float, float]:
    """Mean difference over splits, and the larger of the standard errors by rows and by splits."""
    gaps = np.array([one["losses"][way] - one["losses"][other] for one in splits])
    spread = gaps.std(ddof=1) / np.sqrt(gaps.size) if gaps.size > 1 else 0.0
    errors = [one["errors"][other][way] for one in splits]
    return float(gaps.mean()), float(max(spread, np.mean(errors)))


def lines(record: list[dict[str, Any]]) -> list[str]:
    """Return the table of the page."""
    out = [
        "| set, splits | way | loss | minus rows apart | minus joint |",
        "|---|---|---:|---:|---:|",
    ]
    for name in SETS:
        splits = [one for one in record if one["set"] == name]
        for way in WAYS if splits else ():
            loss = np.mean([one["losses"][way] for one in splits])
            cells = [f"{name}, {len(splits)}", way, f"{loss:.4f}"]
            for other in COMPARED:
                gap, error = difference(splits, way, other)
                cells.append("" if way == other else f"{gap:+.4f} ± {error:.4f}")
            out.append(f"| {' | '.join(cells)} |")
    return out


def read() -> list[dict[str, Any]]:
    """Return the splits that were measured."""
    return [json.loads(line) for line in RECORD.read_text("utf-8").splitlines()]


def write_page() -> None:
    """Write the table into the page."""
    before, rest = PAGE.read_text("utf-8").split(START)
    after = rest.split(END)[1]
    table = "\n".join(lines(read()))
    PAGE.write_text(f"{before}{START}\n{table}\n{END}{after}", "utf-8")


def benchmark(arguments: list[str]) -> None:
    """Measure the sets that are named."""
    parser = ArgumentParser()
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args(arguments)
    if args.page:
        return write_page()
    warnings.simplefilter("ignore")
    data = Path(os.environ["ANYMIX_DATA"]) if "ANYMIX_DATA" in os.environ else None
    for name in args.sets:
        rows = SETS[name](data)
        known = {(one["set"], one["seed"]) for one in read()} if RECORD.exists() else set()
        for seed in range(args.seeds):
            if (name, seed) in known:
                continue
            found = {"set": name, "seed": seed} | measured(rows, seed)
            with RECORD.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
            print(found["losses"], flush=True)
    return None


if __name__ == "__main__":
    benchmark(sys.argv[1:])
