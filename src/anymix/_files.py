"""Files that strangers made, read once and safely; files that we make, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from anymix._errors import AuditError


def read_folder(folder: str | Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """Return the content of exactly the named files, each a plain file within its limit.

    A file is opened once and what was read is what is used, so nothing can be changed between
    the check and the use.
    """
    folder = Path(folder)
    if not folder.exists():
        raise AuditError(folder, "does not exist; give a folder that is there")
    if not folder.is_dir():
        raise AuditError(folder, "is not a folder")
    with os.scandir(folder) as entries:
        names = {entry.name for entry in islice(entries, len(limits) + 1)}
    strange = sorted(names - set(limits))
    if strange:
        raise AuditError(folder, f"holds {strange[0]!r}, which does not belong there")
    missing = sorted(set(limits) - names)
    if missing:
        raise AuditError(folder, f"has no {missing[0]}")
    return {name: read_file(folder / name, limit) for name, limit in limits.items()}


def read_file(path: Path, limit: int) -> bytes:
    """Read a plain file of at most `limit` bytes; links, pipes and devices are refused."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise AuditError(path, "is not a plain file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise AuditError(path, f"is larger than the {limit} bytes that are allowed")
        return file.read(limit)


def plain_json(content: bytes) -> Any:
    """Read JSON without NaN, infinities, repeated keys or bottomless nesting.

    A ValueError says what is wrong, in words that can follow the name of a file.

    Examples
    --------
    >>> plain_json(b'{"a": [1]}')
    {'a': [1]}
    >>> plain_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: is not plain JSON: NaN is not a number
    """
    try:
        return json.loads(
            content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repeats
        )
    except (ValueError, RecursionError) as error:
        cause = str(error).split("\n")[0][:200].rstrip(".")
        raise ValueError(f"is not plain JSON: {cause}") from error


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; move it into place when the block ends well.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(
        prefix=f".{path.stem}-", suffix=f".tmp{path.suffix}", dir=path.parent
    )
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        _to_disk(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    # Temporary files are private; the file that takes their place has the usual permissions.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _to_disk(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def check_new(folder: str | Path) -> None:
    """Refuse a name that is taken."""
    folder = Path(folder)
    if folder.exists():
        raise ValueError(
            f"{folder.absolute()} exists already; choose another name or remove it first."
        )


def write_folder(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder under a temporary name and move it into place; never over another."""
    folder = Path(folder)
    check_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", suffix=".tmp", dir=folder.parent))
    try:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
            _to_disk(temporary / name)
        temporary.chmod(0o777 & ~_umask())
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
