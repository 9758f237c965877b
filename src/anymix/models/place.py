"""Where a model may be written, and what of an older one may be removed: nothing of the user's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from anymix.exchange import ReceivedSource

RECORD = "model.json"
# Names that only a model's own parts have: twelve digits of a SHA-256.
SOURCE = re.compile(r".+-[0-9a-f]{12}")
PART = re.compile(r"(tables|router)-[0-9a-f]{12}\.safetensors")
TEMPORARY = re.compile(r"\..*\.tmp(\..*)?")


def source_folder(one: ReceivedSource) -> str:
    """Name the folder of a source by its name and content."""
    return f"{one.manifest.name}-{one.sha256[:12]}"


def check_place(folder: str | Path) -> bool:
    """Return whether a model is there to be replaced; refuse a place that holds other things."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; choose another name for the model folder.")
    if (folder / RECORD).exists():
        return True
    if folder.exists() and not all(map(_is_left_over, folder.iterdir())):
        raise ValueError(f"{folder} exists and is not a model folder; choose another name.")
    return False


def _is_left_over(path: Path) -> bool:
    """Whether a run that was killed may have left this."""
    if path.name == "sources" and path.is_dir():
        return all(_is_source(inner) or TEMPORARY.fullmatch(inner.name) for inner in path.iterdir())
    return bool(PART.fullmatch(path.name) or TEMPORARY.fullmatch(path.name))


def _is_source(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and bool(SOURCE.fullmatch(path.name))


def clean(folder: Path, kept: set[str]) -> None:
    """Remove what an older model, or a run that was killed, has left; nothing else is touched."""
    for path in folder.iterdir():
        ours = PART.fullmatch(path.name) or TEMPORARY.fullmatch(path.name)
        if ours and path.is_file() and path.name not in kept:
            path.unlink()
    for path in (folder / "sources").iterdir():
        if _is_source(path) and path.name not in kept:
            shutil.rmtree(path)
