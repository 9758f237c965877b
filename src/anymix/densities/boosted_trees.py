"""Boosted trees as plain arrays: converted from scikit-learn, stored, read and evaluated.

    raw(x)_j = baseline_j + Σ_t value of the leaf of tree t that x falls into,  t of the class j

A number goes left if it is at most the threshold, a category if it is in the node's set, a missing
value where the node sends missing values; a category that was never seen is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray
from anymix.densities.boosted_graph import CATEGORY, GAPS_ALONE, GAPS_LEFT, LEAF, add_trees
from anymix.densities.density import refuse_unless

# The trees are private in scikit-learn: anymix reads those of these versions.
SUPPORTED = "scikit-learn 1.6 to 1.9"
PRIVATE = ("_predictors", "_baseline_prediction", "_preprocessor", "is_categorical_")

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
TREES = "trees_"  # before the names of the arrays of trees in a density


def tree_arrays(arrays: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the arrays of a density into those of its trees, by their own names, and the others."""
    trees = {n.removeprefix(TREES): a for n, a in arrays.items() if n.startswith(TREES)}
    return trees, {n: a for n, a in arrays.items() if not n.startswith(TREES)}


@dataclass(frozen=True, eq=False)
class SplitTree:
    """One tree of any library, the root first; values up to the threshold go left.

    Children are numbered within the tree; unreachable nodes are left out.
    """

    feature: NDArray[np.int64]
    threshold: FloatArray
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    leaf: NDArray[np.bool_]
    value: FloatArray

    def in_order(self) -> SplitTree:
        """Return the tree with every child after its parent."""
        order = [0]
        for node in order:  # grows as it is walked
            if not self.leaf[node]:
                order += [int(self.left[node]), int(self.right[node])]
        kept, place = np.array(order), np.zeros(self.leaf.size, dtype=np.int64)
        place[kept] = np.arange(kept.size)
        parts = {name: getattr(self, name)[kept] for name in ("missing_left", "leaf", "value")}
        children = {n: np.where(parts["leaf"], 0, place[getattr(self, n)[kept]]) for n in SIDES}
        return SplitTree(self.feature[kept], self.threshold[kept], **children, **parts)


SIDES = ("left", "right")


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """The trees of a HistGradientBoostingClassifier or -Regressor.

    Attributes
    ----------
    baseline, sizes : ndarrays of shape (k,), (n_trees,)
        What k scores start from; nodes of each tree, of which tree t adds to the score t mod k.
    kinds, values, features, left, right, set_of : ndarrays of shape (n_nodes,)
        Nodes, the root first: bits (leaf, split of categories, missing left, only missing right);
        the value or threshold; the column; the children within the tree; what goes left of `sets`.
    sets : ndarray of shape (n_sets, 32)
        Sets of categories, a bit for each.
    categories, n_categories : ndarrays
        Numbers of the categories, column after column, sorted, and how many each column has.
    """

    baseline: FloatArray
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    values: FloatArray
    features: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    sets: NDArray[np.uint8]
    set_of: NDArray[np.int64]
    categories: FloatArray
    n_categories: NDArray[np.int64]

    @classmethod
    def of(cls, model: Any) -> BoostedTrees:
        """Take the trees of a fitted model; its columns must hold numbers, categories as codes."""
        check_is_fitted(model)
        if missing := [name for name in PRIVATE if not hasattr(model, name)]:
            raise _unsupported(f"its boosted trees have no {missing[0]}")
        listed = [tree for several in model._predictors for tree in several]
        nodes = np.concatenate([tree.nodes for tree in listed])
        sizes = np.array([len(tree.nodes) for tree in listed], dtype=np.int64)
        categories = _categories_of(model)
        # Inside the model columns of categories stand before the others.
        place = np.argsort([numbers is None for numbers in categories], kind="stable")
        leaf, category = nodes["is_leaf"] != 0, nodes["is_categorical"] != 0
        alone = ~leaf & ~category & (nodes["num_threshold"] == np.inf)
        # Below the least number is minus infinity alone.
        thresholds = np.maximum(nodes["num_threshold"], np.finfo(np.float64).min)
        sets = [np.asarray(tree.raw_left_cat_bitsets, dtype="<u4") for tree in listed]
        first = np.cumsum([0, *(len(values) for values in sets[:-1])])
        split = ~leaf & category
        numbers = np.where(leaf, nodes["value"], np.where(split | alone, 0, thresholds))
        bits = LEAF * leaf + CATEGORY * split + GAPS_ALONE * alone
        bits += GAPS_LEFT * (~leaf & (nodes["missing_go_to_left"] != 0))
        by_column = [np.empty(0) if numbers is None else numbers for numbers in categories]
        arrays = {
            "baseline": np.ravel(model._baseline_prediction),
            "sizes": sizes,
            "kinds": bits,
            "values": numbers,
            "features": np.where(leaf, 0, place[nodes["feature_idx"]]),
            "left": np.where(leaf, 0, nodes["left"]),
            "right": np.where(leaf, 0, nodes["right"]),
            "sets": np.concatenate(sets).view(np.uint8).reshape(-1, BYTES),
            "set_of": np.where(split, nodes["bitset_idx"] + np.repeat(first, sizes), 0),
            "categories": np.concatenate(by_column),
            "n_categories": np.array([len(values) for values in by_column]),
        }
        typed = {name: np.asarray(arrays[name], dtype=kind) for name, kind in TYPES.items()}
        return cls(**typed)

    @classmethod
    def from_splits(
        cls, trees: Sequence[SplitTree], baseline: FloatArray, n_features: int
    ) -> BoostedTrees:
        """Build it from trees of numbers, of which tree t adds to the score t mod k."""
        ordered = [tree.in_order() for tree in trees]

        def whole(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in ordered])

        leaf = whole("leaf")
        empty = {name: np.empty((0, BYTES) if name == "sets" else 0) for name in TYPES}
        arrays = empty | {
            "baseline": baseline,
            "sizes": [tree.leaf.size for tree in ordered],
            "kinds": LEAF * leaf + GAPS_LEFT * (~leaf & whole("missing_left")),
            "values": np.where(leaf, whole("value"), whole("threshold")),
            "features": np.where(leaf, 0, whole("feature")),
            "left": whole("left"),
            "right": whole("right"),
            "set_of": np.zeros(leaf.size),
            "n_categories": np.zeros(n_features),
        }
        typed = {name: np.asarray(arrays[name], dtype=kind) for name, kind in TYPES.items()}
        return cls.from_arrays(typed, n_features)

    @property
    def n_scores(self) -> int:
        """How many scores a row has: the classes, or 1 for two classes and for a regression."""
        return int(self.baseline.size)

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return int(self.sizes.size)

    @property
    def n_features(self) -> int:
        """How many columns rows have."""
        return int(self.n_categories.size)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return (self.kinds & LEAF) != 0

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each tree begins among the nodes, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def raw_predict(self, X: ArrayLike) -> FloatArray:
        """Return the scores (n, k) of rows (n, d), NaN where missing, as the model does."""
        k = len(self.baseline)
        raw = np.zeros((len(np.asarray(X)), k), order="F") + self.baseline
        for t, answers in enumerate(self._walks(X, self._predictors)):
            raw[:, t % k] += answers
        return raw

    def leaves(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the node that each row falls into, in each tree: (n, n_trees)."""
        numbered = np.where(self.kinds & LEAF, np.arange(self.kinds.size), self.values)
        same = replace(self, values=numbered.astype(np.float64))
        return np.stack(list(self._walks(X, same._predictors)), axis=1).astype(np.int64)

    def first(self, rounds: int) -> BoostedTrees:
        """Keep only the trees of the first rounds."""
        n_trees = min(rounds * self.n_scores, self.n_trees)
        end, parts = int(self.sizes[:n_trees].sum()), {}
        for name in ("kinds", "values", "features", "left", "right", "set_of"):
            parts[name] = getattr(self, name)[:end]
        return replace(self, sizes=self.sizes[:n_trees], **parts)

    def _walks(self, X: ArrayLike, predictors: list[Any]) -> Iterator[FloatArray]:
        """Yield what each tree gives to the rows, (n,)."""
        rows = np.asarray(X, dtype=np.float64)
        d = len(self.n_categories)
        if rows.ndim != 2 or rows.shape[1] != d:
            raise ValueError(f"X has the shape {rows.shape}; {d} columns are needed.")
        rows = _numbered_categories(self, rows)
        bits = self.known.view("<u4").astype(np.uint32)
        place = np.arange(d, dtype=np.uint32)
        threads = _sklearn_internals()[2]()
        for tree in predictors:
            yield tree.predict(rows, bits, place, threads)

    decision_function = raw_predict  # as a classifier's

    @cached_property
    def known(self) -> NDArray[np.uint8]:
        """The categories of each column as a set, (d, 32)."""
        bits = np.arange(8 * BYTES) < self.n_categories[:, None]
        return np.packbits(bits, axis=1, bitorder="little")

    def asked_sets(self, nodes: NDArray[Any]) -> NDArray[np.uint8]:
        """Return, at categorical splits, the categories that missing values do not follow."""
        bits, sets = self.known[self.features[nodes]], self.sets[self.set_of[nodes]]
        gaps_left = (self.kinds[nodes] & GAPS_LEFT)[:, None] != 0
        return bits & np.where(gaps_left, ~sets, sets)

    @cached_property
    def _predictors(self) -> list[Any]:
        """Trees in scikit-learn's own form, whose compiled code walks them."""
        node_type, tree_predictor, _ = _sklearn_internals()
        nodes = np.zeros(len(self.kinds), dtype=node_type)
        alone = (self.kinds & GAPS_ALONE) != 0
        nodes["value"], nodes["num_threshold"] = self.values, np.where(alone, np.inf, self.values)
        nodes["feature_idx"], nodes["bitset_idx"] = self.features, self.set_of
        nodes["left"], nodes["right"] = self.left, self.right
        nodes["is_leaf"] = (self.kinds & LEAF) != 0
        nodes["is_categorical"] = (self.kinds & CATEGORY) != 0
        nodes["missing_go_to_left"] = (self.kinds & GAPS_LEFT) != 0
        sets = np.ascontiguousarray(self.sets).view("<u4").astype(np.uint32)
        parts = np.split(nodes, np.cumsum(self.sizes)[:-1])
        return [tree_predictor(part, sets, sets) for part in parts]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays of float64, int64 and bytes; the rows of leaves are not counted."""
        return {name: getattr(self, name) for name in TYPES}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> BoostedTrees:
        """Build it from untrusted arrays; a ValueError says what is invalid."""
        refuse_unless(set(arrays) == set(TYPES), f"must hold the arrays {sorted(TYPES)}")
        for name, kind in TYPES.items():
            array = arrays[name]
            right = array.dtype == kind and array.ndim == AXES.get(name, 1)
            refuse_unless(right, f"has {name} of type {array.dtype} and shape {array.shape}")
        trees = cls(**{name: np.ascontiguousarray(arrays[name]) for name in TYPES})
        _check_numbers(trees, n_features)
        _check_nodes(trees)
        _check_walks(trees)
        return trees

    add_to = add_trees


def _numbered_categories(trees: BoostedTrees, rows: FloatArray) -> FloatArray:
    """Return the rows with the place of each category among those of its column, NaN if unknown."""
    ends = np.cumsum(trees.n_categories)
    categorical = np.flatnonzero(trees.n_categories)
    rows = rows.copy() if categorical.size else rows
    for j in categorical:
        numbers = trees.categories[ends[j] - trees.n_categories[j] : ends[j]]
        at = np.minimum(np.searchsorted(numbers, rows[:, j]), len(numbers) - 1)
        rows[:, j] = np.where(numbers[at] == rows[:, j], at, np.nan)
    return rows


def _sklearn_internals() -> tuple[Any, Any, Any]:
    """Return scikit-learn's type of nodes, its compiled trees, and its number of threads."""
    try:
        from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
        from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
        from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
    except ImportError as error:
        raise _unsupported(str(error)) from error
    return PREDICTOR_RECORD_DTYPE, TreePredictor, _openmp_effective_n_threads


def _unsupported(cause: str) -> ImportError:
    sentence = f"scikit-learn {sklearn.__version__} is not supported here ({cause})"
    return ImportError(f"{sentence}; boosted trees can be read of {SUPPORTED}.")


def _categories_of(model: Any) -> list[FloatArray | None]:
    """Return the numbers that stand for the categories of each column, None for one of numbers."""
    categories: list[FloatArray | None] = [None] * model.n_features_in_
    if model.is_categorical_ is None:
        return categories
    encoder = model._preprocessor.named_transformers_["encoder"]
    for j, listed in zip(np.flatnonzero(model.is_categorical_), encoder.categories_, strict=True):
        try:
            numbers = np.asarray(listed, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {j} holds categories that are words; encode them as numbers first"
            ) from error
        categories[j] = numbers[~np.isnan(numbers)]
    return categories


# --- checks of arrays of any origin: what passes is safe to ask ---


def _check_numbers(trees: Any, n_features: int) -> None:
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


def _check_nodes(trees: Any) -> None:
    """Columns, sets and children are there, and children come after their parents."""
    kinds, split = trees.kinds, (trees.kinds & LEAF) == 0
    allowed = [LEAF, 0, GAPS_LEFT, CATEGORY, CATEGORY | GAPS_LEFT, GAPS_ALONE]
    refuse_unless(np.isin(kinds, allowed).all(), "has nodes of an unknown kind")
    for name, most in (("features", trees.n_features), ("set_of", max(len(trees.sets), 1))):
        array = getattr(trees, name)
        sound = not array.size or 0 <= array.min() <= array.max() < most
        refuse_unless(sound, f"has {name} that do not exist")
    category = (kinds & CATEGORY) != 0
    refuse_unless(not category.any() or len(trees.sets), "has no sets of categories")
    same = category[split] == (trees.n_categories[trees.features[split]] > 0)
    refuse_unless(same.all(), "has number splits at categorical columns, or the reverse")
    none = not (trees.left[~split].any() or trees.right[~split].any())
    refuse_unless(none, "has leaves with children")
    size = np.repeat(trees.sizes, trees.sizes)[split]
    place = (np.arange(kinds.size) - np.repeat(trees.starts[:-1], trees.sizes))[split]
    for child in (trees.left[split], trees.right[split]):
        refuse_unless(((place < child) & (child < size)).all(), "has a node with no such child")


def _check_walks(trees: Any) -> None:
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
