"""The content of a source folder (numbers, words, leaves of trees), and what is searched for in it.

Training rows are searched for in every form in which a part of an estimator receives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from anymix.exchange.foreign_trees import foreign_kinds, leaf_sizes
from anymix.sources import unwrapped
from anymix.storage import need

FEW = 5  # rows of a leaf, documents of a word: with fewer, a single one can be made out
# Attributes whose strings are not words of documents.
NOT_WORDS = {"nodes_modes", "classlabels_strings", "class_labels", "separators", "tokenexp"}


def numbers_in(content: bytes) -> list[NDArray[Any]]:
    """Return all arrays of floats in an ONNX graph: weights, and attributes of operators."""
    onnx = need("onnx")
    graph = onnx.load_model_from_string(content).graph
    tensors, arrays = list(graph.initializer), []
    for attribute in chain.from_iterable(node.attribute for node in graph.node):
        tensors += [attribute.t] if attribute.HasField("t") else []
        tensors += list(attribute.tensors)
        if attribute.floats:
            arrays.append(np.array(attribute.floats, dtype=np.float32))
    found = [onnx.numpy_helper.to_array(tensor) for tensor in tensors]
    return arrays + [array for array in found if array.dtype.kind in "fiu" and array.size]


def words_in(content: bytes) -> set[str]:
    """Return the words that an ONNX graph lists, and the groups of words that it counts."""
    onnx = need("onnx")
    graph = onnx.load_model_from_string(content).graph
    attributes = chain.from_iterable(node.attribute for node in graph.node)
    lists = [a.strings for a in attributes if a.name not in NOT_WORDS]
    texts = (t.string_data for t in graph.initializer if t.data_type == onnx.TensorProto.STRING)
    groups = chain.from_iterable(_groups(node) for node in graph.node)
    found = chain.from_iterable([*lists, *texts, groups])
    return {word.decode("utf-8", errors="replace").lower() for word in found}


def _groups(node: Any) -> Iterator[bytes]:
    """Yield the pairs, triples and so on that a vectoriser counts, joined by a space."""
    given = {attribute.name: attribute for attribute in node.attribute}
    if "pool_strings" not in given or "ngram_counts" not in given:
        return
    pool = given["pool_strings"].strings
    starts = [*given["ngram_counts"].ints, len(pool)]
    for n, (start, stop) in enumerate(pairwise(starts), 1):
        listed = pool[start:stop]
        # Letters are counted side by side, words with a space between.
        between = b"" if all(len(word.decode(errors="replace")) == 1 for word in listed) else b" "
        yield from (between.join(listed[i : i + n]) for i in range(0, len(listed), n))


def has_operator(content: bytes, start: str) -> bool:
    """Whether an ONNX graph has an operator whose name starts so."""
    graph = need("onnx").load_model_from_string(content).graph
    return any(node.op_type.startswith(start) for node in graph.node)


def cells_of(model: Any, rows: Any = None) -> Counter[str]:
    """Count the leaves of all trees of an estimator, however deep it holds them.

    Those are "leaves"; "few" have fewer than five rows, "single" are the target of one row, and
    "rest", of boosting, what the trees before left of one row's target.  Leaves of other libraries
    are counted by the training rows that fall into them.
    """
    found = Counter[str]()
    model = unwrapped(model)
    listed = list(_trees(model, "single", set()))
    if rows is not None and isinstance(model, foreign_kinds()):
        sizes, first = leaf_sizes(model, rows)
        plain = "single" if is_regressor(model) else "rest"
        listed += [(sizes[first], plain), (sizes[~first], "rest")]
    for sizes, holds in listed:
        found["leaves"] += sizes.size
        found["few"] += int((sizes < FEW).sum())
        found[holds] += int((sizes == 1).sum())
    return found


def _trees(model: Any, holds: str, seen: set[int]) -> Iterator[tuple[NDArray[Any], str]]:
    """Yield the rows of each tree's leaves, and what leaves of one row hold.

    That is a target ("single"), the rest of one that other trees have left, or a label.
    """
    if id(model) in seen:
        return
    seen.add(id(model))
    if hasattr(model, "tree_"):
        sizes = model.tree_.n_node_samples[model.tree_.children_left < 0]
        yield sizes, holds if is_regressor(model) else "label"
    for i, several in enumerate(getattr(model, "_predictors", ())):
        # The first tree of histogram gradient boosting starts from a mean: a leaf of it is
        # (target - mean) · learning rate; with a link, or for labels, it is less plain.
        plain = i == 0 and is_regressor(model)
        for tree in several:
            yield tree.nodes["count"][tree.nodes["is_leaf"] != 0], holds if plain else "rest"
    boosted = hasattr(model, "init_")
    # A leaf of the first trees of boosting is (target - base value) · learning rate, and so a
    # target: base value and learning rate are constants, one in the graph, one a round number.
    parts = (
        (model.init_, *np.ravel(model.estimators_[0])) if boosted and is_regressor(model) else ()
    )
    first = set(map(id, parts))
    for part in parts_of(model):
        yield from _trees(part, "rest" if boosted and id(part) not in first else holds, seen)


def parts_of(model: Any) -> Iterator[Any]:
    """Yield the estimators that an estimator contains, directly or in lists."""
    held = list(vars(model).values()) if isinstance(model, BaseEstimator) else []
    for one in held:
        listed = one.ravel().tolist() if isinstance(one, np.ndarray) else one
        several = listed if isinstance(listed, list | tuple) else [listed]
        # Steps of pipelines are pairs of a name and an estimator.
        flat = chain.from_iterable(p if isinstance(p, tuple) else [p] for p in several)
        yield from (part for part in flat if isinstance(part, BaseEstimator))


def all_parts(model: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators nested in it, each once."""
    waiting, seen = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            waiting.extend(parts_of(part))
            yield part


def inputs_of_steps(model: Any, rows: Any) -> Iterator[Any]:
    """Yield the rows as inputs of each pipeline step and each bagged estimator.

    Rows are an array (n, d), data frame, sparse matrix, or array (n,) of documents.
    """
    steps = [step for _, step in getattr(model, "steps", ())]
    for step in steps[:-1]:
        yield from inputs_of_steps(step, rows)
        if hasattr(step, "transform"):
            rows = step.transform(rows)
            yield rows
    if steps:
        yield from inputs_of_steps(steps[-1], rows)
    elif hasattr(model, "estimators_features_"):
        rows = np.asarray(rows) if hasattr(rows, "iloc") else rows
        for part, columns in zip(model.estimators_, model.estimators_features_, strict=True):
            given = rows
            if not np.array_equal(columns, np.arange(rows.shape[1])):
                given = rows[:, columns]
                yield given
            yield from inputs_of_steps(part, given)
    else:
        for part in parts_of(model):
            if _takes(part, rows):
                yield from inputs_of_steps(part, rows)


def _takes(part: Any, rows: Any) -> bool:
    """Whether a part of an estimator was fitted on rows of this kind."""
    if len(rows.shape) == 2:
        return bool(getattr(part, "n_features_in_", None) == rows.shape[1])
    try:
        check_is_fitted(part)
    except (NotFittedError, TypeError):
        return False
    return not hasattr(part, "n_features_in_")


def rare_entries(model: Any, documents: Any) -> int | None:
    """Count the words or groups of words of an estimator that occur in one to four documents.

    Counted as the estimator itself takes documents apart; None if it has no vectoriser.
    """
    vectorisers = [
        part
        for part in all_parts(model)
        if isinstance(part, CountVectorizer) and hasattr(part, "vocabulary_")
    ]
    tables = (vectoriser.transform(documents) for vectoriser in vectorisers)
    counts = [np.bincount((table > 0).indices) for table in tables]
    return sum(int(((n > 0) & (n < FEW)).sum()) for n in counts) if vectorisers else None


def documents_of(rows: Any) -> Any:
    """Return documents of any container as one array (n,)."""
    return np.asarray(list(rows), dtype=object).ravel()
