"""The arrays of a contrastive density: its trees, its offset, and its reference as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.densities._base import Arrays, refuse_unless
from anymix.densities.reference import Reference
from anymix.storage import plain_json

TREES = "trees_"  # begins the names of the trees' arrays
MOST_OFFSET = 60.0  # log of a ratio of two numbers of rows


def packed(trees: Arrays, offset: float, reference: Reference) -> dict[str, NDArray[Any]]:
    """Return all as arrays of float64, int64 or bytes."""
    text = json.dumps(reference.to_dict(), ensure_ascii=False).encode()
    return {
        **{TREES + name: array for name, array in trees.items()},
        "offset": np.array([offset]),
        "reference": np.frombuffer(text, dtype=np.uint8),
    }


def received(arrays: Arrays) -> tuple[dict[str, NDArray[Any]], float, Reference]:
    """Return the arrays of the trees, the offset and the reference, or refuse what is not sound."""
    trees = {name: array for name, array in arrays.items() if name.startswith(TREES)}
    others = set(arrays) - set(trees)
    named = others == {"offset", "reference"}
    refuse_unless(named, "must hold the arrays offset, reference and those of trees")
    offset, text = arrays["offset"], arrays["reference"]
    sound = offset.dtype == np.float64 and offset.shape == (1,)
    refuse_unless(sound and abs(offset[0]) < MOST_OFFSET, "has an offset that is no number")
    refuse_unless(text.dtype == np.uint8 and text.ndim == 1, "has a reference that is no text")
    reference = Reference.from_dict(plain_json(text.tobytes()))
    plain = {name.removeprefix(TREES): array for name, array in trees.items()}
    return plain, float(offset[0]), reference
