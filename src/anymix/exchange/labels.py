"""The labels that sources know: all of them together, and whether they speak of the same ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import InputError, visible
from anymix.exchange.manifest import MOST_CLASSES

if TYPE_CHECKING:
    from anymix.exchange.read import ReceivedSource


def all_classes(received: Sequence[ReceivedSource]) -> NDArray[Any] | None:
    """Return the labels that any source knows, sorted; None for a regression."""
    if received[0].manifest.classes is None:
        return None
    found = np.unique(np.concatenate([np.asarray(one.manifest.classes) for one in received]))
    if found.size > MOST_CLASSES:
        raise InputError(
            f"sources of {found.size} classes together",
            f"cannot be combined, but of {MOST_CLASSES} at most; leave the one out that has most",
        )
    return found


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse a label that no source knows, with its row."""
    unknown = np.flatnonzero(~np.isin(y, classes))
    if unknown.size:
        some = [*map(str, classes[:20].tolist()), *["others"] * (classes.size > 20)]
        label, known = y[unknown].tolist()[0], ", ".join(some)
        raise InputError(
            f"row {unknown[0] + 1}",
            f"has the label {label!r}, which no source knows (they know {known}); leave such rows "
            "out, or let a source be trained on the label",
        )


def warn_of_other_labels(received: Sequence[ReceivedSource], stacklevel: int = 2) -> None:
    """Warn of two sources without a label in common: most likely they write the same otherwise."""
    for one, other in combinations(received, 2):
        mine, theirs = one.manifest.classes, other.manifest.classes
        if mine is None or theirs is None or set(mine) & set(theirs):
            continue
        names = f"{one.manifest.name} and {other.manifest.name}"
        warnings.warn(
            f"{names} have no label in common: {_some(mine)} and {_some(theirs)}; if they mean the "
            "same, write them alike in all tables, and pack again.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
        return


def _some(classes: Sequence[Any]) -> str:
    return ", ".join([*(visible(c) for c in classes[:3]), *["..."] * (len(classes) > 3)])
