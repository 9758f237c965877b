"""The manifest: the description of a source folder, parsed strictly.

A new density that packs itself needs its file and its line in `anymix.densities.__all__`; nothing
here has to be changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from anymix import densities
from anymix.core import Record
from anymix.exceptions import AuditError, InputError, quoted
from anymix.exchange.source_names import check_name
from anymix.sources import Source
from anymix.storage import MOST_MARKS, plain_json
from anymix.tables import MOST_CATEGORIES, Column, Columns, is_text

# A source of a model folder may have no density: one router serves all sources there.
NONE = "none"


def travelling(routers: bool = True) -> dict[str, Any]:
    """Return the class of each kind that can be packed: densities and routers."""
    kinds = (getattr(densities, name) for name in densities.__all__)
    packed = [found for found in kinds if hasattr(found, "kind")]
    return {found.kind: found for found in packed if routers or hasattr(found, "score_samples")}


def names_of_densities() -> str:
    """List the densities that can be packed.

    Examples
    --------
    >>> names_of_densities()
    'BigramModel, ContrastiveDensity, GaussianKDE, GaussianMixtureDensity or TextDensity'
    """
    *first, last = sorted(found.__name__ for found in travelling(routers=False).values())
    return f"{', '.join(first)} or {last}"


MANIFEST = "manifest.json"
MOST_SAID = 500  # characters of what a density says of itself
DIGEST = re.compile("[0-9a-f]{64}")
HARMLESS = re.compile(r"[\w .,%/+=<>@-]*")


def check(condition: Any, complaint: str) -> None:
    """Refuse a manifest with one sentence."""
    if not condition:
        raise AuditError(MANIFEST, complaint)


def exact(data: Any, record: type, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields if they are those of the record, no more and no fewer."""
    names = set(record.__dataclass_fields__) - set(without)  # type: ignore[attr-defined]
    listed = sorted(names)
    check(isinstance(data, dict), f"has {quoted(data)} where an object of {listed} is expected")
    check(not names - set(data), f"lacks {sorted(names - set(data))}")
    unknown = sorted(set(data) - names)
    check(not unknown, f"has the unknown entries {quoted(unknown)}")
    return dict(data)


def is_label(value: Any) -> bool:
    """Whether a text may be a label: one that a spreadsheet would run as a formula may not.

    Signs before words and numbers are harmless; it takes brackets, bars or quotes to do more.
    """
    return is_text(value) and (value[0] not in "=+-@" or bool(HARMLESS.fullmatch(value)))


def is_count(value: Any) -> bool:
    """Whether a value is a whole number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**62


def shortened(text: str, most: int = MOST_SAID) -> str:
    """Keep the first sentences of a text: a manifest holds a limited length of it."""
    if len(text) <= most:
        return text
    return f"{text[:most].rpartition('. ')[0] or text[:most]}. And so on."


DTYPES = ("float32", "float64", "string")
# Entries that only the columns of a table with words or missing values have; then all of them do.
MARKS = {"categories", "gaps"}
MOST_FEATURES = 100_000
MOST_WORDS = 20_000  # of all columns: every reader holds them, and shows them


@dataclass(frozen=True)
class Feature(Record):
    """A column that predictor and density take.

    In a table of complete numbers, and of documents, `gaps` is None.  Else it says whether a cell
    may be empty, which is NaN.  With `categories` a column holds words, coded 0, 1, ... in their
    order, and all other words are missing.
    """

    name: str
    dtype: str
    categories: tuple[str, ...] | None = None
    gaps: bool | None = None


def same_codes(columns: Columns, density: Any) -> bool:
    """Whether the categories of a density, if it has any, are these."""
    own = getattr(density, "columns_", None) or columns
    pairs = zip(own, columns, strict=False)
    alike = all(mine.categories in (None, due.categories) for mine, due in pairs)
    return alike and len(own) == len(columns)


def columns_taken(source: Source, density: Any, rows: Any) -> tuple[int, bool]:
    """Return how many columns the source takes, and whether the one column holds documents."""
    if density is not None:
        return (1, True) if density.takes != "numbers" else (density.n_features_in_, False)
    if rows is not None:
        return (1, True) if np.ndim(rows) == 1 else (int(np.shape(rows)[1]), False)
    steps = getattr(source.predictor, "steps", None)
    if steps and isinstance(steps[0][1], CountVectorizer):
        return 1, True
    n = getattr(source.predictor, "n_features_in_", None)
    if source.feature_names is not None:
        n = len(source.feature_names)
    if n is None:
        raise InputError(
            f"source {source.name!r}",
            "does not say how many columns it takes; give it feature_names, or pass rows",
        )
    return int(n), False


def parse_features(entries: Any, density: str) -> tuple[Feature, ...]:
    """Check the features of a manifest, whose density is of the kind given."""
    listed = isinstance(entries, list) and 1 <= len(entries) <= MOST_FEATURES
    check(listed, "lists no features")
    mixed = any(isinstance(entry, dict) and MARKS & entry.keys() for entry in entries)
    found = []
    for entry in entries:
        fields = exact(entry, Feature, () if mixed else MARKS)
        if mixed:
            gaps, words = fields["gaps"], fields["categories"]
            check(isinstance(gaps, bool), "does not say of a feature whether it has missing values")
            if words is not None:
                listed = isinstance(words, list) and len(words) <= MOST_CATEGORIES
                check(listed, f"must list at most {MOST_CATEGORIES} categories of a feature")
                check(all(map(is_text, words)), "has an invalid category")
                check(len(set(words)) == len(words), "has a category twice")
                fields["categories"] = tuple(words)
        found.append(Feature(**fields))
    check(all(is_text(f.name) and f.dtype in DTYPES for f in found), "has an invalid feature")
    check(len({f.name for f in found}) == len(found), "has a feature twice")
    dtypes = {f.dtype for f in found}
    check(len(dtypes) == 1, "must have features of one dtype")
    texts = dtypes == {"string"}
    check(not (texts and mixed), "has categories or missing values in a column of documents")
    paired = density == NONE or texts == (travelling()[density].takes == "tokens")
    check(paired, f"must have features of dtype string if and only if {density} takes words")
    check(not texts or len(found) == 1, "must have one column where that holds text")
    n_words = sum(len(f.categories or ()) for f in found)
    check(n_words <= MOST_WORDS, f"lists {n_words} categories, where {MOST_WORDS} are allowed")
    return tuple(found)


SCHEMA = 1
TASKS = ("classification", "regression")
PREDICTOR, DENSITY = "predictor.onnx", "density.safetensors"
SOURCE_FILES = MANIFEST, PREDICTOR, DENSITY
# Bytes that a file may have.  A reader may refuse more before it has read anything.
LIMITS = {MANIFEST: 2**20, PREDICTOR: 100 * 2**20, DENSITY: 200 * 2**20}
MOST_CLASSES = 1000  # every row of a table costs a number for each, and for each source


@dataclass(frozen=True)
class OwnLoss(Record):
    """The predictor's mean loss on `n_rows` held-out rows of its source."""

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
    """The content of manifest.json; docs/format.md describes each field."""

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
        """The coding of a mixed table; None for complete numbers and documents."""
        if self.features[0].gaps is None:
            return None
        return Columns(tuple(Column(feature.name, feature.categories) for feature in self.features))

    def to_dict(self) -> dict[str, Any]:
        """Return what is written; only a mixed table has entries about categories."""
        found = super().to_dict()
        if self.columns is None:
            found["features"] = [{"name": f.name, "dtype": f.dtype} for f in self.features]
        return found


def facts_of(content: bytes) -> FileFacts:
    """Return size and SHA-256."""
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
    """Read untrusted JSON, within a budget; see `anymix.storage.plain_json`."""
    try:
        return plain_json(content, most_marks)
    except ValueError as error:
        raise AuditError(where, str(error)) from error


def parse_manifest(content: bytes) -> Manifest:
    """Check every field of a manifest; unknown fields are refused."""
    data = parse_json(content, MANIFEST)
    check(isinstance(data, dict), "is not a JSON object")
    check(
        type(data.get("schema")) is int and data["schema"] == SCHEMA,
        f"has schema {quoted(data.get('schema'))}; this version reads {SCHEMA}",
    )
    fields = exact(data, Manifest)
    check(isinstance(fields["name"], str), "has no usable name")
    try:
        check_name(fields["name"])
    except InputError as error:
        raise AuditError(MANIFEST, f"has no usable name: {error}".rstrip(".")) from error
    check(fields["task"] in TASKS, f"names the task {quoted(fields['task'])}; known are {TASKS}")
    kind, known = fields["density"], (*sorted(travelling(routers=False)), NONE)
    check(kind in known, f"names the density {quoted(kind)}; known are {known}")
    check(is_text(fields["reveals"], 1000), "does not say what the density reveals")
    fields["classes"] = _classes(fields["classes"], fields["task"])
    fields["features"] = parse_features(fields["features"], kind)
    rows = fields["n_rows"]
    check(rows is None or is_count(rows), f"has n_rows {quoted(rows)}")
    if fields["own_loss"] is not None:
        own = fields["own_loss"] = OwnLoss(**exact(fields["own_loss"], OwnLoss))
        number = isinstance(own.value, int | float) and not isinstance(own.value, bool)
        usual = number and abs(own.value) < 1e100  # which NaN is not
        sound = usual and is_text(own.loss) and is_count(own.n_rows)
        check(sound, "has an invalid own_loss")
    check(isinstance(fields["files"], dict), "lists no files")
    listed = set(fields["files"]) == {PREDICTOR, DENSITY}
    check(listed, f"must list the files {PREDICTOR} and {DENSITY}")
    files = {name: FileFacts(**exact(facts, FileFacts)) for name, facts in fields["files"].items()}
    for name, stated in files.items():
        sound = is_count(stated.size) and stated.size <= LIMITS[name]
        check(sound, f"has an invalid size for {name}")
        digest = isinstance(stated.sha256, str) and DIGEST.fullmatch(stated.sha256)
        check(digest, f"has an invalid sha256 for {name}")
    return Manifest(**fields | {"files": files})


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
