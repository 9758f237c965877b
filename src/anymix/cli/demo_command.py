"""anymix demo: run the commands of a whole project, one after the other, on real digits."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anymix.cli.console import Console
from anymix.cli.streams import say
from anymix.core import plain
from anymix.exchange import LIMITS, parse_json
from anymix.storage import read_file, replacing

# Three sites with the same digits: upright, mirrored, and as negatives.
SITES = {
    "upright": "linear",
    "mirrored": "forest",
    "negative": "sklearn.ensemble:ExtraTreesClassifier",
}
PARTS = ("train", "held-out", "new")
PAGE = "report.html"
# Lists the demo's files, so that a second run replaces those and nothing else.
NOTE, NOTE_LIMIT = "demo.json", 2**16


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument(
        "--out", default="demo-output", metavar="FOLDER", help="folder for all files"
    )


def run(args: Namespace, console: Console) -> int:
    """Run the command: print each step as a command line, then run it."""
    from anymix.cli import main

    folder, started = Path(os.path.realpath(args.out)), time.monotonic()
    again = make_room(folder)
    write_tables(folder)
    talk = not (args.json or args.quiet)
    here = Path.cwd()
    os.chdir(folder)  # so that the printed commands can be typed as they are
    try:
        for words in commands(again):
            if talk:
                say(f"\n$ anymix {shlex.join(words)}\n")
            status = main(words if talk else [*words, "--quiet"])
            if status:
                return status
    finally:
        os.chdir(here)
    page, seconds = folder / PAGE, time.monotonic() - started
    text = f"\nThe demo took {seconds:.0f} seconds. Open {page} in a browser."
    console.result(text, {"report": str(page), "model": str(folder / "model")})
    return 0


def products() -> tuple[str, ...]:
    """List the files and folders that the demo writes."""
    tables = [f"{site}-{part}.csv" for site in SITES for part in PARTS]
    return (*tables, *SITES, "model", "predictions.csv", "robust.onnx", PAGE)


def make_room(folder: Path) -> bool:
    """Remove the source folders of an earlier demo; refuse a folder with other files."""
    made = _made(folder / NOTE)
    for name in ("manifest.json", "model.json"):
        if os.path.lexists(folder / name):
            raise ValueError(f"{folder} is a source or a model; choose another folder with --out.")
    for name in products():
        if os.path.lexists(folder / name) and name not in made:
            raise ValueError(
                f"{folder / name} exists and is not from a demo; choose another folder with --out."
            )
    for site in SITES:
        source = folder / site
        if not source.exists():
            continue
        if source.is_symlink() or not source.is_dir():
            raise ValueError(f"{source} is not from a demo; choose another folder with --out.")
        strange = sorted({path.name for path in source.iterdir()} - set(LIMITS))
        if strange:
            raise ValueError(
                f"{source / strange[0]} is not from a demo; move it, or choose another folder with "
                "--out."
            )
        shutil.rmtree(source)
    # Written first, so that a stopped demo can be run again.
    with replacing(folder / NOTE) as temporary:
        temporary.write_text(json.dumps({"made": plain(products())}), "utf-8")
    return bool(made)


def _made(note: Path) -> list[str]:
    if not note.exists():
        return []
    found = parse_json(read_file(note, NOTE_LIMIT), str(note))
    made = found.get("made") if isinstance(found, dict) else None
    if not isinstance(made, list) or not set(map(str, made)) <= set(products()):
        raise ValueError(f"{note} is not from a demo; choose another folder with --out.")
    return made


def commands(again: bool = False) -> Iterator[list[str]]:
    """Pack three sources, check them, fit, certify on new rows, predict, export, report.

    Outputs of an earlier demo are replaced with --force, as a user would do.
    """
    force = ["--force"] * again
    task = ["--task", "classification"]
    for site, kind in SITES.items():
        tables = ["--rows", f"{site}-train.csv", "--held-out", f"{site}-held-out.csv"]
        yield ["source", "pack", site, "--name", site, *tables, *task, "--estimator", kind]
    yield ["source", "check", *SITES]
    held_out = [f"{site}={site}-held-out.csv" for site in SITES]
    yield ["fit", *SITES, "--held-out", *held_out, "--out", "model", *force]
    new = [f"{site}={site}-new.csv" for site in SITES]
    yield ["certify", "model", "--held-out", *new, "--save"]
    yield ["compare", "model", "--held-out", *new, "--save"]
    yield ["predict", "model", "upright-new.csv", "--out", "predictions.csv", "--weights", *force]
    yield ["export", "model", "robust.onnx", *force]
    yield ["report", "model", "--out", PAGE, "--title", "Digits from three sites", *force]


def views() -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Return the images (n, 8, 8) as their site sees them, the digits, and the sites."""
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    images, site = images.reshape(-1, 8, 8) / 16, np.arange(len(y)) % len(SITES)
    images[site == 1] = images[site == 1, :, ::-1]
    images[site == 2] = 1 - images[site == 2]
    return images, y, site


def write_tables(folder: Path) -> None:
    """Write tables of training, held-out and new rows for each site."""
    images, y, site = views()
    for k, name in enumerate(SITES):
        own = np.flatnonzero(site == k)
        for part, rows in zip(PARTS, np.array_split(own, 3), strict=True):
            text = io.StringIO()
            out = csv.writer(text)
            out.writerow([*(f"pixel{i}" for i in range(64)), "y"])
            out.writerows([*images[i].ravel().tolist(), f"digit {y[i]}"] for i in rows)
            path, content = folder / f"{name}-{part}.csv", text.getvalue().encode()
            if not path.exists():
                with replacing(path, new=True) as temporary:
                    temporary.write_bytes(content)
            elif path.stat().st_size != len(content) or path.read_bytes() != content:
                raise ValueError(
                    f"{path} has changed since the demo; move it, or choose another folder "
                    "with --out."
                )
