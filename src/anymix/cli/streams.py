"""Standard output and standard error: escaped, flushed, and without tracebacks."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from anymix.exceptions import one_line, visible


class StreamClosed(OSError):
    """Nothing reads the output of the command."""


def say(text: str) -> None:
    """Write whole lines to standard output; raise StreamClosed if they did not arrive."""
    if sys.stdout is None:
        raise StreamClosed("standard output is closed; use --quiet to print nothing.")
    try:
        _write(sys.stdout, text)
    except (OSError, ValueError) as error:
        _forget(sys.stdout)
        cause = one_line(getattr(error, "strerror", None) or error).lower()
        raise StreamClosed(
            f"standard output cannot be written ({cause}), so output is incomplete; use --quiet to "
            "print nothing."
        ) from error


def whisper(text: str) -> None:
    """Write to standard error, unless that is also closed."""
    if sys.stderr is None:
        return
    try:
        _write(sys.stderr, text)
    except (OSError, ValueError):
        _forget(sys.stderr)


def complain(text: object) -> None:
    """Report an error in one line."""
    whisper(f"anymix: {one_line(text)}\n")


def caution(text: object) -> None:
    """Print a warning in one line."""
    whisper(f"anymix: warning: {one_line(text)}\n")


def note(text: object) -> None:
    """Print in one line how an input was interpreted."""
    whisper(f"anymix: note: {one_line(text)}\n")


def debugging() -> bool:
    """Whether the user has set ANYMIX_DEBUG."""
    return os.environ.get("ANYMIX_DEBUG", "0") not in ("", "0")


def show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show warnings for users in one line.

    Warnings for programmers are dropped, and so are further lines of long warnings of other
    libraries.
    """
    if issubclass(category, UserWarning) or debugging():
        first = (str(message).strip().splitlines() or [""])[0]
        caution(first.rstrip(":"))


def legible(text: str) -> str:
    """Keep the lines of a text and escape all other invisible characters."""
    return "\n".join(map(visible, text.split("\n")))


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _forget(stream: Any) -> None:
    """Discard what is left in a broken stream; Python would try to write it again at exit."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
