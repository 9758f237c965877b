"""The operators that an untrusted graph may have, and for each the rule that keeps rows apart.

A rule takes a node whose inputs are known (`shapes.Value`) and returns the output shapes, or
refuses.  Every shape is made of constants and the number of rows; nothing is random, nothing loops,
and no operator works along the axis of rows.  So the output of a row is a function of that row
alone, and its cost is known before it is run.  Here: classical models and texts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.attribute_rules import DEEPEST, n_classes
from anymix.sandbox.row_operators import ARITHMETIC, LAYOUT, feature_extractor, same
from anymix.sandbox.shapes import N, Node, Refused, Rule, Shape, Size, W, fixed, numbers

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


def columns(node: Node) -> int:
    """Return how many columns the rows have; each row must be one vector of numbers."""
    shape = node.first.shape
    if len(shape) != 2 or shape[0] != N:
        raise Refused(f"{node.operator} must have one vector a row")
    return fixed(shape[1:])


def by_column(node: Node) -> list[Shape]:
    """Apply an operator to each number, with parameters by column at most."""
    columns(node)
    return [node.first.shape]


def classifier(node: Node) -> list[Shape]:
    """A label and a score of each class."""
    columns(node)
    return [(N,), (N, n_classes(node))][: max(node.n_outputs, 1)]


def regressor(node: Node) -> list[Shape]:
    """Some numbers for each row."""
    columns(node)
    if node.operator == "SVMRegressor":
        return [(N, 1)]
    name = "n_targets" if node.operator == "TreeEnsembleRegressor" else "targets"
    return [(N, node.attributes.get(name, 1))]


def trees(node: Node) -> list[Shape]:
    """Valid trees without cycles; sets of categories may be chains of comparisons.

    In a chain, x = a?  yes: child, no: x = b?  yes: the same child, and so on.  Of its arrows to
    the child only the last is needed to get there.  The others are left out; then each node has
    one parent at most and the root none.  An arrow that was left out leads further down the same
    tree, so no walk comes back to where it was, and none is longer than the tree has nodes.
    """
    d, get = columns(node), node.attributes.get
    lists = ("nodes_treeids", "nodes_nodeids", "nodes_truenodeids", "nodes_falsenodeids")
    tree, name, yes, no = (np.asarray(get(attribute, ()), dtype=np.int64) for attribute in lists)
    feature, modes = np.asarray(get("nodes_featureids", ()), dtype=np.int64), get("nodes_modes", ())
    # What is said of nodes is said of all of them, and so of leaves; an empty list says nothing.
    for start in ("nodes_", "class_", "target_"):
        sizes = {np.size(part) for name, part in node.attributes.items() if name.startswith(start)}
        if len(sizes - {0}) > 1:
            raise Refused(f"{node.operator} has lists of different lengths")
    if len({len(part) for part in (tree, name, yes, no, feature, modes)}) != 1 or not tree.size:
        raise Refused(f"{node.operator} has lists of different lengths")
    if any(part.min() < 0 or part.max() >= 2**31 for part in (tree, name, yes, no)):
        raise Refused(f"{node.operator} has nodes without a place")
    branch, equal = (
        np.fromiter(((mode == word) == same for mode in modes), bool, len(modes))
        for word, same in (("LEAF", False), ("BRANCH_EQ", True))
    )
    if branch.any() and not (feature[branch].min() >= 0 and feature[branch].max() < d):
        raise Refused(f"{node.operator} asks for a column that is not there")
    name, yes, no = (tree << 32 | end for end in (name, yes, no))
    needed = branch & ~_asks_again(node, name, yes, no, equal) if equal.any() else branch
    first = np.r_[True, tree[1:] != tree[:-1]]
    reached = np.sort(np.concatenate([name[first], yes[needed], no[branch]]))
    if (reached[1:] == reached[:-1]).any():
        raise Refused(f"{node.operator} has a node with two parents")
    if not np.isin(np.concatenate([yes[branch], no[branch]]), name).all():
        raise Refused(f"{node.operator} leads to a node that is not there")
    _check_depth(node, name, np.flatnonzero(first), (yes, no), (needed, branch))
    return classifier(node) if "Classifier" in node.operator else regressor(node)


def _check_depth(
    node: Node, name: Whole, roots: Whole, ends: tuple[Whole, Whole], taken: tuple[Flags, Flags]
) -> None:
    """Walk down all trees at once, a level at a time; every node has one parent at most."""
    order = np.argsort(name, kind="stable")
    level = roots
    for _ in range(DEEPEST):
        below = np.concatenate([end[level[on[level]]] for end, on in zip(ends, taken, strict=True)])
        if not below.size:
            return
        level = order[np.searchsorted(name, below, sorter=order)]
    raise Refused(f"{node.operator} has a tree of more than {DEEPEST} levels")


def _asks_again(node: Node, name: Whole, yes: Whole, no: Whole, equal: Flags) -> Flags:
    """Where "no" leads from one question x = a? to another, with the same child for "yes"."""
    order = np.argsort(name, kind="stable")
    if (np.diff(name[order]) == 0).any():
        raise Refused(f"{node.operator} has two nodes of one name")
    after = order[np.minimum(np.searchsorted(name, no, sorter=order), name.size - 1)]
    return equal & (name[after] == no) & equal[after] & (yes[after] == yes)


def one_hot(node: Node) -> list[Shape]:
    """A column for each category."""
    categories = max(len(node.attributes.get(n, ())) for n in ("cats_int64s", "cats_strings"))
    return [(*node.first.shape, categories)]


def side_by_side(node: Node) -> list[Shape]:
    """Columns of several inputs."""
    sizes = [fixed(value.shape[1:]) for value in node.there()]
    if any(len(v.shape) != 2 or v.shape[0] != N for v in node.there()):
        raise Refused("FeatureVectorizer must have one vector a row")
    if list(node.attributes.get("inputdimensions", ())) != sizes:
        raise Refused("FeatureVectorizer states sizes that are not those of its inputs")
    return [(N, sum(sizes))]


CLASSICAL: dict[str, Rule] = {
    **dict.fromkeys(("Binarizer", "Imputer", "Normalizer", "Scaler"), by_column),
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor"), trees),
    **dict.fromkeys(("LinearClassifier", "SVMClassifier"), classifier),
    **dict.fromkeys(("LinearRegressor", "SVMRegressor"), regressor),
    "ArrayFeatureExtractor": feature_extractor,
    "FeatureVectorizer": side_by_side,
    "LabelEncoder": same,
    "OneHotEncoder": one_hot,
}


def normalise_text(node: Node) -> list[Shape]:
    """Change the case of each text; removing words is refused, as it would move the others."""
    if node.attributes.get("stopwords"):
        raise Refused("StringNormalizer that removes rows is not allowed")
    return [node.first.shape]


def tokenize(node: Node) -> list[Shape]:
    """Split each text into words, padded to the longest text of the batch."""
    shape: list[Size] = list(node.first.shape)
    if numbers(shape) != 1 or shape[:1] != [N]:
        raise Refused("Tokenizer must have one text a row")
    return [(*shape, W)]


def count_words(node: Node) -> list[Shape]:
    """Count each listed word, or run of words, in a row."""
    shape = node.first.shape
    if len(shape) != 2 or shape[0] != N:
        raise Refused("TfIdfVectorizer must have one list of words a row")
    if shape[1] == W and not node.attributes.get("pool_strings"):
        raise Refused("TfIdfVectorizer must list the words that it counts")
    places = node.attributes.get("ngram_indexes", ())
    if not len(places) or min(places) < 0 or max(places) >= 2**24:
        raise Refused("TfIdfVectorizer has places that are not there")
    return [(N, int(max(places)) + 1)]


TEXTS: dict[str, Rule] = {"StringNormalizer": normalise_text, "TfIdfVectorizer": count_words}
# How skl2onnx writes the cutting of text into words.
TOKENS: dict[str, Rule] = {"Tokenizer": tokenize}
# What may be done with words that stand there only to fill up: nothing but counting others.
OF_WORDS = {"Flatten", "Identity", "Squeeze", "TfIdfVectorizer"}


# What may be done with constants, which are computed once; no exporter needs a model there.
NOT_ON_CONSTANTS = {
    *["AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "TopK"]
}
NOT_ON_CONSTANTS |= {name for name in ARITHMETIC if "Norm" in name or name == "Dropout"}
ON_CONSTANTS = {*ARITHMETIC, *LAYOUT} - NOT_ON_CONSTANTS
# The rule of each operator, by its domain.
RULES: dict[str, dict[str, Rule]] = {
    "": {**ARITHMETIC, **LAYOUT, **TEXTS},
    "ai.onnx.ml": CLASSICAL,
    "com.microsoft": TOKENS,
}
