"""The option --measure: a name that is not known is refused before anything is read."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable

from anymix.sources import NOT_CERTIFIED, check_measure

NAMES = "accuracy, log_loss, brier; mae, mse"
OTHERS = "auc, accuracy, log_loss, brier; mae, mse, rmse"


def measure(text: str) -> str:
    """Read the name of a measure or loss.

    Examples
    --------
    >>> measure("roc_auc")
    'roc_auc'
    """
    try:
        check_measure(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error).rstrip(".?")) from error
    return text


def measure_of_rows(text: str) -> str:
    """Read the name of a measure that is a mean over rows, and so can be certified."""
    kind = {"auc": "auc", "rmse": "root"}.get(check_measure(measure(text)))
    if kind is not None:
        raise ArgumentTypeError(NOT_CERTIFIED[kind].rstrip("."))
    return text


def add_measure(parser: ArgumentParser, what: str, means: bool = False) -> None:
    """Add the option; `means` takes only what is a mean over rows."""
    kind: Callable[[str], str] = measure_of_rows if means else measure
    names = NAMES if means else OTHERS
    parser.add_argument(
        "--measure", type=kind, metavar="NAME", help=f"{what}: {names} (default: the loss)"
    )
