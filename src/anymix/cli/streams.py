"""Words on standard output and standard error: legible, at once, and without a traceback."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from anymix.exceptions import one_line, visible


class StreamClosed(OSError):
    """Nothing reads the output of the command."""


def say(text: str) -> None:
    """Write whole lines to standard output; a StreamClosed tells that they did not arrive."""
    if sys.stdout is None:
        raise StreamClosed("standard output is closed; use --quiet if nothing is to be said.")
    try:
        _write(sys.stdout, text)
    except (OSError, ValueError) as error:
        _forget(sys.stdout)
        cause = one_line(getattr(error, "strerror", None) or error).lower()
        raise StreamClosed(
            f"standard output takes no more ({cause}), so not all was said; use --quiet if "
            "nothing is to be said."
        ) from error


def whisper(text: str) -> None:
    """Write to standard error, unless that is closed, too."""
    if sys.stderr is None:
        return
    try:
        _write(sys.stderr, text)
    except (OSError, ValueError):
        _forget(sys.stderr)


def complain(text: object) -> None:
    """Say in one line what went wrong."""
    whisper(f"anymix: {one_line(text)}\n")


def caution(text: object) -> None:
    """Say in one line what a user may want to know, though the work goes on."""
    whisper(f"anymix: warning: {one_line(text)}\n")


def note(text: object) -> None:
    """Say in one line how something was understood."""
    whisper(f"anymix: note: {one_line(text)}\n")


def debugging() -> bool:
    """Whether the user has set ANYMIX_DEBUG."""
    return os.environ.get("ANYMIX_DEBUG", "0") not in ("", "0")


def show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Pass on in one line what a user may act on.

    Warnings of other kinds are for programmers, and so is what follows the first line of the long
    texts of other libraries.
    """
    if issubclass(category, UserWarning) or debugging():
        first = (str(message).strip().splitlines() or [""])[0]
        caution(first.rstrip(":"))


def legible(text: str) -> str:
    """Keep the lines of a text, and write all else that cannot be seen as its escape."""
    return "\n".join(map(visible, text.split("\n")))


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _forget(stream: Any) -> None:
    """Let what is left in a broken stream go nowhere; Python would try again as it ends."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
