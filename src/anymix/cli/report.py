"""anymix report: one HTML page from what stands in a model folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

from anymix._files import read_file
from anymix.cli.console import Console
from anymix.cli.model_folder import RECORD_LIMIT, read_record, read_tables, read_weighing
from anymix.cli.saving import SAVED
from anymix.core import simplex, source_weights
from anymix.estimators import mean_weights, reliability
from anymix.exchange import parse_json
from anymix.report import render


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("--out", default="report.html", metavar="FILE", help="page to write")
    parser.add_argument("--title", help="title of the page (default: the name of the folder)")


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
    log_r, domain = weighing.transform(tables.log_masses), np.asarray(tables.sample_domain)
    z = simplex.check(record["z"], len(log_r))
    shown = {key: record[key] for key in ("loss", "objective", "anymix", "z", "cross_loss")}
    shown |= {key: record[key] for key in ("certificate", "comparison", "solution")}
    for part, name in SAVED.items():
        if (folder / name).exists():
            shown[part] = parse_json(read_file(folder / name, RECORD_LIMIT), str(folder / name))
    calibration: dict[str, Any] = {"after": reliability(log_r, domain)}
    if record["calibration"] is not None:
        calibration["before"] = reliability(tables.log_masses, domain)
        calibration |= {key: record["calibration"][key] for key in ("report", "sharpness")}
    return shown | {
        "name": title or folder.resolve().name,
        "sources": [source["name"] for source in record["sources"]],
        "rows": np.bincount(domain, minlength=len(z)).tolist(),
        "weights": mean_weights(source_weights(log_r, z, record["eta"]), domain),
        "calibration": calibration,
    }
