"""Keep a command's record in the model folder, for those who read it later."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from anymix._files import replacing
from anymix.core import plain

# Records that `--save` keeps beside model.json, and the part of the report that each replaces.
SAVED = {
    "certificate": "certificate.json",
    "comparison": "comparison.json",
    "traffic": "traffic.json",
}


def add_save(parser: ArgumentParser) -> None:
    """Add --save."""
    parser.add_argument("--save", action="store_true", help="keep the record in the model folder")


def save(args: Namespace, name: str, record: Any) -> None:
    """Write the record beside model.json if that was asked for."""
    if args.save:
        with replacing(Path(args.model) / name) as temporary:
            temporary.write_text(json.dumps(plain(record), indent=1, allow_nan=False), "utf-8")


def drop_saved(folder: Path) -> None:
    """Remove the records of a model that is about to be replaced."""
    for name in SAVED.values():
        if (folder / name).exists():
            (folder / name).unlink()
