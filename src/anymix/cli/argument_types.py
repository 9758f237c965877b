"""Types of numeric command-line arguments; each checks its range."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from functools import partial
from unicodedata import normalize

from anymix.sources import NOT_CERTIFIED, check_measure

LARGEST = 1e100


def share(text: str) -> float:
    """Read a number strictly between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        percent = f"; write {value:g} % as {value / 100:g}" if 1 <= value < 100 else ""
        raise ArgumentTypeError(f"it must lie strictly between 0 and 1, but is {text}{percent}")
    return value


def positive(text: str) -> float:
    """Read a number above 0 and below 1e100, so that its powers are finite."""
    value = _number(text)
    if not 0 < value < LARGEST:
        raise ArgumentTypeError(f"it must be a number above 0 and below 1e100, but is {text}")
    return value


# Larger than any number of rows, folds or looks, and accepted by every library.
MOST = 2**31 - 1


def whole_number(text: str, least: int) -> int:
    """Read an integer of at least `least` that every library accepts."""
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ArgumentTypeError(f"it must be a whole number of {least} or more, but is {text}")
    if value > MOST:
        raise ArgumentTypeError(f"it must be a whole number of {MOST} at most, but is {text}")
    return value


count = partial(whole_number, least=1)
natural = partial(whole_number, least=0)


def name(text: str) -> str:
    """Read the name of a file to write; `-` is standard output."""
    if not text.strip():
        raise ArgumentTypeError("it must be the name of an output, but is empty")
    return "/dev/stdout" if text == "-" else text


def folder(text: str) -> str:
    """Read the name of a folder to write."""
    if name(text) == "/dev/stdout":
        raise ArgumentTypeError("it must be the name of a folder, not standard output")
    return text


def table(text: str) -> str:
    """Read the name of a table; `-` is standard input."""
    return "/dev/stdin" if text == "-" else text


def source_name(text: str) -> str:
    """Read the name of a source, in Unicode's composed form."""
    return normalize("NFC", text)


def share_range(text: str) -> tuple[str, tuple[float, float]]:
    """Read NAME=LEAST:MOST, or NAME=SHARE.

    >>> share_range("north=0.4:0.7"), share_range("north=0.5")
    (('north', (0.4, 0.7)), ('north', (0.5, 0.5)))
    """
    named, equals, ends = text.rpartition("=")
    least, _, most = ends.partition(":")
    if not equals:
        raise ArgumentTypeError(f"takes NAME=LEAST:MOST, such as north=0.4:0.7; got {text!r}")
    return source_name(named), (_number(least), _number(most or least))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        found = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]{1,6})?) ?%", text)
        share = f"; write {found[1]} % as {float(found[1]) / 100:g}" if found else ""
        raise ArgumentTypeError(f"it must be a number, but is {text!r}{share}") from None


NAMES = "error_rate, log_loss, brier; mae, mse"
OTHERS = "auc, accuracy, error_rate, log_loss, brier; mae, mse, rmse"


def measure(text: str) -> str:
    """Read the name of a measure or loss."""
    try:
        check_measure(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error).rstrip(".?")) from error
    return text


def measure_of_rows(text: str) -> str:
    """Read the name of a measure that is a mean over rows, as a certificate needs."""
    kind = {"auc": "auc", "rmse": "root"}.get(check_measure(measure(text)))
    if kind is not None:
        raise ArgumentTypeError(NOT_CERTIFIED[kind].rstrip("."))
    return text


def add_measure(parser: ArgumentParser, what: str, means: bool = False) -> None:
    """Add --measure; with `means`, only measures that are means over rows."""
    kind: Callable[[str], str] = measure_of_rows if means else measure
    names = NAMES if means else OTHERS
    parser.add_argument(
        "--measure", type=kind, metavar="NAME", help=f"{what}: {names} (default: the loss)"
    )
