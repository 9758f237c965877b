"""File locks for one writer at a time, released by the system if the process dies."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anymix.exceptions import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def locked(folder: str | Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a folder, which is created if needed, for one writer; a second one is refused.

    It is refused at once, or after it has tried for `wait` seconds.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, locked(place):
    ...     with locked(place):
    ...         pass
    Traceback (most recent call last):
    ...
    anymix.exceptions.InputError: ... is being written by another anymix; wait until that has ended.
    """
    folder = Path(folder)
    made = not folder.is_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock, end = _open(folder / LOCK), time.monotonic() + wait
            while lock is None and time.monotonic() < end:
                time.sleep(0.02)
                lock = _open(folder / LOCK)
        except (OSError, InputError):
            with suppress(OSError):
                _end(folder, made)
            raise
    except OSError as error:
        raise InputError(folder, f"cannot be written: {error.strerror}") from error
    if lock is None:
        raise InputError(folder, "is being written by another anymix; wait until that has ended")
    try:
        yield
    finally:
        # Before the lock is released, so that no process holds a file that is about to be deleted.
        _remove(folder / LOCK, lock)
        os.close(lock)
        with suppress(OSError):  # a folder that holds something stays
            _end(folder, made)


def _end(folder: Path, made: bool) -> None:
    lock = folder / LOCK
    if fcntl is None and lock.exists() and not lock.stat().st_size:
        lock.unlink()  # Windows removes no file that is open
    if made:
        folder.rmdir()


def _open(path: Path) -> int | None:
    """Open and lock a file; None if another process has done so."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            held = _take(path, descriptor)
        except (OSError, InputError):
            os.close(descriptor)
            raise
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


def _is_empty(descriptor: int) -> bool:
    """Whether this is an empty file, as every lock of ours is."""
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def _remove(path: Path, descriptor: int) -> None:
    """Remove the lock, unless something else has that name by now, or was written into it."""
    with suppress(OSError):
        if _is_empty(descriptor) and _is_there(path, descriptor):
            path.unlink()


def _take(path: Path, descriptor: int) -> bool:
    if not _is_empty(descriptor):
        raise InputError(path, "is not a lock of anymix; move it, or choose another folder")
    try:
        if fcntl is None:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError | PermissionError):
            return False
        # No process can hold it any more.
        _remove(path, descriptor)
        raise InputError(
            path.parent, f"is on a disk without file locks ({error.strerror}); use a local one"
        ) from error
    return True
