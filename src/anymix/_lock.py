"""One writer at a time: a lock that the system gives up for a process that dies."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anymix._errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold a folder, which is made if need be, for one writer; the second one is told at once.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, locked(place):
    ...     with locked(place):
    ...         pass
    Traceback (most recent call last):
    ...
    anymix._errors.InputError: ... is being written by another anymix; wait until that has ended.
    """
    folder = Path(folder)
    try:
        made = _make(folder)
        lock = _open(folder / LOCK)
    except OSError as error:
        raise InputError(folder, f"cannot be written: {error.strerror}") from error
    if lock is None:
        raise InputError(folder, "is being written by another anymix; wait until that has ended")
    try:
        yield
    finally:
        # Before the lock is given up, so that nobody holds a file that is about to go.
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(lock)
        with suppress(OSError):  # a folder that holds something stays
            _end(folder, made)


def _make(folder: Path) -> bool:
    if folder.is_dir():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    return True


def _end(folder: Path, made: bool) -> None:
    if fcntl is None:  # Windows removes no file that is open
        (folder / LOCK).unlink(missing_ok=True)
    if made:
        folder.rmdir()


def _open(path: Path) -> int | None:
    """Open and lock a file; None if another process has done so."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        held = stat.S_ISREG(os.fstat(descriptor).st_mode) and _take(descriptor)
        if held and _is_there(path, descriptor):
            return descriptor
        os.close(descriptor)
        if not held:
            return None


def _is_there(path: Path, descriptor: int) -> bool:
    """Whether the file is still the one of that name: the writer before us may have removed it."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _take(descriptor: int) -> bool:
    try:
        if fcntl is None:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError | PermissionError):
            return False
        raise
    return True
