"""Where a command may write: never over an input, nor over a file that it did not make.

What exists is left alone.  `--force` replaces what anymix itself has made, and nothing else.
"""

from __future__ import annotations

import csv
import os
import re
import zipfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from anymix.cli.npz_rows import FAULTS, array_header
from anymix.cli.table_files import STANDARD_INPUT, TEXTS, kind_of, open_text
from anymix.exceptions import InputError
from anymix.exchange import MLFLOW_FILES, need, read_site
from anymix.models import held
from anymix.report import CARD_BEGIN
from anymix.storage import is_stream, replacing

HEAD = 4096
LINE = 2**24
# What the files begin with that are ours; the hash is that of the page's script.
PAGE = re.compile(
    b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-[A-Za-z0-9+/=]{44}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="anymix">
<title>"""
)
GRAPH = b"\x08\x0a\x12\x06anymix"


def add_force(parser: ArgumentParser, what: str) -> None:
    """Add the option without which nothing is replaced."""
    parser.add_argument(
        "--force",
        action="store_true",
        help=f"replace {what} that anymix has written; other files are never replaced",
    )


def check_suffix(out: str, what: str, suffixes: tuple[str, ...]) -> None:
    """Refuse a name that promises another kind of file; one without a suffix promises none.

    Examples
    --------
    >>> check_suffix("report.pdf", "an HTML page", (".html", ".htm"))
    Traceback (most recent call last):
    ...
    anymix.exceptions.InputError: report.pdf would hold an HTML page; name it .html.
    """
    suffix = Path(out).suffix.lower()
    if suffix and suffix not in suffixes and not is_stream(out):
        raise InputError(out, f"would hold {what}; name it {suffixes[0]}")


def check_apart(out: str | Path, inputs: Iterable[str | Path]) -> None:
    """Refuse an output that is an input, lies in one, or holds one."""
    # Unlike resolve(), realpath() has an answer to links that lead in a circle.
    target = Path(os.path.realpath(out))
    for given in inputs:
        source = Path(os.path.realpath(given))
        if Path(given) == STANDARD_INPUT and not source.is_file():
            continue  # a pipe or a terminal, which may well be standard output too
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
        _check_ours(path, force, is_ours)
    with tidying(path), replacing(path, new=not there, suffix=suffix) as temporary:
        yield temporary


def _check_ours(path: Path, force: bool, is_ours: Callable[[Path], bool]) -> None:
    if not force:
        raise InputError(path, "exists already; choose another name, or replace it by --force")
    if not is_ours(path):
        raise InputError(
            path,
            "is not known to be written by this command, so it is kept; choose another name, "
            "or remove it first",
        )


def check_folder(out: str | Path, inputs: Iterable[str | Path], force: bool) -> bool:
    """Refuse a folder that may not be written; return whether one of MLflow's kind is replaced."""
    path = Path(out)
    check_apart(path, inputs)
    if os.path.lexists(path):
        _check_ours(path, force, is_mlflow)
    return os.path.lexists(path)


@contextmanager
def tidying(out: str | Path) -> Iterator[None]:
    """Remove the folders above an output again, if they were made for it and it was not."""
    missing = [above for above in Path(out).parents if not above.exists()]
    try:
        yield
    except BaseException:
        for above in missing:
            with suppress(OSError):
                above.rmdir()
        raise


def saving(folder: str, save: bool) -> Any:
    """Hold a model folder while a record for it is made, so that no writer comes between."""
    return held(folder) if save else nullcontext()


def is_prediction(path: Path) -> bool:
    """Whether a table has the columns that predict writes, all of them and in their order.

    Before them may stand an id.  A column `prediction` that nothing follows must hold nothing but
    numbers, as predict writes them.
    """
    kind = kind_of(path)
    try:
        names = COLUMNS[kind](path)
        kinds = "".join(map(_kind, names))
        if kinds in ("r", "xr"):
            return NUMBERS[kind](path)
    except (*FAULTS, NotImplementedError, csv.Error):
        return False
    known = re.fullmatch("x?(lp+s?w*n?|rw+n?|rn|rabw*n?)", kinds)
    return known is not None and len(set(names)) == len(names)


def _kind(name: str) -> str:
    """Return a letter for a column that predict writes, and x for all others."""
    fixed = {"label": "l", "prediction": "r", "novelty": "n"}
    fixed |= {"set": "s", "lower": "a", "upper": "b"}
    found = re.fullmatch(r"(p|weight)\(.+\)", name)
    return fixed.get(name, found[1][0] if found else "x")


def _csv_columns(path: Path) -> list[str]:
    with open_text(path) as text:
        line = text.lines.readline(LINE).decode("utf-8")
        return next(csv.reader([line], delimiter=text.mark), [])


def _npz_columns(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        return [name.removesuffix(".npy") for name in file.namelist()]


def _parquet_columns(path: Path) -> list[str]:
    return list(need("pyarrow.parquet").read_schema(path).names)


def _csv_of_numbers(path: Path) -> bool:
    with open_text(path) as text:
        text.lines.readline(LINE)
        lines = iter(partial(text.lines.readline, LINE), b"")
        ends = (line.decode("utf-8").rpartition(text.mark)[2] for line in lines)
        return all(end == f"{float(end)!r}\n" for end in ends)


def _npz_of_numbers(path: Path) -> bool:
    with zipfile.ZipFile(path) as file:
        shape, kind, size = array_header(file, "prediction")
    return (len(shape), kind, size) == (1, "numbers", 8)


def _parquet_of_numbers(path: Path) -> bool:
    return str(need("pyarrow.parquet").read_schema(path).types[-1]) == "double"


NUMBERS: dict[str, Callable[[Path], bool]] = {
    **dict.fromkeys(TEXTS, _csv_of_numbers),
    ".npz": _npz_of_numbers,
    ".parquet": _parquet_of_numbers,
}
COLUMNS: dict[str, Callable[[Path], list[str]]] = {
    **dict.fromkeys(TEXTS, _csv_columns),
    ".npz": _npz_columns,
    ".parquet": _parquet_columns,
}


def is_page(path: Path) -> bool:
    """Whether a file is a page that report writes: its first lines are those of ours."""
    return PAGE.match(_head(path)) is not None


def is_graph(path: Path) -> bool:
    """Whether a file is an ONNX graph whose producer is anymix: its first fields say so."""
    return _head(path).startswith(GRAPH)


def is_card(path: Path) -> bool:
    """Whether a file is a model card: its first lines say who wrote it."""
    return _head(path).startswith(CARD_BEGIN.encode())


def is_mlflow(path: Path) -> bool:
    """Whether a folder is one that export writes for MLflow: its files and no other, our graph."""
    if path.is_symlink() or not path.is_dir():
        return False
    found = list(path.iterdir())
    plain = all(one.is_file() and not one.is_symlink() for one in found)
    return (
        plain and {one.name for one in found} == {*MLFLOW_FILES} and is_graph(path / "model.onnx")
    )


def is_site(path: Path) -> bool:
    """Whether a file is one that site evaluate writes."""
    try:
        read_site(path)
    except (ValueError, OSError):
        return False
    return True


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(HEAD)
