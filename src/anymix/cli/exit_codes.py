"""How a command ends: a code for each kind of failure, and one sentence about it."""

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
    ALARM: "the alarm of monitor",
    USAGE: "a command line that cannot be understood",
    INPUT: "a table, an option or a file that cannot be used",
    UNSAFE: "a folder or file refused as unsafe",
    INTERNAL: "a fault of anymix",
    INTERRUPTED: "stopped by Ctrl-C",
    TERMINATED: "stopped by a signal",
}
# The end that others ask for, a terminal that is closed, processor time that is used up.
ENDINGS = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGXCPU") if hasattr(signal, name)
]


class Terminated(BaseException):
    """A signal asks the command to end: files are tidied up on the way out."""


# The first that fits; all else is a fault of ours.
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
# What the system says in its own way, as a sentence with a remedy.
SYSTEM = {
    errno.ENOENT: "does not exist",
    errno.EACCES: "may not be read or written; change its permissions, or choose another place",
    errno.EPERM: "may not be read or written; change its permissions, or choose another place",
    errno.EROFS: "lies on a disk that cannot be written; choose another place",
    errno.EISDIR: "is a folder, where a file is needed",
    errno.ENOTDIR: "leads through a file as if it were a folder",
    errno.EEXIST: "exists already; choose another name",
    errno.ENOSPC: "cannot be written, as the disk is full; free some space",
    errno.EDQUOT: "cannot be written, as your share of the disk is full; free some space",
    errno.ENAMETOOLONG: "is too long a name; choose a shorter one",
    errno.ELOOP: "is a link that leads back to itself",
}


def code_of(error: BaseException) -> int:
    """Return the exit code of a failure."""
    return next((code for kind, code in CODES if isinstance(error, kind)), INTERNAL)


def sentence_of(error: BaseException) -> str:
    """Return what is said of a failure: one line, and a sentence."""
    if isinstance(error, KeyboardInterrupt | Terminated):
        return "stopped."
    if code_of(error) == INTERNAL:
        said = one_line(f"{type(error).__name__}: {error}").rstrip(".: ")
        return f"this is a fault of anymix: {said}; set ANYMIX_DEBUG=1 to see where."
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
        # A name of bytes that are no UTF-8 is shown by its escapes.
        where = visible(error.filename if isinstance(error.filename, str) else repr(error.filename))
    return f"{where} {cause}" if cause else f"{where}: {one_line(error.strerror).lower()}"


@contextmanager
def ending_tidily() -> Iterator[None]:
    """Let a signal end the block by a Terminated, so that no temporary file is left behind."""
    mine = threading.current_thread() is threading.main_thread()
    # What somebody else has arranged for a signal stands, as nohup does for that of the terminal.
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
