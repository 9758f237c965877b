"""anymix report: one HTML page from what stands in a model folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from anymix.cli.console import Console
from anymix.cli.model_folder import RECORD_LIMIT, read_record, read_tables, read_weighing
from anymix.core import simplex, source_weights
from anymix.core.simplex import FloatArray
from anymix.report import render
from anymix.sources import Tables
from anymix.sources.exchange.folder import read_file
from anymix.sources.exchange.manifest import parse_json

N_BINS = 10
# Records that `--save` keeps beside model.json, and the part of the report that each replaces.
SAVED = {
    "certificate": "certificate.json",
    "comparison": "comparison.json",
    "traffic": "traffic.json",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("--out", default="report.html", metavar="FILE", help="page to write")
    parser.add_argument("--title", help="title of the page; by default the folder's name")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    record = report_record(Path(args.model), args.title)
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    path = render(record, args.out)
    console.result(f"wrote {path}", record)
    return 0


def report_record(folder: Path, title: str | None = None) -> dict[str, Any]:
    """Gather what the page shows; saved records of new rows take the place of those of fit."""
    record = read_record(folder)
    tables, weighing = read_tables(folder, record), read_weighing(record)
    log_r = weighing.transform(tables.log_masses)
    z = simplex.check(record["z"], len(log_r))
    shown = {key: record[key] for key in ("loss", "objective", "anymix", "z", "cross_loss")}
    shown |= {key: record[key] for key in ("certificate", "comparison", "solution")}
    for part, name in SAVED.items():
        if (folder / name).exists():
            shown[part] = parse_json(read_file(folder / name, RECORD_LIMIT), str(folder / name))
    calibration = {"after": reliability(log_r, tables)}
    if record["calibration"] is not None:
        raw = np.asarray(log_softmax(tables.log_masses, axis=0))
        report = record["calibration"]["report"]
        calibration |= {"before": reliability(raw, tables), "report": report}
    return shown | {
        "name": title or folder.resolve().name,
        "sources": [source["name"] for source in record["sources"]],
        "rows": np.bincount(np.asarray(tables.sample_domain), minlength=len(z)).tolist(),
        "weights": mean_weights(source_weights(log_r, z, record["eta"]), tables),
        "calibration": calibration,
    }


def mean_weights(weights: FloatArray, tables: Tables) -> FloatArray:
    """Return the mean weight of source k on the rows of source j, (p, p)."""
    domain = np.asarray(tables.sample_domain)
    return np.stack([weights[:, domain == j].mean(axis=1) for j in range(len(weights))], axis=1)


def reliability(log_r: FloatArray, tables: Tables) -> list[dict[str, float]]:
    """How sure the likeliest source is, and how often right, in bins; all sources count alike."""
    domain = np.asarray(tables.sample_domain)
    share = 1.0 / (len(log_r) * np.bincount(domain)[domain])
    sure, right = np.exp(log_r.max(axis=0)), log_r.argmax(axis=0) == domain
    place = np.minimum((N_BINS * sure).astype(int), N_BINS - 1)
    bins = []
    for b in np.unique(place):
        here = place == b
        total = share[here].sum()
        means = {
            "confidence": share[here] @ sure[here] / total,
            "accuracy": share[here] @ right[here] / total,
        }
        bins.append({**{key: float(value) for key, value in means.items()}, "share": float(total)})
    return bins
