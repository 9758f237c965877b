"""Parts that a record names: they lie in the folder, and the sources are those of the manifests.

Only manifests are read here, so that whatever shows a name can afford to check it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anymix.exceptions import AuditError
from anymix.exchange import LIMITS, check_name, facts_of, parse_json
from anymix.models.place import PART, RECORD, SOURCE
from anymix.storage import read_file

MANIFEST = "manifest.json"


def plain_name(name: str) -> str:
    """Refuse a part that does not lie in the folder itself."""
    if isinstance(name, str) and Path(name).name != name:
        raise AuditError(RECORD, f"names the part {name!r:.60}, which lies outside its folder")
    if not isinstance(name, str) or not (PART.fullmatch(name) or SOURCE.fullmatch(name)):
        raise AuditError(RECORD, f"names the part {name!r:.60}, which is no name of a part")
    return name


def check_entries(sources: Path, record: dict[str, Any]) -> None:
    """Every source of the record is the one whose manifest is there, under its sound name."""
    entries, names = record["sources"], [str(name) for name in record["names"]]
    if len(entries) != len(names):
        raise ValueError("there are not as many sources as names")
    for entry, name in zip(entries, names, strict=True):
        if entry["name"] != name:
            raise ValueError("it does not name the sources as their manifests do")
        check_name(name)
        _check_manifest(sources / plain_name(entry["folder"]), entry)


def _check_manifest(folder: Path, entry: dict[str, Any]) -> None:
    content = read_file(folder / MANIFEST, LIMITS[MANIFEST])
    if facts_of(content).sha256 != entry["sha256"]:
        raise AuditError(folder, "is not the source that the model was made of")
    stated = parse_json(content, str(folder / MANIFEST))
    if stated != {name: told for name, told in entry.items() if name not in ("folder", "sha256")}:
        raise ValueError(f"the entry of {folder.name} is not what its manifest states")
