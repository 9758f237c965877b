"""Checks of the list lengths of each operator, independent of the runtime.

Older versions of onnxruntime read beyond lists that are too short.  A node that passes these rules
needs none of its checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anymix.sandbox.shapes import N, Node, Refused, fixed

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MODES = ("TF", "IDF", "TFIDF")
# What is given as a list or as a tensor.
_WEIGHED = ("nodes_values", "class_weights", "target_weights", "base_values")
LABELS = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")
# Steps from the root of a tree to a leaf: runtimes walk down by recursion.
DEEPEST = 4096
MOST_SKIPS = 10


def check_attributes(node: Node) -> None:
    """Refuse a node whose lists are not as long as its inputs and outputs need."""
    if node.attributes.get("post_transform", "NONE") not in TRANSFORMS:
        raise Refused(f"{node.operator} has a transform that is not known")
    if node.operator in CHECKS:
        CHECKS[node.operator](node)


def n_classes(node: Node) -> int:
    """Return how many labels a classifier names, in one list alone."""
    sizes = [length(node, name) for name in LABELS]
    if sum(size > 0 for size in sizes) != 1:
        raise Refused(f"{node.operator} must name its classes in one list")
    return max(sizes)


def length(node: Node, name: str) -> int:
    """Return how long a list is; 0 if it is not there."""
    values = node.attributes.get(name, ())
    return len(values) if isinstance(values, list) else int(np.size(values))


def need(node: Node, name: str, *allowed: int) -> None:
    """Refuse a list of another length than these."""
    if length(node, name) not in allowed:
        raise Refused(f"{node.operator} has lists of different lengths: {name}")


def width(node: Node) -> int:
    """Return how many numbers a row has."""
    shape = node.first.shape
    return fixed(shape[1:] if shape[:1] == (N,) else shape)


def _linear_classifier(node: Node) -> None:
    classes, scores = n_classes(node), length(node, "intercepts")
    if scores != classes and not (scores == 1 and classes == 2):
        raise Refused("LinearClassifier has lists of different lengths: intercepts")
    need(node, "coefficients", scores * width(node))


def _linear_regressor(node: Node) -> None:
    targets = node.attributes.get("targets", 1)
    if targets < 1:
        raise Refused("LinearRegressor has no targets")
    need(node, "coefficients", targets * width(node))
    need(node, "intercepts", 0, targets)


def _kernel(node: Node) -> None:
    kind = node.attributes.get("kernel_type", "LINEAR")
    if kind not in KERNELS:
        raise Refused(f"{node.operator} has a kernel that is not known")
    need(node, "kernel_params", 3, *(0,) * (kind == "LINEAR"))


def _svm_regressor(node: Node) -> None:
    n = node.attributes.get("n_supports", 0)
    _kernel(node)
    if n < 0:
        raise Refused("SVMRegressor has a negative number of support vectors")
    need(node, "support_vectors", n * width(node))
    need(node, "coefficients", n if n else width(node))
    need(node, "rho", 1)


def _svm_classifier(node: Node) -> None:
    classes = n_classes(node)
    _kernel(node)
    each = np.asarray(node.attributes.get("vectors_per_class", ()), dtype=np.int64)
    if not each.size:
        need(node, "coefficients", classes * width(node))
        need(node, "rho", 1)
        return
    pairs = classes * (classes - 1) // 2
    if each.size != classes or each.min() < 0 or each.max() > 2**31:
        raise Refused("SVMClassifier has lists of different lengths: vectors_per_class")
    need(node, "support_vectors", int(each.sum()) * width(node))
    need(node, "coefficients", int(each.sum()) * (classes - 1))
    need(node, "rho", pairs)
    for name in ("prob_a", "prob_b"):
        need(node, name, 0, pairs)
    if length(node, "prob_a") != length(node, "prob_b"):
        raise Refused("SVMClassifier has lists of different lengths: prob_a")


def _scaler(node: Node) -> None:
    need(node, "offset", 1, width(node))
    need(node, "scale", length(node, "offset"))


def _imputer(node: Node) -> None:
    names = ("imputed_value_floats", "imputed_value_int64s")
    if sum(length(node, name) > 0 for name in names) != 1:
        raise Refused("Imputer must have one list of values")
    need(node, names[0], 0, 1, width(node))
    need(node, names[1], 0, 1, width(node))


def _normalizer(node: Node) -> None:
    if node.attributes.get("norm", "MAX") not in ("MAX", "L1", "L2"):
        raise Refused("Normalizer has a norm that is not known")


def _label_encoder(node: Node) -> None:
    keys, values = (
        [length(node, name) for name in node.attributes if name.startswith(start)]
        for start in ("keys_", "values_")
    )
    if node.opset > 1 and (len(keys) != 1 or len(values) != 1 or keys != values):
        raise Refused("LabelEncoder has lists of different lengths")


def _one_hot(node: Node) -> None:
    if sum(length(node, name) > 0 for name in ("cats_int64s", "cats_strings")) != 1:
        raise Refused("OneHotEncoder must have one list of categories")


def _trees(node: Node) -> None:
    kind = "class" if node.operator == "TreeEnsembleClassifier" else "target"
    get = node.attributes.get
    classes = n_classes(node) if kind == "class" else get("n_targets", 1)
    if classes < 1:
        raise Refused(f"{node.operator} has no targets")
    both = {name: max(length(node, name), length(node, f"{name}_as_tensor")) for name in _WEIGHED}
    names = [f"{kind}_{name}" for name in ("treeids", "nodeids", "ids")]
    sizes = {length(node, name) for name in names} | {both[f"{kind}_weights"]}
    if len(sizes) != 1 or not max(sizes) or both["nodes_values"] != length(node, "nodes_nodeids"):
        raise Refused(f"{node.operator} has lists of different lengths")
    if both["base_values"] not in (0, 1, classes):
        raise Refused(f"{node.operator} has lists of different lengths: base_values")
    if get("aggregate_function", "SUM") not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise Refused(f"{node.operator} joins its trees in a way that is not known")
    tree, name, leaf_tree, leaf = (
        np.asarray(get(attribute, ()), dtype=np.int64)
        for attribute in ("nodes_treeids", "nodes_nodeids", *names[:2])
    )
    if tree.shape != name.shape or leaf.min() < 0 or leaf.max() >= 2**31:
        raise Refused(f"{node.operator} has lists of different lengths")
    if not np.isin(leaf_tree << 32 | leaf, tree << 32 | name).all():
        raise Refused(f"{node.operator} adds to a node that is not there")
    ids = np.asarray(get(f"{kind}_ids", ()), dtype=np.int64)
    if ids.min() < 0 or ids.max() >= classes:
        raise Refused(f"{node.operator} adds to a {kind} that is not there")


def _counted_words(node: Node) -> None:
    """Pools of runs of 1, 2, ... words stand one after the other; ngram_counts says where."""
    starts = node.option("ngram_counts", default=[])
    places = length(node, "ngram_indexes")
    pool = max(length(node, "pool_strings"), length(node, "pool_int64s"))
    ends, listed = [*starts[1:], pool], 0
    for n, (start, end) in enumerate(zip(starts, ends, strict=False), start=1):
        if not 0 <= start <= end <= pool or (end - start) % n:
            raise Refused("TfIdfVectorizer has lists of different lengths: ngram_counts")
        listed += (end - start) // n
    if not starts or starts[0] != 0 or listed != places:
        raise Refused("TfIdfVectorizer has lists of different lengths: ngram_indexes")
    need(node, "weights", 0, places)
    get = node.attributes.get
    shortest, longest = get("min_gram_length", 0), get("max_gram_length", 0)
    if not 1 <= shortest <= longest <= len(starts):
        raise Refused("TfIdfVectorizer counts runs of words that it does not list")
    if not 0 <= get("max_skip_count", 0) <= MOST_SKIPS or get("mode") not in _MODES:
        raise Refused("TfIdfVectorizer has settings that are not known")


def _constants_of_size(*sizes: int) -> Callable[[Node], None]:
    def check(node: Node) -> None:
        channels = node.first.shape[1] if len(node.first.shape) > 1 else 0
        for value in node.there()[1:]:
            if value.shape != (channels,):
                raise Refused(f"{node.operator} has weights of another number of channels")

    return check


def _layer_norm(node: Node) -> None:
    end = node.first.shape[node.axis(-1) :]
    for value in node.there()[1:]:
        if value.shape != end:
            raise Refused("LayerNormalization has weights of another shape than its rows")


def _window(node: Node) -> None:
    get, limit = node.attributes.get, 2**20
    for name in ("kernel_shape", "strides", "dilations"):
        if any(not 0 < size < limit for size in get(name) or ()):
            raise Refused(f"{node.operator} has a {name} that is not positive")
    if any(not 0 <= size < limit for size in get("pads") or ()):
        raise Refused(f"{node.operator} has negative pads")
    if node.operator != "Conv":
        return
    shape, weights, group = node.first.shape, node.given(1).shape, get("group", 1)
    if len(weights) != len(shape) or get("kernel_shape", list(weights[2:])) != list(weights[2:]):
        raise Refused("Conv has weights of another shape than its kernel")
    out, each = fixed(weights[:1]), fixed(weights[1:2])
    if group < 1 or out % group or shape[1] != each * group:
        raise Refused("Conv has weights of another number of channels")
    if len(node.there()) > 2 and node.given(2).shape != (out,):
        raise Refused("Conv has a bias of another number of channels")


def _pad(node: Node) -> None:
    if any(size < 0 for size in node.option("pads", 1) or ()):
        raise Refused("Pad takes numbers away")


def _gather(node: Node) -> None:
    """Entries that are there: constants are looked at, and rows must be known to stay within."""
    data, at = node.first.shape, node.given(1)
    axis = -1 if node.operator == "ArrayFeatureExtractor" else node.attributes.get("axis", 0)
    size = data[axis] if data and -len(data) <= axis < len(data) else 1
    if at.array is not None and isinstance(size, int):
        least = 0 if node.operator == "ArrayFeatureExtractor" else -size
        if at.array.size and not (at.array.min() >= least and at.array.max() < size):
            raise Refused(f"{node.operator} takes an entry that is not there")
    # The other two look at each number before they use it, in every version.
    by_rows = at.array is None and node.operator == "ArrayFeatureExtractor"
    if by_rows and not (isinstance(size, int) and 0 < at.below <= size):
        raise Refused("ArrayFeatureExtractor takes entries by numbers that may be any")


def _divide(node: Node) -> None:
    """Whole numbers by a constant: by 0, or by -1 the smallest one, a processor stops."""
    if not any(value.whole for value in node.there()):
        return
    divisor = node.given(1).array
    if divisor is None or (divisor == 0).any() or (divisor == -1).any():
        raise Refused(f"{node.operator} of whole numbers needs constants other than 0 and -1")


CHECKS: dict[str, Callable[[Node], Any]] = {
    **dict.fromkeys(("AveragePool", "Conv", "MaxPool"), _window),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _constants_of_size()),
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor"), _trees),
    **dict.fromkeys(("ArrayFeatureExtractor", "Gather", "GatherElements"), _gather),
    **dict.fromkeys(("Div", "Mod"), _divide),
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "LayerNormalization": _layer_norm,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Pad": _pad,
    "SVMClassifier": _svm_classifier,
    "SVMRegressor": _svm_regressor,
    "Scaler": _scaler,
    "TfIdfVectorizer": _counted_words,
}
