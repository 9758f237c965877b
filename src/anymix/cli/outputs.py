"""Check outputs: never over an input, and over an existing file only with `--force`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from anymix.exceptions import InputError
from anymix.exchange import MLFLOW_FILES
from anymix.models import held
from anymix.storage import is_stream, replacing
from anymix.tables import STANDARD_INPUT

EXISTS = "exists already; choose another name, or replace it with --force"


def check_suffix(out: str, what: str, suffixes: tuple[str, ...]) -> None:
    """Refuse a suffix of another format; a name without a suffix is accepted."""
    suffix = Path(out).suffix.lower()
    if suffix and suffix not in suffixes and not is_stream(out):
        raise InputError(out, f"would hold {what}; name it {suffixes[0]}")


def check_apart(out: str | Path, inputs: Iterable[str | Path]) -> None:
    """Refuse an output that is an input, or is inside one, or contains one."""
    # Unlike resolve(), realpath() handles circular links.
    target = Path(os.path.realpath(out))
    for given in inputs:
        source = Path(os.path.realpath(given))
        if Path(given) == STANDARD_INPUT and not source.is_file():
            continue  # a pipe or a terminal, which may also be standard output
        there = os.path.exists(target) and os.path.exists(source)
        if target == source or (there and os.path.samefile(target, source)):
            raise InputError(out, "is read by this command; choose another output")
        for inner, outer, verb in ((target, source, "lies in"), (source, target, "holds")):
            # samefile, because a folder may have several names on a disk that ignores case.
            above = filter(os.path.exists, inner.parents if os.path.exists(outer) else ())
            if any(os.path.samefile(folder, outer) for folder in above):
                cause = f"{verb} {given}, which is read by this command; choose another output"
                raise InputError(out, cause)


@contextmanager
def output(
    out: str | Path, inputs: Iterable[str | Path], force: bool, suffix: str = ""
) -> Iterator[Path]:
    """Yield a temporary file that gets the name of the output if the block succeeds."""
    path = Path(out)
    check_apart(path, inputs)
    if not path.parent.exists():
        cause = (
            f"is in the folder {path.parent}, which does not exist; create it, or correct the name"
        )
        raise InputError(path, cause)
    there = path.is_file() and not is_stream(path)
    # An empty file was created as an output, as mktemp does.
    if there and not force and not path.is_symlink() and path.stat().st_size:
        raise InputError(path, EXISTS)
    with tidying(path), replacing(path, new=not there, suffix=suffix) as temporary:
        yield temporary


def check_folder(
    out: str | Path,
    inputs: Iterable[str | Path],
    force: bool,
    files: Iterable[str] = MLFLOW_FILES,
    what: str = "an MLflow folder",
) -> bool:
    """Check that a folder may be written; return whether one of these files is replaced."""
    path = Path(out)
    check_apart(path, inputs)
    if not os.path.lexists(path):
        return False
    if not force:
        raise InputError(path, EXISTS)
    # The whole folder is removed, so it may contain nothing but these files.
    if path.is_symlink() or not path.is_dir() or set(os.listdir(path)) != {*files}:
        raise InputError(
            path, f"is not {what} of this command; choose another name, or remove it first"
        )
    return True


@contextmanager
def tidying(out: str | Path) -> Iterator[None]:
    """Remove parent folders of an output that were created, if the output was not written."""
    missing = [above for above in Path(out).parents if not above.exists()]
    try:
        yield
    except BaseException:
        for above in missing:
            with suppress(OSError):
                above.rmdir()
        raise


def saving(folder: str, save: bool) -> Any:
    """Lock a model folder while a record for it is computed."""
    return held(folder) if save else nullcontext()
