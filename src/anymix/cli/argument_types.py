"""Numbers on the command line: each option says at the door what it takes."""

from __future__ import annotations

from argparse import ArgumentTypeError

LARGEST = 1e100


def share(text: str) -> float:
    """Read a number strictly between 0 and 1.

    Examples
    --------
    >>> share("0.95")
    0.95
    """
    value = _number(text)
    if not 0 < value < 1:
        percent = f"; write {value:g} % as {value / 100:g}" if 1 <= value < 100 else ""
        raise ArgumentTypeError(f"it must lie strictly between 0 and 1, but is {text}{percent}")
    return value


def positive(text: str) -> float:
    """Read a number above 0, and not so large that its powers have none."""
    value = _number(text)
    if not 0 < value < LARGEST:
        raise ArgumentTypeError(f"it must be a number above 0 and below 1e100, but is {text}")
    return value


def count(text: str) -> int:
    """Read a whole number of 1 or more."""
    value = natural(text)
    if value < 1:
        raise ArgumentTypeError(f"it must be a whole number of 1 or more, but is {text}")
    return value


def natural(text: str) -> int:
    """Read a whole number of 0 or more."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ArgumentTypeError(f"it must be a whole number of 0 or more, but is {text}")
    return value


def name(text: str) -> str:
    """Read the name of a file or folder to write."""
    if not text.strip():
        raise ArgumentTypeError("it must be the name of a place to write to, but is empty")
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"it must be a number, but is {text!r}") from None
