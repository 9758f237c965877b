"""Trees of XGBoost, LightGBM, CatBoost and forests in the form in which anymix keeps trees.

XGBoost, CatBoost and forests round numbers to float32 before they compare.  As rounding is
monotone, each of their splits is one of float64 at another threshold: no row takes another path.

    round(x) < t   ⟺   x ≤ s,   s between t and the float32 number before it
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from anymix._arrays import FloatArray
from anymix.densities import BoostedTrees, SplitTree

LINKS = {
    "identity": ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "regression",
                 "regression_l1", "huber", "fair", "quantile", "reg:quantileerror", "RMSE", "MAE",
                 "Huber", "Quantile", "mape", "MAPE"),
    "exp": ("count:poisson", "reg:gamma", "reg:tweedie", "poisson", "gamma", "tweedie", "Poisson",
            "Tweedie"),
    "sigmoid": ("binary:logistic", "reg:logistic", "binary", "cross_entropy", "Logloss",
                "CrossEntropy"),
    "softmax": ("multi:softprob", "multi:softmax", "multiclass", "MultiClass"),
}  # fmt: skip
LINK_OF = {objective: link for link, objectives in LINKS.items() for objective in objectives}
CLASSES = {
    "xgboost": ("XGBClassifier", "XGBRegressor"),
    "lightgbm": ("LGBMClassifier", "LGBMRegressor"),
    "catboost": ("CatBoostClassifier", "CatBoostRegressor"),
}

LEAF_ROWS = 4096
HIGHEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class ForeignTrees:
    """Trees, and the link that turns their scores into predictions."""

    trees: BoostedTrees
    link: str


def foreign_kinds() -> tuple[type, ...]:
    """Return the estimator classes of the libraries that are imported."""
    loaded = ((sys.modules.get(library), names) for library, names in CLASSES.items())
    kinds = (getattr(m, name, None) for m, names in loaded if m is not None for name in names)
    return tuple(kind for kind in kinds if isinstance(kind, type))


def is_estimator(model: Any) -> bool:
    """Whether it is an estimator of scikit-learn's kind; CatBoost's do not inherit from it."""
    return isinstance(model, (BaseEstimator, *foreign_kinds()))


def leaf_sizes(model: Any, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how many of the rows each leaf holds, and which are of the first tree of a score."""
    trees = trees_of(model).trees
    sizes = np.zeros(trees.kinds.size, dtype=np.int64)
    for start in range(0, len(rows), LEAF_ROWS):
        met = trees.leaves(np.asarray(rows)[start : start + LEAF_ROWS])
        sizes += np.bincount(met.ravel(), minlength=sizes.size)
    first = np.arange(sizes.size) < trees.starts[trees.n_scores]
    leaf = trees.is_leaf
    return sizes[leaf], first[leaf]


def trees_of(model: Any) -> ForeignTrees:
    """Return the trees of a fitted estimator; a ValueError says what cannot be written."""
    library = next(lib for lib in CLASSES if _is_of(model, lib))
    readers: dict[str, Callable[[Any], ForeignTrees]] = {
        "xgboost": _of_xgboost,
        "lightgbm": _of_lightgbm,
        "catboost": _of_catboost,
    }
    return readers[library](model)


def _is_of(model: Any, library: str) -> bool:
    module = sys.modules.get(library)
    kinds = tuple(getattr(module, name) for name in CLASSES[library] if hasattr(module, name))
    return isinstance(model, kinds)


def _link(objective: str) -> str:
    objective = objective.split(":quantile")[0] if objective.startswith("Quantile") else objective
    if objective not in LINK_OF:
        raise ValueError(f"the objective {objective!r} has a link that is not known")
    return LINK_OF[objective]


def _of_xgboost(model: Any) -> ForeignTrees:
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        raise ValueError(f"XGBoost's booster {booster['name']!r} is not written; use 'gbtree'")
    objective = learner["objective"]["name"]
    link, listed = _link(objective), booster["model"]["trees"]
    baseline = np.atleast_1d(json.loads(learner["learner_model_param"]["base_score"]))
    baseline = baseline.astype(np.float32).astype(np.float64)
    if link == "sigmoid":
        baseline = np.log(baseline) - np.log1p(-baseline)
    elif link == "exp":
        baseline = np.log(baseline)
    k = max(int(learner["learner_model_param"]["num_class"]), 1)
    rounds = int(getattr(model, "best_iteration", 0) or 0) + 1 if _stopped_early(model) else None
    by_score: list[list[SplitTree]] = [[] for _ in range(k)]
    for tree, score in zip(listed, booster["model"]["tree_info"], strict=True):
        by_score[score].append(_xgboost_tree(tree))
    parallel = max(int(booster["model"]["gbtree_model_param"].get("num_parallel_tree", "1")), 1)
    last = None if rounds is None else rounds * parallel
    trees = [
        tree for group in zip(*(each[:last] for each in by_score), strict=True) for tree in group
    ]
    n_features = int(learner["learner_model_param"]["num_feature"])
    return ForeignTrees(
        BoostedTrees.from_splits(trees, np.broadcast_to(baseline, k), n_features), link
    )


def _stopped_early(model: Any) -> bool:
    try:
        return model.best_iteration is not None
    except AttributeError:
        return False


def _xgboost_tree(tree: dict[str, Any]) -> SplitTree:
    if any(tree.get("split_type", ())):
        raise ValueError("XGBoost's own splits of categories are not written; encode them first")
    left = np.array(tree["left_children"], dtype=np.int64)
    leaf = left == -1
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    return SplitTree(
        np.array(tree["split_indices"], dtype=np.int64),
        _largest_rounded_to(np.nextafter(conditions, np.float32(-np.inf))),
        left,
        np.array(tree["right_children"], dtype=np.int64),
        np.array(tree["default_left"], dtype=bool),
        leaf,
        conditions.astype(np.float64),
    )


def _largest_rounded_to(numbers: NDArray[np.float32]) -> FloatArray:
    """Return the largest float64 numbers that round to these of float32, or below.

    Halfway to the next one rounding goes to the even of the two.
    """
    with np.errstate(over="ignore"):
        following = np.nextafter(numbers, np.float32(np.inf)).astype(np.float64)
    middle = (numbers.astype(np.float64) + following) / 2
    even = numbers.view(np.int32) % 2 == 0
    found = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.asarray(np.where(np.isinf(following), HIGHEST, found))


def _of_lightgbm(model: Any) -> ForeignTrees:
    dump = model.booster_.dump_model(num_iteration=model.best_iteration_ or -1)
    objective, *settings = str(dump["objective"]).split()
    told = dict(each.split(":", 1) for each in settings if ":" in each)
    if float(told.get("sigmoid", 1)) != 1 or "sqrt" in settings:
        raise ValueError("LightGBM's options sigmoid and reg_sqrt are not written; leave them out")
    n_features = int(dump["max_feature_idx"]) + 1
    k = int(dump["num_tree_per_iteration"])
    trees = [_lightgbm_tree(tree["tree_structure"]) for tree in dump["tree_info"]]
    if dump.get("average_output"):
        trees = [replace(tree, value=tree.value * k / len(trees)) for tree in trees]
    return ForeignTrees(BoostedTrees.from_splits(trees, np.zeros(k), n_features), _link(objective))


def _lightgbm_tree(root: dict[str, Any]) -> SplitTree:
    listed = [root]
    rows: list[tuple[int, float, int, int, bool, bool, float]] = []
    for node in listed:  # grows as it is walked
        if "leaf_value" in node and "left_child" not in node:
            rows.append((0, 0.0, 0, 0, False, True, float(node["leaf_value"])))
            continue
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            raise ValueError(
                "LightGBM's own splits of categories, and zero_as_missing, are not written; encode "
                "categories first"
            )
        threshold = float(node["threshold"])
        # Without missing values in training LightGBM reads them as 0.
        known = node["missing_type"] == "NaN"
        missing_left = bool(node["default_left"]) if known else threshold >= 0
        children = len(listed), len(listed) + 1
        listed += [node["left_child"], node["right_child"]]
        rows.append((int(node["split_feature"]), threshold, *children, missing_left, False, 0.0))
    return SplitTree(*(np.array(column) for column in zip(*rows, strict=True)))


def _of_catboost(model: Any) -> ForeignTrees:
    with tempfile.TemporaryDirectory(prefix="anymix-") as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text(encoding="utf-8"))
    if "oblivious_trees" not in dump:
        raise ValueError("CatBoost's trees are written with grow_policy='SymmetricTree' alone")
    floats = dump["features_info"].get("float_features", [])
    if dump["features_info"].get("categorical_features") or len(floats) != model.n_features_in_:
        raise ValueError("CatBoost's own categories are not written; encode them as numbers first")
    right_if_missing = np.array([f["nan_value_treatment"] == "AsTrue" for f in floats])
    scale, bias = dump["scale_and_bias"]
    baseline = np.atleast_1d(np.asarray(bias, dtype=float))
    link = _link(str(model.get_all_params()["loss_function"]).split(":")[0])
    k = len(model.classes_) if link == "softmax" else 1
    trees = [
        tree
        for each in dump["oblivious_trees"]
        for tree in _catboost_trees(each, k, float(scale), right_if_missing)
    ]
    return ForeignTrees(
        BoostedTrees.from_splits(trees, np.broadcast_to(baseline, k), len(floats)), link
    )


def _catboost_trees(
    tree: dict[str, Any], k: int, scale: float, right_if_missing: NDArray[np.bool_]
) -> list[SplitTree]:
    """Return an oblivious tree as k plain ones: all nodes of a level ask the same.

    The first split decides the lowest bit of a leaf's number.
    """
    splits = tree.get("splits") or []
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise ValueError("CatBoost's own categories are not written; encode them as numbers first")
    depth = len(splits)
    n_inner, places = 2**depth - 1, np.arange(2 ** (depth + 1) - 1)
    level = np.floor(np.log2(places + 1)).astype(int)
    asked = np.minimum(level, max(depth - 1, 0))
    features = np.array([split["float_feature_index"] for split in splits] or [0])
    borders = np.array([split["border"] for split in splits] or [0], dtype=np.float32)
    leaf = places >= n_inner
    # The way from the root, high bit first; a leaf's number has it the other way round.
    way = places - (2**level - 1)
    number = sum(((way >> (depth - 1 - i)) & 1) << i for i in range(depth)) if depth else way
    values = np.asarray(tree["leaf_values"], dtype=float).reshape(-1, k) * scale
    inner = (features[asked], _largest_rounded_to(borders)[asked])
    return [
        SplitTree(
            *inner,
            np.where(leaf, 0, 2 * places + 1),
            np.where(leaf, 0, 2 * places + 2),
            ~right_if_missing[features[asked]],
            leaf,
            np.where(leaf, values[np.where(leaf, number, 0), j], 0.0),
        )
        for j in range(k)
    ]


def _sklearn_trees(model: Any) -> list[Any]:
    return [each.tree_ for each in getattr(model, "estimators_", [model])]


def learned_from_missing(model: Any) -> bool:
    """Whether a tree or forest was trained on missing values, as far as its trees show it.

    Without missing values scikit-learn sends missing values to the child with more rows.
    """
    for tree in _sklearn_trees(model):
        split = np.flatnonzero(tree.children_left != -1)
        sizes = (
            tree.n_node_samples[side[split]] for side in (tree.children_left, tree.children_right)
        )
        more_left = np.greater(*sizes)
        if (tree.missing_go_to_left[split].astype(bool) != more_left).any():
            return True
        if np.isinf(tree.threshold[split]).any():
            return True
    return False


def forest_of(model: Any) -> BoostedTrees:
    """Return the trees of a forest, or a single one, the mean of which is the prediction.

    Of two classes the score is the probability of the second one.
    """
    listed = _sklearn_trees(model)
    n_classes = len(getattr(model, "classes_", ()))
    columns = [1] if n_classes == 2 else list(range(max(n_classes, 1)))
    trees = [_sklearn_tree(tree, j, len(listed)) for tree in listed for j in columns]
    return BoostedTrees.from_splits(trees, np.zeros(len(columns)), model.n_features_in_)


def _sklearn_tree(tree: Any, column: int, n_trees: int) -> SplitTree:
    leaf = tree.children_left == -1
    shares = tree.value[:, 0, :]
    if shares.shape[1] > 1:
        shares = shares / shares.sum(axis=1, keepdims=True)
    # scikit-learn compares numbers that it has rounded to float32.
    all_left = np.isposinf(tree.threshold)
    exact = np.where(all_left, 0, tree.threshold)
    thresholds = exact.astype(np.float32)
    above = thresholds.astype(np.float64) > exact
    thresholds = np.where(above, np.nextafter(thresholds, np.float32(-np.inf)), thresholds)
    return SplitTree(
        np.maximum(tree.feature, 0),
        np.where(all_left, HIGHEST, _largest_rounded_to(thresholds)),
        tree.children_left,
        tree.children_right,
        np.asarray(tree.missing_go_to_left, dtype=bool),
        leaf,
        shares[:, column] / n_trees,
    )
