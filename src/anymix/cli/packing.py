"""What `source pack` makes of its options: an estimator, a density, labels; each checked early."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix.cli.training_table import read_training_rows
from anymix.densities import GaussianKDE, GaussianMixtureDensity
from anymix.exchange import THAT_WORK

KINDS = {
    "classification": (is_classifier, "classifier"),
    "regression": (is_regressor, "regressor"),
}


def make_estimator(args: Namespace) -> Any:
    """Return what --estimator asks for, not yet trained."""
    classifies = args.task == "classification"
    if args.estimator == "linear":
        return make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000) if classifies else Ridge()
        )
    if args.estimator == "forest":
        kind = RandomForestClassifier if classifies else RandomForestRegressor
        return kind(100, min_samples_leaf=5, random_state=args.seed)
    module, _, name = args.estimator.partition(":")
    try:
        estimator = getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ValueError(
            f"--estimator {args.estimator} cannot be found: {error}; give linear, forest or "
            "module:Class, such as sklearn.linear_model:Lasso."
        ) from error
    _check_kind(args, estimator)
    return estimator


def _check_kind(args: Namespace, estimator: Any) -> None:
    """Refuse an estimator of another task, or a classifier without probabilities."""
    fits, kind = KINDS[args.task]
    if not isinstance(estimator, BaseEstimator) or not fits(estimator):
        raise ValueError(
            f"--estimator {args.estimator} is not a {kind} of scikit-learn's kind, which --task "
            f"{args.task} needs; choose one that is, or another --task."
        )
    if args.task == "classification" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"--estimator {args.estimator} gives no probabilities, which a classification needs; "
            f"{THAT_WORK} do, or pass an ONNX file with --onnx."
        )


def make_density(args: Namespace) -> Any:
    """Return what --density asks for, not yet fitted."""
    if args.density == "mixture":
        return GaussianMixtureDensity(random_state=args.seed)
    return GaussianKDE(random_state=args.seed)


def check_labels(args: Namespace, y: NDArray[Any]) -> None:
    """Refuse labels that nothing can be learned from."""
    if args.task == "regression" or args.onnx:
        return
    found = np.unique(y).tolist()
    if len(found) < 2:
        raise ValueError(
            f"{args.rows}: column {args.target!r} holds the label {found[0]!r} alone, and a "
            "classifier is learned from two or more; add rows of another label, or pass a trained "
            "predictor with --onnx and --classes."
        )


def classes_of(args: Namespace, y: NDArray[Any]) -> list[Any] | None:
    """Return the labels of the columns of --onnx; None where the estimator knows them."""
    if args.task == "regression" or not args.onnx:
        if args.classes:
            raise ValueError(
                "--classes names the columns of --onnx of a classification; an estimator that is "
                "trained here finds its labels in the rows, so leave --classes out."
            )
        return None
    if not args.classes:
        raise ValueError("--onnx of a classification needs --classes, in the order of its columns.")
    if y.dtype.kind != "i":
        return list(args.classes)
    try:
        return [int(label) for label in args.classes]
    except ValueError as error:
        raise ValueError(
            f"column {args.target!r} of {args.rows} holds whole numbers, but --classes are "
            f"{', '.join(args.classes)}; both must name the labels alike."
        ) from error


def read_held_out(
    args: Namespace, names: list[str], labels: NDArray[Any] | None
) -> tuple[Any, Any] | None:
    """Return the rows of --held-out, if any; all of their labels must be among those given."""
    if args.held_out is None:
        return None
    X, y = read_training_rows(args.held_out, names, args.target, args.task)
    if labels is None:
        return X, y
    strange = np.flatnonzero(~np.isin(y.astype(str), labels.astype(str)))
    if strange.size:
        i = int(strange[0])
        origin = "--classes does not name" if args.onnx else f"no row of {args.rows} has"
        raise ValueError(
            f"{args.held_out}, row {i + 1}: column {args.target!r} holds {y[i].item()!r}, which "
            f"{origin}; leave such rows out of --held-out, or train on rows of this label too."
        )
    return X, y.astype(labels.dtype)
