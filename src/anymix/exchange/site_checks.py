"""What a site's file may say: names, shapes and numbers, each within bounds that are stated here.

The bounds keep a file from overflowing what is learned from it; they do not make it honest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from anymix.exceptions import AuditError
from anymix.exchange.manifest import parse_json, shown
from anymix.exchange.names import is_name

LOSSES = {"classification": "cross_entropy", "regression": "squared"}
FEWEST_ROWS = 2  # of one no error can be told
MOST_SITES = 1000
HEADER_BYTES, HEADER_MARKS = 2**20, 10_000
# Sources give every class 1e-6 or more, and rounding a loss to a power of two can halve it twice.
LEAST_PROBABILITY = 1e-7
LARGEST_ERROR = 1e15  # its square is the largest loss that can be averaged
BOUNDS = {
    "cross_entropy": (LEAST_PROBABILITY, 1 + 1e-9),
    "squared": (-LARGEST_ERROR, LARGEST_ERROR),
}
LARGEST_LOG = 1e100
MOST_TOLD, SUM_TOLERANCE = 50, 1e-3  # of probabilities of all classes
FINGERPRINT = re.compile("[0-9a-f]{64}")
Head = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def site_head(content: NDArray[Any], path: Path) -> Head:
    """Return site, loss, sources and fingerprints of a header that a stranger wrote."""
    text = content.dtype == np.uint8 and content.ndim == 1 and content.size <= HEADER_BYTES
    head = parse_json(content.tobytes(), str(path), HEADER_MARKS) if text else None
    if not isinstance(head, dict) or type(head.get("schema")) is not int or head["schema"] != 1:
        raise AuditError(path, "has no sound header")
    if head.get("loss") not in LOSSES.values():
        raise AuditError(path, f"has a header with the loss {shown(head.get('loss'))}")
    names = _texts(head.get("sources"), is_name, path)
    prints = _texts(head.get("fingerprints"), FINGERPRINT.fullmatch, path)
    if len(set(names)) < len(names) or len(prints) != len(names):
        raise AuditError(path, "has a header that does not name each source once")
    if head.get("site") not in names:
        raise AuditError(path, "is from a site that is not one of its sources")
    return head["site"], head["loss"], names, prints


def _texts(given: Any, sound: Callable[[str], Any], path: Path) -> tuple[str, ...]:
    listed = isinstance(given, list) and 0 < len(given) <= MOST_SITES
    if not listed or not all(isinstance(one, str) and sound(one) for one in given):
        raise AuditError(path, "has no sound header: its sources or fingerprints are none")
    return tuple(given)


def check_site(arrays: dict[str, NDArray[Any]], p: int, loss: str, path: Path) -> None:
    """Refuse arrays of other shapes, and numbers that no honest site can have measured."""
    log_r, outcomes = arrays["log_responsibilities"], arrays["outcomes"]
    m = log_r.shape[-1] if log_r.ndim == 2 else 0
    total = arrays.get("log_total", np.zeros(m))
    if any(one.dtype != np.float64 for one in (log_r, outcomes, total)):
        raise AuditError(path, "has arrays that are not numbers")
    of_classes = loss == "cross_entropy" and outcomes.ndim == 3
    classes = outcomes.shape[2:] if of_classes and 1 < outcomes.shape[2] <= MOST_TOLD else ()
    if (log_r.shape, outcomes.shape, total.shape) != ((p, m), (p, m, *classes), (m,)):
        raise AuditError(path, "has arrays of wrong shapes")
    if m < FEWEST_ROWS:
        raise AuditError(path, f"has {m} row(s), where {FEWEST_ROWS} or more are needed")
    # NaN fails every comparison, so each line asks for what is right.
    if not (log_r.max() <= 1e-6 and np.abs(logsumexp(log_r, axis=0)).max() < 1e-6):
        raise AuditError(path, "has numbers that cannot be responsibilities or outcomes")
    if not (np.abs(total[total != -np.inf]) <= LARGEST_LOG).all():
        raise AuditError(path, "has a log_total that is no logarithm of a density")
    _check_outcomes(outcomes, loss, path)


def _check_outcomes(outcomes: NDArray[Any], loss: str, path: Path) -> None:
    low, high = BOUNDS[loss]
    wrong = ~((outcomes >= low) & (outcomes <= high))
    if wrong.any():
        k, i = np.argwhere(wrong)[0, :2]
        found = float(outcomes[wrong][0])
        raise AuditError(
            path,
            f"has the outcome {found:.3g} of source {k} at row {i}, where {low:g} to "
            f"{high:g} are possible",
        )
    if outcomes.ndim == 3 and np.abs(outcomes.sum(axis=2) - 1).max() > SUM_TOLERANCE:
        raise AuditError(path, "has probabilities of classes that do not sum to 1")


def evaluated_others(found: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Say which sources a site has evaluated in place of those given: names and fingerprints.

    Examples
    --------
    >>> evaluated_others({"north": "1f", "south": "2e"}, {"north": "1f", "south": "3d"})
    'evaluated other sources than the given ones: south as packed another time; ask it to ...'
    """
    which = f"{', '.join(found)}, not {', '.join(given)}"
    if set(found) == set(given):
        anew = [name for name, one in given.items() if found[name] != one]
        which = f"{', '.join(anew)} as packed another time"
    return f"evaluated other sources than the given ones: {which}; ask it to evaluate these"
