"""Options of `source pack`: estimator, density and labels, checked before training."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, get_tags
from threadpoolctl import threadpool_limits

from anymix._arrays import FloatArray, IntArray, content_of
from anymix.cli.second_round import fit_labels, mean_logarithm
from anymix.cli.streams import caution
from anymix.cli.training_table import TrainingTable, training_request
from anymix.core import SeenRows
from anymix.densities import (
    ContrastiveDensity,
    GaussianKDE,
    GaussianMixtureDensity,
    Reference,
    ScaleWarning,
    TextDensity,
    WordReference,
)
from anymix.estimators import (
    LearnerChoice,
    candidate_estimators,
    choose_estimator,
    default_estimator,
)
from anymix.exceptions import InputError, UsageError, quoted
from anymix.exchange import (
    THAT_WORK,
    HomeTable,
    ReceivedSource,
    home_folds,
    is_estimator,
)
from anymix.sources import SecondRound, pool_of_others
from anymix.tables import FEWEST_ROWS

FEW_ROWS = 10_000
FOLDS = 5
TEXT_WORDS: dict[str, Any] = {"min_df": FEWEST_ROWS, "token_pattern": "[a-zA-Z]+"}
DENSITIES: dict[str, Any] = {"kernels": GaussianKDE, "mixture": GaussianMixtureDensity}
# Columns of a mixture: of twice as many it is refused when it is read, and takes gigabytes before.
MOST_MIXED = 1000
KINDS = {
    "classification": (is_classifier, "classifier"),
    "regression": (is_regressor, "regressor"),
}


def make_estimator(args: Namespace, table: TrainingTable) -> tuple[Any, LearnerChoice | None]:
    """Return the estimator for --estimator, not yet trained, and how it was chosen, if it was.

    It must accept the columns of the table.
    """
    wish, classifies = args.estimator, args.task == "classification"
    columns = table.columns if table.is_mixed or wish == "boosted" else None
    if table.text and wish in ("auto", "linear"):
        found = candidate_estimators("text", table.X, None, classifies, args.seed)
        for words in found.values():
            # Rarer terms would reveal single documents; other tokens differ between tokenisers.
            words.set_params(**{f"tfidfvectorizer__{k}": v for k, v in TEXT_WORDS.items()})
        if wish == "linear":
            return found["linear"], None
        tried: dict[str, Any] = {"candidates": found, "random_state": args.seed}
        return choose_estimator(table.X, table.y, classification=classifies, **tried)
    if table.text and wish in ("boosted", "forest"):
        raise UsageError(f"--estimator {wish} takes columns, not texts; leave --text out.")
    if wish == "auto":  # chosen as `fit` does in Python
        given: dict[str, Any] = {"columns": columns, "random_state": args.seed}
        with few_threads(table.X):
            return choose_estimator(table.X, table.y, classification=classifies, **given)
    if wish == "linear" and columns is not None:
        found = candidate_estimators("mixed", table.X, columns, classifies, args.seed)
        if "linear" not in found:
            raise InputError(args.rows, "has only empty columns; leave --estimator out")
        return found["linear"], None
    if wish in ("linear", "boosted"):
        return default_estimator(table.X, classifies, args.seed, columns=columns), None
    return _named_estimator(args, table), None


def _named_estimator(args: Namespace, table: TrainingTable) -> Any:
    """Return a forest, or the named class or object."""
    wish = args.estimator
    if wish == "forest":
        classifies = args.task == "classification"
        kind = RandomForestClassifier if classifies else RandomForestRegressor
        return kind(100, min_samples_leaf=5, random_state=args.seed)
    module, _, name = wish.partition(":")
    try:
        kind = getattr(import_module(module), name)
        # Only classes are called: os:system is no estimator.
        estimator = kind() if isinstance(kind, type) else kind
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ValueError(
            f"--estimator {wish} cannot be found: {error}; give auto, linear, boosted, forest or "
            "module:Class, such as sklearn.linear_model:Lasso."
        ) from error
    _check_kind(args, estimator)
    if table.first_with_gaps is not None and not get_tags(estimator).input_tags.allow_nan:
        _refuse_mixed(args, table, f"--estimator {wish}", "--estimator boosted")
    return estimator


def few_threads(X: Any) -> Any:
    """Train trees on one thread if there are few rows: threads would mostly wait."""
    return threadpool_limits(1 if len(X) < FEW_ROWS else None, user_api="openmp")


def _refuse_mixed(args: Namespace, table: TrainingTable, wish: str, remedy: str) -> None:
    """Refuse categories and missing values for an option that needs complete numbers."""
    gaps = None if table.first_of_words else table.first_with_gaps
    for name, what in ((table.first_of_words, "holds categories"), (gaps, "has missing values")):
        if name is not None:
            raise InputError(
                f"{args.rows}: column {quoted(name)}",
                f"{what}, but {wish} needs complete numbers; choose {remedy}, or leave the "
                "column out with --drop",
            )


def _check_kind(args: Namespace, estimator: Any) -> None:
    """Refuse an estimator for another task, or a classifier without probabilities."""
    fits, kind = KINDS[args.task]
    if not is_estimator(estimator) or not fits(estimator):
        raise ValueError(
            f"--estimator {args.estimator} is not a scikit-learn {kind}, which --task "
            f"{args.task} needs; choose one, or another --task."
        )
    if args.task == "classification" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"--estimator {args.estimator} has no predict_proba, which classification needs; use "
            f"{THAT_WORK}, or pass an ONNX file with --onnx."
        )


def make_density(
    args: Namespace, table: TrainingTable, reference: Reference | WordReference | None
) -> Any:
    """Return the density for --density, not yet fitted; it must accept the table's columns."""
    wish = args.density
    if isinstance(reference, WordReference) != table.text:
        if reference is None:
            raise InputError(
                args.rows,
                "needs a vocabulary on which all sites agree; give --reference FILE, made "
                "with anymix reference summary --text and join",
            )
        what, remedy = "describes columns", "make one with anymix reference summary --text and join"
        if not table.text:
            what, remedy = "is a vocabulary", "name the text column with --text"
        raise InputError(args.reference, f"{what}; {remedy}")
    if isinstance(reference, WordReference):
        if wish != "auto":
            raise UsageError(f"--density {wish} takes columns, not texts; leave --text out.")
        return TextDensity(vocabulary=reference.words)
    if wish == "auto":
        agreed = table.is_mixed or reference is not None
        wish = "contrastive" if agreed else likelier_density(table.X, args.seed)
    if wish == "contrastive":
        if reference is None:
            why, first = "", table.first_of_words or table.first_with_gaps
            if first is not None:
                held = "has categories" if table.first_of_words else "has missing values"
                why = f"{held} (column {quoted(first)}), so it "
            drop = ", or leave the column out with --drop" if why else ""
            raise InputError(
                args.rows,
                f"{why}needs --reference FILE, the common reference of all sources; "
                f"make one with anymix reference, from a summary of each site{drop}",
            )
        return ContrastiveDensity(reference=reference, random_state=args.seed)
    _refuse_mixed(args, table, f"--density {wish}", "--density contrastive, with --reference")
    if reference is not None:
        raise UsageError(f"--reference is only for --density contrastive, not for {wish}.")
    return DENSITIES[wish](random_state=args.seed)


def likelier_density(X: FloatArray, seed: int) -> str:
    """Name the density, in its packed form, with the higher held-out likelihood.

    A density that cannot be fitted on the rows is not chosen.
    """
    found = dict.fromkeys(DENSITIES, -np.inf)
    if len(X) < FOLDS:  # refused later
        return "kernels"
    for name, kind in DENSITIES.items():
        if name == "mixture" and X.shape[1] > MOST_MIXED:
            continue
        logs = []
        with warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore", ScaleWarning)
            for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(X):
                density = kind(random_state=seed).fit(X[train]).shareable()
                logs.append(density.score_samples(X[test]))
            found[name] = float(np.mean(np.concatenate(logs)))
    return max(found, key=lambda name: found[name])


def fit_density(args: Namespace, density: Any, table: TrainingTable) -> None:
    """Fit the density; an error about scales names columns and options."""
    with few_threads(table.X), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ScaleWarning)
        density.fit(table.X)
    for each in said:
        if not isinstance(each.message, ScaleWarning):
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)
        else:
            widest = quoted(table.names[each.message.column])
            caution(
                f"{args.rows}: column {widest} has a much larger scale than the others, so half of "
                "them hardly matter for kernels; choose --density mixture, or contrastive with "
                "--reference."
            )


def check_labels(args: Namespace, y: NDArray[Any]) -> None:
    """Refuse labels from which nothing can be learned."""
    if args.task == "regression" or args.onnx:
        return
    found = np.unique(y).tolist()
    if len(found) < 2:
        raise ValueError(
            f"{args.rows}: column {args.target!r} holds only the label {found[0]!r}, but a "
            "classifier needs two or more; add rows of another label, or pass a trained "
            "predictor with --onnx and --classes."
        )
    if len(found) > max(2, len(y) / 2):
        raise InputError(
            f"{args.rows}: column {quoted(args.target)}",
            f"holds {len(found)} different labels in {len(y)} rows, and the folder would list each "
            "of them; for numbers choose --task regression, or name a column of labels with "
            "--target",
        )


def classes_of(args: Namespace, y: NDArray[Any]) -> list[Any] | None:
    """Return the labels for the outputs of --onnx; None for an estimator that knows them."""
    if args.task == "regression" or not args.onnx:
        if args.classes:
            raise ValueError(
                "--classes names the outputs of --onnx in a classification; an estimator that is "
                "trained here finds its labels in the rows, so leave --classes out."
            )
        return None
    if not args.classes:
        raise ValueError("--onnx with classification needs --classes, in the order of the outputs.")
    if len(set(args.classes)) < max(2, len(args.classes)):
        named = ", ".join(args.classes)
        raise UsageError(f"--classes must name two or more different labels; got {named}.")
    if y.dtype.kind != "i":
        if not set(args.classes) & set(y.tolist()):
            raise InputError(
                f"{args.rows}: column {quoted(args.target)}",
                f"holds none of the labels in --classes ({', '.join(args.classes)}), but, for "
                "example, "
                f"{quoted(y[0].item())}; write both alike",
            )
        return list(args.classes)
    try:
        return [int(label) for label in args.classes]
    except ValueError as error:
        raise ValueError(
            f"column {args.target!r} of {args.rows} holds integers, but --classes are "
            f"{', '.join(args.classes)}; both must use the same labels."
        ) from error


def read_held_out(
    args: Namespace, table: TrainingTable, labels: NDArray[Any] | None
) -> tuple[Any, Any] | None:
    """Return the rows of --held-out, if any; their labels must be known."""
    if args.held_out is None:
        return None
    request = replace(training_request(args, args.task), path=args.held_out)
    X, y = request.rows(table.names, table.coding)
    if SeenRows.of(content_of(table.X)).have_seen(content_of(X)):
        raise InputError(
            args.held_out,
            f"holds rows of {args.rows}, on which a model loses less than on new rows; give "
            "--held-out rows that were not used for training",
        )
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


def home_table(
    estimator: Any,
    density: Any,
    table: TrainingTable,
    others: Sequence[ReceivedSource] = (),
    seed: int = 0,
    share: float = 1.0,
) -> HomeTable:
    """Evaluate all training rows with fold models trained like the packed model.

    With `others` the fold models are of the second round; for labels, `share` scales the penalty.
    """
    y = np.asarray(table.y)
    labels = None if y.dtype.kind == "f" else np.unique(y).tolist()
    fold = home_folds(table.X, y, labels is not None, FOLDS, seed)
    models = [one.source for one in others]
    numbers = models if labels is None else []
    outer = np.stack([one.predict(table.X) for one in numbers]) if numbers else None
    logs = mean_logarithm(models, table.filled, labels) if models and labels is not None else None

    def train(rest: IntArray) -> tuple[Any, Any]:
        part = replace(table, X=_safe_indexing(table.X, rest), y=y[rest])
        with few_threads(part.X), warnings.catch_warnings():
            warnings.simplefilter("ignore", ScaleWarning)
            fitted = clone(density).fit(part.X).shareable()
            if logs is not None:
                known = part.filled, part.y, logs[rest]
                return fit_labels(estimator, models, known, share), fitted
            if outer is None:
                return clone(estimator).fit(part.filled, part.y), fitted
            pool = pool_of_others(outer[:, rest], part.y)
            left = part.y - pool[0] @ outer[:, rest] - pool[1]
            model = clone(estimator).fit(part.filled, left)
        return SecondRound(models, *pool, model), fitted

    return HomeTable.of(train, table.X, y, fold, labels)
