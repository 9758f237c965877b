"""Where a command may write: never over an input, nor over a file that it did not make.

What exists is left alone.  `--force` replaces what anymix itself has made, and nothing else.
"""

from __future__ import annotations

import csv
import json
import os
import zipfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from anymix._errors import InputError
from anymix._files import is_stream, replacing
from anymix.exchange import need, read_site
from anymix.models import held

PREDICTIONS = ("label", "prediction", "novelty")
HEAD = 4096


def add_force(parser: ArgumentParser, what: str) -> None:
    """Add the option without which nothing is replaced."""
    parser.add_argument(
        "--force",
        action="store_true",
        help=f"replace {what} that anymix has written; other files are never replaced",
    )


def check_apart(out: str | Path, inputs: Iterable[str | Path]) -> None:
    """Refuse an output that is an input, lies in one, or holds one."""
    # Unlike resolve(), realpath() has an answer to links that lead in a circle.
    target = Path(os.path.realpath(out))
    for given in inputs:
        source = Path(os.path.realpath(given))
        if target == source or _same(target, source):
            raise InputError(out, "is read by this command; choose another name for what it writes")
        if any(_same(above, source) for above in target.parents):
            raise InputError(
                out, f"lies in {given}, which is read by this command; choose another place"
            )
        if any(_same(above, target) for above in source.parents):
            raise InputError(
                out, f"holds {given}, which is read by this command; choose another place"
            )


def _same(one: Path, other: Path) -> bool:
    """Whether two names are of one file or folder, whichever way they lead there."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@contextmanager
def output(
    out: str | Path,
    inputs: Iterable[str | Path],
    force: bool,
    is_ours: Callable[[Path], bool],
    suffix: str = "",
) -> Iterator[Path]:
    """Yield a temporary file for an output, which gets its name when the block ends well."""
    path = Path(out)
    check_apart(path, inputs)
    there = path.is_file() and not is_stream(path)
    # An empty file is a name that was made to be written to, as mktemp does.
    spare = there and path.stat().st_size == 0
    if there and not spare and not path.is_symlink():
        if not force:
            raise InputError(path, "exists already; choose another name, or replace it by --force")
        if not is_ours(path):
            raise InputError(
                path, "was not written by this command, so it is kept; choose another name"
            )
    with replacing(path, new=not there, suffix=suffix) as temporary:
        yield temporary


def saving(folder: str, save: bool) -> Any:
    """Hold a model folder while a record for it is made, so that no writer comes between."""
    return held(folder) if save else nullcontext()


def is_prediction(path: Path) -> bool:
    """Whether a table has the columns that predict writes, and no other."""
    try:
        names = COLUMNS[path.suffix](path)
    except (OSError, ValueError, KeyError, csv.Error, zipfile.BadZipFile):
        return False
    known = [name in PREDICTIONS or name[:2] == "p(" or name[:7] == "weight(" for name in names]
    return bool(known) and all(known) and names[0] in ("label", "prediction")


def _csv_columns(path: Path) -> list[str]:
    with open(path, newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _npz_columns(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        return [name.removesuffix(".npy") for name in file.namelist()]


def _parquet_columns(path: Path) -> list[str]:
    return list(need("pyarrow.parquet").read_schema(path).names)


COLUMNS: dict[str, Callable[[Path], list[str]]] = {
    ".csv": _csv_columns,
    ".npz": _npz_columns,
    ".parquet": _parquet_columns,
}


def is_page(path: Path) -> bool:
    """Whether a file is a page that report writes."""
    return b'<meta name="generator" content="anymix' in _head(path)


def is_graph(path: Path) -> bool:
    """Whether a file is an ONNX graph whose producer is anymix: its first fields say so."""
    return b"\x12\x06anymix" in _head(path)[:64]


def is_site(path: Path) -> bool:
    """Whether a file is one that site evaluate writes."""
    try:
        read_site(path)
    except (ValueError, OSError):
        return False
    return True


def is_study(path: Path) -> bool:
    """Whether a file holds the records of a study."""
    try:
        first = json.loads(_head(path).split(b"\n")[0])
    except ValueError:
        return False
    return isinstance(first, dict) and {"study", "version", "date"} <= set(first)


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(HEAD)
