"""The manifest: what a source folder says of itself, parsed strictly and by hand."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anymix.core import Record
from anymix.exceptions import AuditError, InputError
from anymix.exchange.entries import MANIFEST as MANIFEST
from anymix.exchange.entries import check, exact, is_count, is_number
from anymix.exchange.entries import is_label as is_label
from anymix.exchange.entries import is_text as is_text
from anymix.exchange.entries import shown as shown
from anymix.exchange.features import Feature as Feature
from anymix.exchange.features import MixedFeature as MixedFeature
from anymix.exchange.features import columns_of, parse_features
from anymix.exchange.kinds import NONE, density_kinds
from anymix.exchange.names import check_name
from anymix.storage import MOST_MARKS, plain_json
from anymix.tables import Columns

SCHEMA = 1
TASKS = ("classification", "regression")
PREDICTOR, DENSITY = "predictor.onnx", "density.safetensors"
# Bytes that a file may have.  A reader may refuse more before it has read anything.
LIMITS = {MANIFEST: 2**20, PREDICTOR: 100 * 2**20, DENSITY: 200 * 2**20}
MOST_CLASSES = 1000  # every row of a table costs a number for each, and for each source


@dataclass(frozen=True)
class OwnLoss(Record):
    """The predictor's mean loss on `n_rows` held-out rows at home."""

    loss: str
    value: float
    n_rows: int


@dataclass(frozen=True)
class FileFacts(Record):
    """Size in bytes and SHA-256 of a file, in hexadecimal digits."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest(Record):
    """What stands in manifest.json; docs/format.md describes each field."""

    schema: int
    name: str
    task: str
    classes: tuple[str | int, ...] | None
    features: tuple[Feature, ...]
    density: str
    reveals: str
    own_loss: OwnLoss | None
    n_rows: int | None
    files: Mapping[str, FileFacts]

    @property
    def is_text(self) -> bool:
        """Whether the one column holds documents."""
        return self.features[0].dtype == "string"

    @property
    def columns(self) -> Columns | None:
        """The coding of a table with words or gaps; None for complete numbers and documents."""
        return columns_of(self.features)


def facts_of(content: bytes) -> FileFacts:
    """Return size and SHA-256.

    Examples
    --------
    >>> facts_of(b"").sha256[:8]
    'e3b0c442'
    """
    return FileFacts(len(content), hashlib.sha256(content).hexdigest())


def check_facts(path: Path, content: bytes, stated: FileFacts) -> None:
    """Compare a file with what the manifest says of it."""
    found = facts_of(content)
    if found.size != stated.size:
        raise AuditError(path, f"has {found.size} bytes; the manifest says {stated.size}")
    if found.sha256 != stated.sha256:
        raise AuditError(
            path,
            "was changed: its SHA-256 is not the one in the manifest; ask for the folder again",
        )


def parse_json(content: bytes, where: str, most_marks: int = MOST_MARKS) -> Any:
    """Read JSON that a stranger wrote, within a budget; see `anymix.storage.plain_json`."""
    try:
        return plain_json(content, most_marks)
    except ValueError as error:
        raise AuditError(where, str(error)) from error


def parse_manifest(content: bytes) -> Manifest:
    """Check every field of a manifest; what is not known is refused.

    Examples
    --------
    >>> parse_manifest(b'{"schema": 99}')
    Traceback (most recent call last):
    ...
    anymix.exceptions.AuditError: manifest.json has schema 99; this version reads 1.
    """
    data = parse_json(content, MANIFEST)
    check(isinstance(data, dict), "is not a JSON object")
    check(
        type(data.get("schema")) is int and data["schema"] == SCHEMA,
        f"has schema {shown(data.get('schema'))}; this version reads {SCHEMA}",
    )
    fields = exact(data, Manifest)
    _check_source_name(fields["name"])
    check(fields["task"] in TASKS, f"names the task {shown(fields['task'])}; known are {TASKS}")
    kind, known = fields["density"], (*sorted(density_kinds()), NONE)
    check(kind in known, f"names the density {shown(kind)}; known are {known}")
    check(is_text(fields["reveals"], 1000), "does not say what the density reveals")
    fields["classes"] = _classes(fields["classes"], fields["task"])
    fields["features"] = parse_features(fields["features"], kind)
    fields["own_loss"] = _own_loss(fields["own_loss"])
    rows = fields["n_rows"]
    check(rows is None or is_count(rows), f"has n_rows {shown(rows)}")
    fields["files"] = _files(fields["files"])
    return Manifest(**fields)


def _check_source_name(name: Any) -> None:
    check(isinstance(name, str), "has no usable name")
    try:
        check_name(name)
    except InputError as error:
        raise AuditError(MANIFEST, f"has no usable name: {error}".rstrip(".")) from error


def _classes(classes: Any, task: str) -> tuple[str | int, ...] | None:
    if task == "regression":
        check(classes is None, "has classes, but its task is regression")
        return None
    listed = isinstance(classes, list) and 2 <= len(classes) <= MOST_CLASSES
    check(listed, f"must list 2 to {MOST_CLASSES} classes")
    kinds = {type(label) for label in classes}
    check(kinds in ({str}, {int}), "must have classes that are all strings or all integers")
    check(
        all(is_label(c) if kinds == {str} else abs(c) < 2**62 for c in classes),
        "has an invalid class",
    )
    check(len(set(classes)) == len(classes), "has a class twice")
    return tuple(classes)


def _own_loss(entry: Any) -> OwnLoss | None:
    if entry is None:
        return None
    own = OwnLoss(**exact(entry, OwnLoss))
    check(
        is_text(own.loss) and is_number(own.value) and is_count(own.n_rows),
        "has an invalid own_loss",
    )
    return own


def _files(entry: Any) -> dict[str, FileFacts]:
    check(isinstance(entry, dict), "lists no files")
    check(set(entry) == {PREDICTOR, DENSITY}, f"must list the files {PREDICTOR} and {DENSITY}")
    files = {name: FileFacts(**exact(facts, FileFacts)) for name, facts in entry.items()}
    for name, facts in files.items():
        check(
            is_count(facts.size) and facts.size <= LIMITS[name], f"has an invalid size for {name}"
        )
        digest = facts.sha256
        check(
            isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest),
            f"has an invalid sha256 for {name}",
        )
    return files
