"""Reserve a model folder: overwrite protection, and removal of an older model's files.

Parts of a model are listed in its model.json, or recognised by their SHA-256 in their name.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anymix.exceptions import AuditError, InputError
from anymix.exchange import LIMITS, ReceivedSource, parse_json
from anymix.models.model_record import GENERALIST, KIND, MEMBERS, SCHEMA
from anymix.models.saved_records import FILES, RECORD, RECORD_LIMIT, check_free, is_record
from anymix.storage import LOCK, TEMPORARY, locked, read_file

LINK = "is a link; give the folder itself, or another name"
SCHEMAS = tuple(range(1, SCHEMA + 1))
# Names that only a model's own parts have: twelve digits of a SHA-256.
SOURCE = re.compile(r"[^.].*-([0-9a-f]{12})", re.DOTALL)
PARTS = ("tables", "router", "novelty", "fold_scores")
PART = re.compile(rf"(?:{'|'.join(PARTS)})-([0-9a-f]{{12}})\.safetensors")
WRITTEN = re.compile(rf"model|certificate|comparison|traffic|({'|'.join(PARTS)})-[0-9a-f]{{12}}")


def source_folder(one: ReceivedSource) -> str:
    """Name the folder of a source by its name and content."""
    return f"{one.manifest.name}-{one.sha256[:12]}"


@dataclass(frozen=True)
class ReservedFolder:
    """A folder reserved for this process, and the record of the model in it, if any."""

    folder: Path
    record: dict[str, Any] | None


@contextmanager
def reserved(folder: str | Path) -> Iterator[ReservedFolder]:
    """Check the folder for a model and lock it until the model is written; see `check_place`."""
    folder = Path(folder)
    check_place(folder)
    with locked(folder):
        # Again, as another writer may have been at work until now.
        check_place(folder)
        yield ReservedFolder(folder, _own_record(folder))


@contextmanager
def held(folder: str | Path) -> Iterator[None]:
    """Lock a model folder while a record is made for it, so that nothing else writes to it."""
    if Path(folder).is_symlink():
        raise InputError(folder, LINK)
    if not (Path(folder) / RECORD).is_file():
        yield  # the reader of the folder reports what is wrong with it
        return
    _own_record(Path(folder))
    for name in FILES.values():
        check_free(Path(folder) / name)
    with locked(folder):
        yield


def check_place(folder: str | Path) -> bool:
    """Return whether the folder holds a model to replace; refuse one that holds other things.

    Examples
    --------
    >>> check_place("a folder that does not exist")
    False
    """
    folder = Path(folder)
    if folder.is_symlink():
        raise InputError(folder, LINK)
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(folder, "is a file; choose another name for the model folder")
    record = _own_record(folder)
    *_, strange = _contents(folder, record)
    if strange is None:
        return record is not None
    if record is None:
        raise InputError(folder, f"is not a model folder: it holds {strange}; choose another name")
    raise InputError(
        folder, f"holds {strange}, which is no part of its model; move that, or choose another name"
    )


def _own_record(folder: Path) -> dict[str, Any] | None:
    """Read the record of the model that is there; refuse one that is not ours."""
    path = folder / RECORD
    if not os.path.lexists(path):
        return None
    try:
        found = parse_json(read_file(path, RECORD_LIMIT), str(path))
    except AuditError:
        found = None
    if not is_own(found):
        raise InputError(folder, f"has a {RECORD} that anymix did not write; choose another name")
    return dict(found)


def is_own(record: Any) -> bool:
    """Whether a record describes a model in a known format."""
    return (
        isinstance(record, dict)
        and record.get("kind") == KIND
        and type(record.get("schema")) is int
        and record["schema"] in SCHEMAS
    )


def _contents(
    folder: Path, record: dict[str, Any] | None
) -> tuple[list[Path], list[Path], str | None]:
    """Return parts and sources that may be removed, and the name of the first strange thing."""
    listed = _listed(record)
    parts: list[Path] = []
    sources: list[Path] = []
    strange: list[str] = []
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        if path.name == "sources" and stat.S_ISDIR(mode):
            for inner in sorted(path.iterdir()):
                known = _is_source(inner, listed)
                sources += [inner] * known
                strange += [f"sources/{inner.name}"] * (not known)
        elif stat.S_ISREG(mode) and _is_removable(path, listed):
            parts.append(path)
        elif not stat.S_ISREG(mode) or not (
            (path.name == LOCK and path.stat().st_size == 0)
            or (path.name == RECORD and record is not None)
            or (path.name in FILES.values() and is_record(path))
        ):
            strange.append(path.name)
    return parts, sources, next(iter(strange), None)


def _listed(record: dict[str, Any] | None) -> set[str]:
    """Names of the parts that a record lists, which may be wrong in any way."""
    if record is None:
        return set()
    members, names = record.get(MEMBERS), set()
    for model in [record, *(members if isinstance(members, list) else [])]:
        if not isinstance(model, dict):
            continue
        sources = model.get("sources")
        entries = [(one, "folder") for one in (sources if isinstance(sources, list) else [])]
        entries.append((model.get(GENERALIST), "folder"))
        for entry, key in [*entries, *((model.get(stem), "file") for stem in PARTS)]:
            name = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(name, str) and (SOURCE if key == "folder" else PART).fullmatch(name):
                names.add(name)
    return names


def _is_removable(path: Path, listed: set[str]) -> bool:
    """Whether this is a part, listed or with the SHA-256 that it is named by, or a temporary."""
    temporary, part = TEMPORARY.fullmatch(path.name), PART.fullmatch(path.name)
    if temporary:
        return bool(WRITTEN.fullmatch(temporary[1]))
    return bool(part and (path.name in listed or _digest(path).startswith(part[1])))


def _is_source(path: Path, listed: set[str]) -> bool:
    if not stat.S_ISDIR(path.lstat().st_mode):
        return False
    if not all(p.name in LIMITS and stat.S_ISREG(p.lstat().st_mode) for p in path.iterdir()):
        return False
    named, manifest = SOURCE.fullmatch(path.name), path / "manifest.json"
    if path.name in listed or (TEMPORARY.fullmatch(path.name) and path.name.endswith(".tmp")):
        return True
    return bool(named and manifest.exists() and _digest(manifest).startswith(named[1]))


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def clean(folder: Path, record: dict[str, Any] | None, kept: set[str]) -> None:
    """Remove files of the older model of this record, or of a run that was killed."""
    parts, sources, _ = _contents(folder, record)
    for path in parts:
        if path.name not in kept:
            path.unlink(missing_ok=True)
    for path in sources:
        if path.name not in kept:
            for name in LIMITS:
                (path / name).unlink(missing_ok=True)
            with suppress(OSError):
                path.rmdir()
