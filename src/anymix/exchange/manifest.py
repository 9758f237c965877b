"""The manifest: what a source folder says of itself, parsed strictly and by hand."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anymix._errors import AuditError, InputError
from anymix._json import MOST_MARKS, plain_json
from anymix.core import Record
from anymix.exchange.kinds import NONE, density_kinds, takes_words

SCHEMA = 1
TASKS = ("classification", "regression")
DTYPES = ("float32", "float64", "string")
PREDICTOR, DENSITY, MANIFEST = "predictor.onnx", "density.safetensors", "manifest.json"
# Bytes that a file may have.  A reader may refuse more before it has read anything.
LIMITS = {MANIFEST: 2**20, PREDICTOR: 100 * 2**20, DENSITY: 200 * 2**20}
HARMLESS = re.compile(r"[\w .,%/+=<>@-]*")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
# Names of rows and columns that stand beside those of the sources in comparisons and reports.
RESERVED = ("all", "anymix", "likeliest source", "uniform", "worst")
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
class Feature(Record):
    """A column that predictor and density take."""

    name: str
    dtype: str


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
        raise AuditError(path, "was changed: its SHA-256 is not the one in the manifest")


def check_name(name: str) -> None:
    """Refuse a name for a source that no manifest may hold.

    Examples
    --------
    >>> check_name("north 2")
    """
    if not NAME.fullmatch(name):
        raise InputError(
            shown(name),
            "cannot name a source; use 1 to 64 letters, digits, spaces, dots, underscores or "
            "hyphens, and begin with a letter or digit",
        )
    if name.lower().strip() in RESERVED:
        raise InputError(
            shown(name), "cannot name a source: it has a meaning of its own in tables; use another"
        )


def parse_json(content: bytes, where: str, most_marks: int = MOST_MARKS) -> Any:
    """Read JSON that a stranger wrote, within a budget; see `anymix._json.plain_json`."""
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
    anymix._errors.AuditError: manifest.json has schema 99; this version reads 1.
    """
    data = parse_json(content, MANIFEST)
    check(isinstance(data, dict), "is not a JSON object")
    check(
        type(data.get("schema")) is int and data["schema"] == SCHEMA,
        f"has schema {shown(data.get('schema'))}; this version reads {SCHEMA}",
    )
    fields = _exact(data, Manifest)
    _check_source_name(fields["name"])
    check(fields["task"] in TASKS, f"names the task {shown(fields['task'])}; known are {TASKS}")
    kind, known = fields["density"], (*sorted(density_kinds()), NONE)
    check(kind in known, f"names the density {shown(kind)}; known are {known}")
    check(is_text(fields["reveals"], 1000), "does not say what the density reveals")
    fields["classes"] = _classes(fields["classes"], fields["task"])
    fields["features"] = _features(fields["features"], kind)
    fields["own_loss"] = _own_loss(fields["own_loss"])
    rows = fields["n_rows"]
    check(rows is None or _count(rows), f"has n_rows {shown(rows)}")
    fields["files"] = _files(fields["files"])
    return Manifest(**fields)


def _check_source_name(name: Any) -> None:
    check(isinstance(name, str), "has no usable name")
    try:
        check_name(name)
    except InputError as error:
        raise AuditError(MANIFEST, f"has no usable name: {error}".rstrip(".")) from error


def check(condition: Any, complaint: str) -> None:
    """Refuse a manifest with one sentence."""
    if not condition:
        raise AuditError(MANIFEST, complaint)


def shown(value: Any) -> str:
    """Quote a foreign value, but not all of it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _exact(data: Any, record: type) -> dict[str, Any]:
    """Return the fields if they are those of the record, no more and no fewer."""
    names = set(record.__dataclass_fields__)  # type: ignore[attr-defined]
    check(
        isinstance(data, dict), f"has {shown(data)} where an object of {sorted(names)} is expected"
    )
    if data.keys() == names:
        return dict(data)
    check(not names - set(data), f"lacks {sorted(names - set(data))}")
    unknown = sorted(set(data) - names)
    check(not unknown, f"has the unknown entries {shown(unknown)}")
    return dict(data)


def is_text(value: Any, longest: int = 200) -> bool:
    """Whether a name or a label may stand in a manifest: printable, not empty, not too long."""
    return isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()


def is_label(value: Any) -> bool:
    """Whether a text may be a label: one that a spreadsheet would run as a formula may not.

    Signs before words and numbers are harmless; it takes brackets, bars or quotes to do more.

    Examples
    --------
    >>> is_label("+ve"), is_label("-1.5"), is_label("="), is_label('=HYPERLINK("http://x")')
    (True, True, True, False)
    """
    return is_text(value) and (value[0] not in "=+-@" or bool(HARMLESS.fullmatch(value)))


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**62


def _number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) < 1e100


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


def _features(features: Any, kind: str) -> tuple[Feature, ...]:
    check(isinstance(features, list) and 1 <= len(features) <= 100_000, "lists no features")
    found = tuple(Feature(**_exact(entry, Feature)) for entry in features)
    check(all(is_text(f.name) and f.dtype in DTYPES for f in found), "has an invalid feature")
    check(len({f.name for f in found}) == len(found), "has a feature twice")
    dtypes = {f.dtype for f in found}
    check(len(dtypes) == 1, "must have features of one dtype")
    texts = dtypes == {"string"}
    paired = kind == NONE or texts == takes_words(kind)
    check(paired, f"must have features of dtype string if and only if {kind} takes words")
    check(not texts or len(found) == 1, "must have one column where that holds text")
    return found


def _own_loss(entry: Any) -> OwnLoss | None:
    if entry is None:
        return None
    own = OwnLoss(**_exact(entry, OwnLoss))
    check(
        is_text(own.loss) and _number(own.value) and _count(own.n_rows), "has an invalid own_loss"
    )
    return own


def _files(entry: Any) -> dict[str, FileFacts]:
    check(isinstance(entry, dict), "lists no files")
    check(set(entry) == {PREDICTOR, DENSITY}, f"must list the files {PREDICTOR} and {DENSITY}")
    files = {name: FileFacts(**_exact(facts, FileFacts)) for name, facts in entry.items()}
    for name, facts in files.items():
        check(_count(facts.size) and facts.size <= LIMITS[name], f"has an invalid size for {name}")
        digest = facts.sha256
        check(
            isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest),
            f"has an invalid sha256 for {name}",
        )
    return files
