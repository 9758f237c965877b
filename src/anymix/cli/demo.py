"""anymix demo: the whole story on real digits, one command after the other, as one would type."""

from __future__ import annotations

import csv
import os
import shlex
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anymix.cli.console import Console

# Three sites read the same kind of digits: upright, mirrored, and as negatives.
SITES = {
    "upright": "linear",
    "mirrored": "forest",
    "negative": "sklearn.ensemble:ExtraTreesClassifier",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("--out", default="demo-output", metavar="FOLDER", help="for all files")


def run(args: Namespace, console: Console) -> int:
    """Run the command: every step is a command of its own, said before it runs."""
    from anymix.cli import main

    folder, started = Path(args.out), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(folder)
    talk = not (args.json or args.quiet)
    here = Path.cwd()
    os.chdir(folder)  # so that the commands read as they would be typed
    try:
        for words in commands():
            if talk:
                sys.stdout.write(f"\n$ anymix {shlex.join(words)}\n")
                sys.stdout.flush()
            status = main(words if talk else [*words, "--quiet"])
            if status:
                return status
    finally:
        os.chdir(here)
    page, seconds = folder / "report.html", time.monotonic() - started
    text = f"\nAll of it took {seconds:.0f} seconds. Open {page} in a browser."
    console.result(text, {"report": str(page), "model": str(folder / "model")})
    return 0


def commands() -> Iterator[list[str]]:
    """Pack three sources, check them, learn, judge on new rows, predict, export, report."""
    task = ["--task", "classification"]
    for site, kind in SITES.items():
        tables = ["--rows", f"{site}-train.csv", "--held-out", f"{site}-held-out.csv"]
        yield ["source", "pack", site, "--name", site, *tables, *task, "--estimator", kind]
    yield ["source", "check", *SITES]
    held_out = [f"{site}={site}-held-out.csv" for site in SITES]
    yield ["fit", *SITES, "--held-out", *held_out, "--out", "model"]
    new = [f"{site}={site}-new.csv" for site in SITES]
    yield ["certify", "model", "--held-out", *new]
    yield ["compare", "model", "--held-out", *new]
    yield ["predict", "model", "upright-new.csv", "--out", "predictions.csv", "--weights"]
    yield ["export", "model", "robust.onnx"]
    yield ["report", "model", "--out", "report.html", "--title", "Digits from three sites"]


def views() -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Images (n, 8, 8) as their site sees them, their digits, and the site of each."""
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    images, site = images.reshape(-1, 8, 8) / 16, np.arange(len(y)) % len(SITES)
    images[site == 1] = images[site == 1, :, ::-1]
    images[site == 2] = 1 - images[site == 2]
    return images, y, site


def write_tables(folder: Path) -> None:
    """Write a table to train on, one held out, and one of new rows, for each site."""
    images, y, site = views()
    for k, name in enumerate(SITES):
        own = np.flatnonzero(site == k)
        for part, rows in zip(("train", "held-out", "new"), np.array_split(own, 3), strict=True):
            with (folder / f"{name}-{part}.csv").open("w", newline="", encoding="utf-8") as file:
                out = csv.writer(file)
                out.writerow([*(f"pixel{i}" for i in range(64)), "y"])
                out.writerows([*images[i].ravel().tolist(), f"digit {y[i]}"] for i in rows)
