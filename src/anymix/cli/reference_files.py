"""Summaries of sites, and the reference made of them: JSON files that strangers may write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from anymix.densities import Reference, Summary
from anymix.exceptions import AuditError, MissingError
from anymix.exchange import parse_json
from anymix.storage import read_file

T = TypeVar("T")
SUMMARY, REFERENCE = "anymix summary", "anymix reference"
SCHEMA = 1
GIVE = {
    SUMMARY: "give what anymix reference summary wrote",
    REFERENCE: "give what anymix reference join wrote",
}
# Bytes of a file: five thousand columns of numbers take some 4 MB of a summary.
LIMITS = {SUMMARY: 2**24, REFERENCE: 2**27}
MARKS = {SUMMARY: 2_000_000, REFERENCE: 20_000_000}


def write_part(path: Path, kind: str, part: Summary | Reference) -> None:
    """Write a summary or a reference as one JSON object."""
    whole = {"kind": kind, "schema": SCHEMA, "content": part.to_dict()}
    path.write_text(json.dumps(whole, allow_nan=False) + "\n", encoding="utf-8")


def read_summary(path: str | Path) -> Summary:
    """Read what `anymix reference summary` wrote, as if a stranger had."""
    return _read(Path(path), SUMMARY, Summary.from_dict)


def read_reference(path: str | Path) -> Reference:
    """Read what `anymix reference join` wrote, as if a stranger had."""
    return _read(Path(path), REFERENCE, Reference.from_dict)


def _read(path: Path, kind: str, build: Callable[[Any], T]) -> T:
    try:
        data = parse_json(read_file(path, LIMITS[kind]), str(path), MARKS[kind])
    except FileNotFoundError as error:
        raise MissingError(path, f"does not exist; {GIVE[kind]}") from error
    except AuditError as error:
        raise AuditError(error.where, f"{error.cause}; {GIVE[kind]}") from error
    if not isinstance(data, dict) or set(data) != {"kind", "schema", "content"}:
        raise AuditError(path, f"is not an {kind}: it has no kind, schema, content; {GIVE[kind]}")
    if data["kind"] != kind:
        told = f"but says that it is {data['kind']!r:.60}"
        raise AuditError(path, f"is not an {kind}, {told}; {GIVE[kind]}")
    if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
        raise AuditError(path, f"has schema {data['schema']!r:.20}; this version reads {SCHEMA}")
    try:
        return build(data["content"])
    except ValueError as error:
        raise AuditError(path, f"is not sound: {str(error).rstrip('.')}") from error
