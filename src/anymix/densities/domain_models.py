"""The classifiers behind a `DomainClassifier`: fitting, log P(k | x), packing, reading."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from anymix._arrays import FloatArray, IntArray
from anymix.densities.boosted_trees import TREES, BoostedTrees, tree_arrays
from anymix.densities.counted_texts import ask, fit_on
from anymix.densities.density import (
    Arrays,
    GraphBuilder,
    check_arrays,
    check_shapes,
    refuse_unless,
)
from anymix.exceptions import InputError
from anymix.tables import Columns

# No table has so many rows that a share below this was seen.  Trees say 0 where they saw none, and
# log 0 could not be calibrated: one such row would outweigh all others.
LEAST = 1e-7
# Entries below which threads mostly wait for each other, and the longer the busier a machine is.
ONE_THREAD = 10_000_000
ONE_THREAD_TREES = 200_000
MOST_BYTES = 2**24  # of the names of columns and categories


def fit_linear(
    X: Any, codes: IntArray, weight: FloatArray, C: float, max_iter: int, tol: float
) -> Pipeline:
    """Fit multinomial logistic regression, dense features standardised."""
    steps: list[Any] = [LogisticRegression(C=C, max_iter=max_iter, tol=tol)]
    if not sparse.issparse(X):
        steps.insert(0, StandardScaler())
    model = make_pipeline(*steps)
    weights = {f"{name}__sample_weight": weight for name, _ in model.steps}
    threads = 1 if X.shape[0] * X.shape[1] < ONE_THREAD else None
    with threadpool_limits(limits=threads, user_api="blas"):
        return model.fit(X, codes, **weights)


def fit_estimator(
    estimator: Any, X: Any, codes: IntArray, weight: FloatArray | None, columns: Columns | None
) -> Any:
    """Fit a copy of a user's classifier; boosted trees get the list of categorical columns."""
    name, model = type(estimator).__name__, clone(estimator)
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"the classifier of domains {name}",
            "has no predict_proba; give one with probabilities, or wrap it as "
            f"CalibratedClassifierCV({name}())",
        )
    if columns is not None and isinstance(model, HistGradientBoostingClassifier):
        wanted = model.categorical_features
        if isinstance(wanted, str):  # "from_dtype": the encoded table has none to go by
            wanted = columns.categorical
        elif wanted is not None and len(wanted) and all(isinstance(n, str) for n in wanted):
            wanted = np.isin(columns.names, list(wanted))
        model.set_params(categorical_features=wanted)
    options = {}
    if weight is not None:
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if not has_fit_parameter(last, "sample_weight"):
            raise InputError(
                f"the classifier of domains {type(last).__name__}",
                "takes no sample_weight; leave the weights out, or give another classifier",
            )
        prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        options = {f"{prefix}sample_weight": weight}
    with _threads_for(model, X):
        return fit_on(model, X, codes, **options)


def _threads_for(model: Any, X: Any) -> Any:
    trees = isinstance(model, HistGradientBoostingClassifier | BoostedTrees)
    small = trees and X.shape[0] * X.shape[1] < ONE_THREAD_TREES
    return threadpool_limits(limits=1 if small else None, user_api="openmp")


def log_probabilities(model: Any, X: Any, linear: bool) -> FloatArray:
    """log P(k | x) of a classifier, (n, p), none below log 1e-7; linear: up to a constant a row."""
    if not linear and not isinstance(model, HistGradientBoostingClassifier | BoostedTrees):
        return np.log(
            np.clip(np.asarray(ask(model, "predict_proba", X), dtype=np.float64), LEAST, 1.0)
        )
    with nullcontext() if linear else _threads_for(model, X):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1 or scores.shape[1] == 1:
        # With two classes scikit-learn keeps only the score of the second.
        scores = np.column_stack([np.zeros(len(scores)), scores.ravel()])
    return scores if linear else np.maximum(log_softmax(scores, axis=1), np.log(LEAST))


def linear_graph(graph: GraphBuilder, model: Pipeline) -> str:
    """Write the scores of the logistic regression, all of them, into an ONNX graph: (n, p)."""
    arrays = linear_to_arrays(model, model[-1].coef_.shape[1])
    rows = graph.rows
    if "mean" in arrays:
        away = graph.add("Sub", rows, graph.constant(arrays["mean"]))
        rows = graph.add("Div", away, graph.constant(arrays["scale"]))
    slopes, steps = (graph.constant(arrays[name]) for name in ("coefficients", "intercepts"))
    product = graph.add("MatMul", rows, graph.add("Transpose", slopes, perm=[1, 0]))
    return _all_scores_graph(graph, graph.add("Add", product, steps), len(arrays["intercepts"]))


def trees_graph(graph: GraphBuilder, model: Any) -> str:
    """Write log P(k | x) of boosted trees, none below log 1e-7, into an ONNX graph: (n, p)."""
    trees = _trees_of(model)
    scores = _all_scores_graph(graph, trees.add_to(graph, graph.rows), trees.n_scores)
    logs = graph.add("Sub", scores, graph.log_sum_exp(scores))
    return graph.add("Max", logs, graph.constant(np.log(np.array([LEAST]))))


def _all_scores_graph(graph: GraphBuilder, scores: str, n_scores: int) -> str:
    if n_scores > 1:
        return scores
    none = graph.add("Mul", scores, graph.constant(np.array([0.0])))
    return graph.add("Concat", none, scores, axis=1)


def linear_to_arrays(model: Pipeline | None, d: int) -> dict[str, NDArray[Any]]:
    """Return coefficients, intercepts and, for dense rows, the scaler's numbers."""
    steps = [] if model is None else list(model)
    arrays: dict[str, NDArray[Any]] = {
        "coefficients": np.empty((0, d)),
        "intercepts": np.empty(0),
        "single": np.array([0], dtype=np.int64),
    }
    if steps:
        arrays["coefficients"] = steps[-1].coef_.astype(np.float64)
        arrays["intercepts"] = steps[-1].intercept_.astype(np.float64)
        # Fitted on float32 the products are of float32, and must be again.
        arrays["single"][0] = steps[-1].coef_.dtype == np.float32
    if len(steps) > 1:
        arrays |= {"mean": steps[0].mean_, "scale": steps[0].scale_}
    return arrays


def linear_from_arrays(arrays: Arrays, p: int, d: int) -> Pipeline | None:
    """Return the fitted steps that these arrays describe, None for one source, after checks."""
    scaler = {"mean", "scale"} & set(arrays)
    names = {"log_prior", "n_features", "coefficients", "intercepts", "single"}
    check_arrays(arrays, names | ({"mean", "scale"} if scaler else set()))
    # With two classes scikit-learn keeps the coefficients of the second alone.
    rows = {1: 0, 2: 1}.get(p, p)
    shapes = {"coefficients": (rows, d), "intercepts": (rows,)}
    check_shapes(arrays, **shapes, **dict.fromkeys(scaler, (d,)))
    single = arrays["single"]
    sound = single.dtype == np.int64 and single.tolist() in ([0], [1])
    refuse_unless(sound, "must have single 0 or 1")
    refuse_unless(not scaler or arrays["scale"].min() > 0, "has a scale of zero or less")
    if p == 1:
        return None
    precision = np.float32 if arrays["single"][0] else np.float64
    linear = LogisticRegression()
    # In the order of scikit-learn's own, so that products round alike.
    linear.coef_ = np.asfortranarray(arrays["coefficients"], dtype=precision)
    linear.intercept_ = arrays["intercepts"].astype(precision)
    linear.classes_ = np.arange(len(arrays["log_prior"]))
    linear.n_features_in_ = linear.coef_.shape[1]
    if "mean" not in arrays:
        return make_pipeline(linear)
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_ = arrays["mean"], arrays["scale"]
    scaler.var_, scaler.n_features_in_ = arrays["scale"] ** 2, linear.n_features_in_
    return make_pipeline(scaler, linear)


def trees_to_arrays(model: Any, columns: Columns | None) -> dict[str, NDArray[Any]]:
    """Return the arrays of the trees and, as JSON, the columns if some are categorical."""
    arrays = {TREES + name: array for name, array in _trees_of(model).to_arrays().items()}
    if columns is not None:
        content = json.dumps(columns.to_dict()).encode()
        arrays["columns"] = np.frombuffer(content, np.uint8).copy()
    return arrays


def _trees_of(model: Any) -> BoostedTrees:
    if isinstance(model, BoostedTrees):
        return model
    if isinstance(model, HistGradientBoostingClassifier):
        return BoostedTrees.of(model)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    raise InputError(
        f"a DomainClassifier of the type {type(last).__name__}",
        "cannot be packed; give DomainClassifier(), DomainClassifier.boosted() or, of texts, "
        "density=TextDensity()",
    )


def trees_from_arrays(arrays: Arrays, p: int, d: int) -> tuple[BoostedTrees, Columns | None]:
    """Return the trees of p domains and their columns, after checks."""
    listed, others = tree_arrays(arrays)
    named = set(others) - {"columns"} == {"log_prior", "n_features"}
    refuse_unless(named, "must hold log_prior, n_features and trees")
    trees = BoostedTrees.from_arrays(listed, d)
    scores = {2: 1}.get(p, p)
    refuse_unless(
        p > 1 and trees.n_scores == scores,
        f"has {trees.n_scores} scores, where {p} domains need {scores}",
    )
    return trees, _columns(arrays["columns"], d) if "columns" in arrays else None


def _columns(content: NDArray[Any], d: int) -> Columns:
    sound = content.dtype == np.uint8 and content.ndim == 1 and content.size <= MOST_BYTES
    refuse_unless(sound, "has columns that are not described in bytes")
    try:
        columns = Columns.from_dict(json.loads(content.tobytes()))
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        raise ValueError("has columns that are not described as they must be") from error
    refuse_unless(len(columns) == d, f"describes {len(columns)} columns, where there are {d}")
    return columns


def is_documents(X: Any) -> bool:
    """Whether rows are texts or lists of tokens: one-dimensional, with strings."""
    if hasattr(X, "columns") or sparse.issparse(X) or not hasattr(X, "__len__") or not len(X):
        return False
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return False
    first = next(iter(X))
    tokens = isinstance(first, list | tuple) and bool(first) and isinstance(first[0], str)
    return isinstance(first, str) or tokens
