"""Records of new rows, kept beside a model for those who read it later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anymix._files import read_file, replacing
from anymix.core import plain
from anymix.exchange import parse_json

# Parts of the report that a record of new rows replaces, and the file that keeps each.
FILES = {
    "certificate": "certificate.json",
    "comparison": "comparison.json",
    "traffic": "traffic.json",
}
LIMIT = 64 * 2**20


def add_record(folder: str | Path, part: str, record: Any) -> None:
    """Write a record beside model.json: "certificate", "comparison" or "traffic"."""
    with replacing(Path(folder) / FILES[part]) as temporary:
        temporary.write_text(json.dumps(plain(record), indent=1, allow_nan=False), "utf-8")


def read_records(folder: Path) -> dict[str, Any]:
    """Return the records that are there."""
    there = {part: folder / name for part, name in FILES.items() if (folder / name).exists()}
    return {part: parse_json(read_file(path, LIMIT), str(path)) for part, path in there.items()}


def drop_records(folder: Path) -> None:
    """Remove the records of a model that is about to be replaced."""
    for name in FILES.values():
        (folder / name).unlink(missing_ok=True)
