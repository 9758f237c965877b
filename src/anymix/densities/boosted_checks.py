"""What arrays of boosted trees must be, so that asking them is safe, whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What a node is, as bits of its kind.  At a split of gaps from the rest there is no threshold.
LEAF, CATEGORY, GAPS_LEFT, GAPS_ALONE = 1, 2, 4, 8
BYTES = 32  # of a set of categories, a bit for each of 256
MOST_CLASSES, MOST_NODES, MOST_LEVELS = 1000, 2**22, 1000
MOST_STEPS = 2**20  # from roots to leaves, for each row: some milliseconds
LARGEST = 1e100  # of a leaf: sums of them are still finite
TYPES = {
    "baseline": np.float64,
    "sizes": np.int64,
    "kinds": np.uint8,
    "values": np.float64,
    "features": np.int64,
    "left": np.int64,
    "right": np.int64,
    "sets": np.uint8,
    "set_of": np.int64,
    "categories": np.float64,
    "n_categories": np.int64,
}
AXES = {"sets": 2}


def refuse_unless(condition: Any, cause: str) -> None:
    """Raise a ValueError with this cause, words that can follow the name of a file."""
    if not condition:
        raise ValueError(cause)


def check_types(arrays: Mapping[str, NDArray[Any]]) -> None:
    """All arrays are there, and of their types."""
    refuse_unless(set(arrays) == set(TYPES), f"must hold the arrays {sorted(TYPES)}")
    for name, kind in TYPES.items():
        array = arrays[name]
        right = array.dtype == kind and array.ndim == AXES.get(name, 1)
        refuse_unless(right, f"has {name} of type {array.dtype} and shape {array.shape}")


def check_numbers(trees: Any, n_features: int) -> None:
    """Sizes fit each other, numbers are finite."""
    k, n = trees.n_scores, trees.kinds.size
    refuse_unless(0 < k <= MOST_CLASSES, f"has {k} scores; 1 to {MOST_CLASSES} are allowed")
    refuse_unless(n <= MOST_NODES, f"has {n} nodes; {MOST_NODES} are allowed")
    for name in ("values", "features", "left", "right", "set_of"):
        refuse_unless(getattr(trees, name).size == n, f"has {name} of another length than kinds")
    sizes = trees.sizes
    sound = sizes.size and sizes.size % k == 0 and 0 < sizes.min() <= sizes.max() <= n
    refuse_unless(sound and sizes.sum() == n, "has trees of sizes that do not fit its nodes")
    for name in ("baseline", "values", "categories"):
        sound = np.isfinite(getattr(trees, name)).all()
        refuse_unless(sound, f"has numbers in {name} that are not finite")
    leaves = trees.values[(trees.kinds & LEAF) != 0]
    sound = (np.abs(trees.baseline) < LARGEST).all() and (np.abs(leaves) < LARGEST).all()
    refuse_unless(sound, "has scores that are not finite")
    refuse_unless(trees.sets.shape[1] == BYTES, f"has sets that are not of {BYTES} bytes")
    many, numbers = trees.n_categories, trees.categories
    refuse_unless(many.size == n_features, f"must say that there are {n_features} features")
    sound = not many.size or 0 <= many.min() <= many.max() <= 8 * BYTES
    refuse_unless(sound and many.sum() == numbers.size, "has categories of no column")
    same = np.diff(np.repeat(np.arange(many.size), many)) == 0
    refuse_unless((np.diff(numbers)[same] > 0).all(), "has categories that are not sorted")


def check_nodes(trees: Any) -> None:
    """Columns, sets and children are there, and children come after their parents."""
    kinds, split = trees.kinds, (trees.kinds & LEAF) == 0
    allowed = [LEAF, 0, GAPS_LEFT, CATEGORY, CATEGORY | GAPS_LEFT, GAPS_ALONE]
    refuse_unless(np.isin(kinds, allowed).all(), "has nodes of a kind that is not known")
    for name, most in (("features", trees.n_features), ("set_of", max(len(trees.sets), 1))):
        array = getattr(trees, name)
        sound = not array.size or 0 <= array.min() <= array.max() < most
        refuse_unless(sound, f"has {name} that are not there")
    category = (kinds & CATEGORY) != 0
    refuse_unless(not category.any() or len(trees.sets), "has no sets of categories")
    same = category[split] == (trees.n_categories[trees.features[split]] > 0)
    refuse_unless(same.all(), "has splits of numbers where categories are, or the reverse")
    none = not (trees.left[~split].any() or trees.right[~split].any())
    refuse_unless(none, "has leaves with children")
    size = np.repeat(trees.sizes, trees.sizes)[split]
    place = (np.arange(kinds.size) - np.repeat(trees.starts[:-1], trees.sizes))[split]
    for child in (trees.left[split], trees.right[split]):
        refuse_unless(((place < child) & (child < size)).all(), "has a node with no such child")


def check_walks(trees: Any) -> None:
    """Each node has one parent, the first of a tree none, and walks are short."""
    split = (trees.kinds & LEAF) == 0
    root = np.repeat(trees.starts[:-1], trees.sizes)
    parents = np.bincount((root + trees.left)[split], minlength=split.size)
    parents += np.bincount((root + trees.right)[split], minlength=split.size)
    parents[trees.starts[:-1]] += 1
    refuse_unless((parents == 1).all(), "has a node that does not have one parent")
    level, steps, levels = trees.starts[:-1], 0, 0
    while level.size:
        levels, steps = levels + 1, steps + np.unique(root[level]).size
        refuse_unless(levels <= MOST_LEVELS, f"has a tree of more than {MOST_LEVELS} levels")
        refuse_unless(steps <= MOST_STEPS, f"needs more than {MOST_STEPS} steps for each row")
        level = level[split[level]]
        level = np.concatenate([root[level] + trees.left[level], root[level] + trees.right[level]])
