"""Boosted trees as plain arrays: made of scikit-learn's, stored, read from strangers, asked again.

    raw(x)_j = baseline_j + Σ_t value of the leaf of tree t that x falls into,  t of the class j

A number goes left if it is at most the threshold, a category if it is in the node's set, a gap
where the node sends gaps; a category that was never seen is a gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray
from anymix.densities.boosted_checks import (
    BYTES,
    CATEGORY,
    GAPS_ALONE,
    GAPS_LEFT,
    LEAF,
    TYPES,
    check_nodes,
    check_numbers,
    check_types,
    check_walks,
)
from anymix.densities.boosted_graph import HIGHEST, ensemble_attributes, shifted_columns

DOUBLE = 11  # the number of float64 in ONNX


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """The trees of a HistGradientBoostingClassifier or -Regressor, without the rest of it.

    Attributes
    ----------
    baseline : ndarray of shape (k,)
        What the scores of k classes, or of one regression, start from.
    sizes : ndarray of shape (n_trees,)
        Nodes of each tree; tree t adds to the score t mod k, and its first node is its root.
    kinds, values, features, left, right, set_of : ndarrays of shape (n_nodes,)
        Nodes of all trees one after the other: bits (leaf, split of categories, gaps go left, only
        gaps go right); the value of a leaf or the threshold; the column; the children, counted
        within the tree; the set of categories that go left.
    sets : ndarray of shape (n_sets, 32)
        Sets of categories, a bit for each.
    categories, n_categories : ndarrays
        The numbers that stand for categories, column after column, sorted, and how many each of
        the d columns has; 0 for a column of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> X = np.arange(100.0)[:, None] % 7
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    >>> trees = BoostedTrees.of(model)
    >>> bool((trees.raw_predict(X)[:, 0] == model.predict(X)).all())
    True
    >>> again = BoostedTrees.from_arrays(trees.to_arrays(), n_features=1)
    >>> again.n_trees, again.n_scores
    (5, 1)
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
        first = np.cumsum([0, *(len(one) for one in sets[:-1])])
        split = ~leaf & category
        numbers = np.where(leaf, nodes["value"], np.where(split | alone, 0, thresholds))
        bits = LEAF * leaf + CATEGORY * split + GAPS_ALONE * alone
        bits += GAPS_LEFT * (~leaf & (nodes["missing_go_to_left"] != 0))
        known = [np.empty(0) if numbers is None else numbers for numbers in categories]
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
            "categories": np.concatenate(known),
            "n_categories": np.array([len(one) for one in known]),
        }
        typed = {name: np.asarray(arrays[name], dtype=kind) for name, kind in TYPES.items()}
        return cls.from_arrays(typed, len(categories))

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

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each tree begins among the nodes, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def raw_predict(self, X: ArrayLike) -> FloatArray:
        """Return the scores (n, k) of rows (n, d) with NaN for gaps, as the model gives them."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(f"X has the shape {rows.shape}; {self.n_features} columns are needed.")
        rows, k = self._coded(rows), self.n_scores
        known = self.known.view("<u4").astype(np.uint32)
        place = np.arange(self.n_features, dtype=np.uint32)
        threads = _openmp_effective_n_threads()
        raw = np.zeros((len(rows), k), order="F") + self.baseline
        for t, tree in enumerate(self._predictors):
            raw[:, t % k] += tree.predict(rows, known, place, threads)
        return raw

    def _coded(self, rows: FloatArray) -> FloatArray:
        """Put the place of a category among those of its column; NaN for one that is not there."""
        columns = np.flatnonzero(self.n_categories)
        if not columns.size:
            return rows
        rows, ends = rows.copy(), np.cumsum(self.n_categories)
        for j in columns:
            numbers = self.categories[ends[j] - self.n_categories[j] : ends[j]]
            found = np.minimum(np.searchsorted(numbers, rows[:, j]), len(numbers) - 1)
            rows[:, j] = np.where(numbers[found] == rows[:, j], found, np.nan)
        return rows

    @cached_property
    def known(self) -> NDArray[np.uint8]:
        """The categories of each column as a set, (d, 32)."""
        bits = np.arange(8 * BYTES) < self.n_categories[:, None]
        return np.packbits(bits, axis=1, bitorder="little")

    def asked_sets(self, nodes: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the categories that go where gaps do not, at splits of categories."""
        known, sets = self.known[self.features[nodes]], self.sets[self.set_of[nodes]]
        gaps_left = (self.kinds[nodes] & GAPS_LEFT)[:, None] != 0
        return known & np.where(gaps_left, ~sets, sets)

    @cached_property
    def _predictors(self) -> list[TreePredictor]:
        """Trees in scikit-learn's own form, whose compiled code walks them."""
        nodes = np.zeros(len(self.kinds), dtype=PREDICTOR_RECORD_DTYPE)
        alone = (self.kinds & GAPS_ALONE) != 0
        nodes["value"], nodes["num_threshold"] = self.values, np.where(alone, np.inf, self.values)
        nodes["feature_idx"], nodes["bitset_idx"] = self.features, self.set_of
        nodes["left"], nodes["right"] = self.left, self.right
        nodes["is_leaf"] = (self.kinds & LEAF) != 0
        nodes["is_categorical"] = (self.kinds & CATEGORY) != 0
        nodes["missing_go_to_left"] = (self.kinds & GAPS_LEFT) != 0
        sets = np.ascontiguousarray(self.sets).view("<u4").astype(np.uint32)
        parts = np.split(nodes, self.starts[1:-1])
        return [TreePredictor(part, sets, sets) for part in parts]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays of float64, int64 and bytes; the rows of leaves are not counted."""
        return {name: getattr(self, name) for name in TYPES}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> BoostedTrees:
        """Build it from arrays of any origin; a ValueError says what is not sound in them.

        What is built is safe to ask: every walk ends at a leaf, after few steps.
        """
        check_types(arrays)
        trees = cls(**{name: np.ascontiguousarray(arrays[name]) for name in TYPES})
        check_numbers(trees, n_features)
        check_nodes(trees)
        check_walks(trees)
        return trees

    def ensemble_attributes(self) -> dict[str, Any]:
        """Return the attributes of an ONNX TreeEnsembleRegressor (ai.onnx.ml 3) of float64 rows.

        It gives the scores without the baseline.  Where `*_as_tensor` is expected there are arrays.
        Columns from d on are those of `shifted_columns`, which `add_to` adds to the rows.
        """
        return ensemble_attributes(self)

    def add_to(self, graph: Any, rows: str) -> str:
        """Add it to an ONNX graph, and return the name of the scores, float64 (n, k).

        The operator sums in float64 but gives float32: the baseline, which is often the largest
        part, is added afterwards.  What is left differs from `raw_predict` by less than one part
        in ten million of what the trees add.
        """
        if (self.kinds & GAPS_ALONE).any():
            # Infinity, too, goes where all numbers go.
            rows = graph.add("Min", rows, graph.constant(np.array([HIGHEST])))
        further = shifted_columns(self)
        if further.column.size:
            copies = graph.add("Gather", rows, graph.constant(further.column), axis=1)
            less = graph.add("Sub", copies, graph.constant(further.less))
            rows = graph.add("Concat", rows, less, axis=1)
        attributes = self.ensemble_attributes()
        added = graph.add("TreeEnsembleRegressor", rows, domain="ai.onnx.ml", **attributes)
        return str(
            graph.add("Add", graph.add("Cast", added, to=DOUBLE), graph.constant(self.baseline))
        )


def _categories_of(model: Any) -> list[FloatArray | None]:
    """Return the numbers that stand for the categories of each column, None for one of numbers."""
    found: list[FloatArray | None] = [None] * model.n_features_in_
    if model.is_categorical_ is None:
        return found
    encoder = model._preprocessor.named_transformers_["encoder"]
    for j, listed in zip(np.flatnonzero(model.is_categorical_), encoder.categories_, strict=True):
        try:
            numbers = np.asarray(listed, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {j} holds categories that are words; encode them as numbers first"
            ) from error
        found[j] = numbers[~np.isnan(numbers)]
    return found
