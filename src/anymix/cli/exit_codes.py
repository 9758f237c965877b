"""Exit codes for each kind of failure, and its message in one sentence."""

from __future__ import annotations

import errno
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from anymix.exceptions import (
    AuditError,
    MissingError,
    ParameterError,
    UsageError,
    one_line,
    visible,
)

SUCCESS, ALARM, USAGE, INPUT, UNSAFE, INTERNAL = range(6)
INTERRUPTED, TERMINATED = 130, 143

MEANINGS = {
    SUCCESS: "success",
    ALARM: "monitor raised an alarm",
    USAGE: "invalid command line",
    INPUT: "unusable table, option or file",
    UNSAFE: "folder or file refused as unsafe",
    INTERNAL: "bug in anymix",
    INTERRUPTED: "stopped by Ctrl-C",
    TERMINATED: "stopped by a signal",
}
# Termination request, closed terminal, exceeded processor time.
ENDINGS = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGXCPU") if hasattr(signal, name)
]


class Terminated(BaseException):
    """A signal asked the command to end; temporary files are removed on the way out."""


# The first match counts; everything else is a bug in anymix.
CODES: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (Terminated, TERMINATED),
    (UsageError, USAGE),
    (ParameterError, USAGE),
    (MissingError, INPUT),
    (AuditError, UNSAFE),
    (ValueError, INPUT),
    (OSError, INPUT),
    (ImportError, INPUT),
    (MemoryError, INPUT),
)
# Errors of the operating system as sentences with a remedy.
SYSTEM = {
    errno.ENOENT: "does not exist",
    errno.EACCES: "may not be read or written; change its permissions, or choose another path",
    errno.EPERM: "may not be read or written; change its permissions, or choose another path",
    errno.EROFS: "is on a read-only disk; choose another path",
    errno.EISDIR: "is a folder; give a file",
    errno.ENOTDIR: "has a file where a folder is needed in its path",
    errno.EEXIST: "exists already; choose another name",
    errno.ENOSPC: "cannot be written because the disk is full; free some space",
    errno.EDQUOT: "cannot be written because your disk quota is used up; free some space",
    errno.ENAMETOOLONG: "is too long for a file name; choose a shorter one",
    errno.ELOOP: "is a link that leads back to itself",
}


def code_of(error: BaseException) -> int:
    """Return the exit code of a failure."""
    return next((code for kind, code in CODES if isinstance(error, kind)), INTERNAL)


def sentence_of(error: BaseException) -> str:
    """Return the message of a failure: one sentence on one line."""
    if isinstance(error, KeyboardInterrupt | Terminated):
        return "stopped."
    if code_of(error) == INTERNAL:
        said = one_line(f"{type(error).__name__}: {error}").rstrip(".: ")
        return f"this is a bug in anymix: {said}; set ANYMIX_DEBUG=1 for the traceback."
    if isinstance(error, MemoryError):
        said = f" ({one_line(error)})" if str(error) else ""
        return f"there is not enough memory{said}; give fewer rows or smaller sources."
    said = _of_system(error) if isinstance(error, OSError) else one_line(error)
    said = said or type(error).__name__
    return said if said.endswith((".", "?", "!")) else f"{said}."


def _of_system(error: OSError) -> str:
    if error.errno is None or error.strerror is None:
        return one_line(error)
    cause = SYSTEM.get(error.errno)
    if error.filename is None:
        where = "a file"
    else:
        # Escape names that are not valid UTF-8.
        where = visible(error.filename if isinstance(error.filename, str) else repr(error.filename))
    return f"{where} {cause}" if cause else f"{where}: {one_line(error.strerror).lower()}"


@contextmanager
def ending_tidily() -> Iterator[None]:
    """Turn signals within the block into Terminated, so that temporary files are removed."""
    mine = threading.current_thread() is threading.main_thread()
    # Keep handlers that others installed, such as nohup's for a closed terminal.
    numbers = [n for n in ENDINGS if mine and signal.getsignal(n) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _end(*_: Any) -> NoReturn:
    raise Terminated
