"""The file of fold predictions that a site keeps, so that all of its rows train its source.

The source is trained on all rows; row i is evaluated by a fold model, which was trained without the
fold that i is in, and so is its density.  All other sources have never seen the rows of this site.

Where they have learned from this source's model of a first round, h, they are evaluated as if they
had consulted the fold models h_-i instead:

    numbers    h_j'(x) + a (h_-i(x) − h(x))
    labels     ∝ h_j'(x) exp(A (log h_-i(x) − log h(x)))

a and A stand in the graph of h_j'.  That these, and what h_j' adds of its own, were learned at
other rows by answers of h, is left as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, IntArray, content_of
from anymix.core import TASK_LOSSES, losses_at
from anymix.exceptions import AuditError, InputError, MissingError
from anymix.exchange.manifest import PREDICTOR, OwnLoss, parse_json
from anymix.exchange.read import ReceivedSource
from anymix.exchange.tensors import dump_arrays, load_arrays
from anymix.sources import PROBABILITY_FLOOR, Source, Tables, copies
from anymix.storage import need, read_file, replacing

LIMIT, HEADER_MARKS = 2**30, 10_000
PARTS = {"home", "predictions", "log_density"}
ANSWERS, FIRST = "answers", ("first_answers", "first_predictions")
# Of a probability of one's own, before its logarithm is taken.
LEAST_LOGGED = 1e-30
GIVE = "give what anymix source pack wrote with --home"


@dataclass(frozen=True, eq=False)
class HomeTable:
    """The predictions of one source's fold models for its own training rows.

    Attributes
    ----------
    fingerprint : str
        SHA-256 of the manifest of the source folder; "" until it is packed.
    rows : str
        SHA-256 of the rows and their targets, in their order.
    classes : list or None
        Labels of the columns of `predictions`.
    predictions : array (n,) or (n, c)
    log_density : array (n,)
        As the density of the source scores rows.
    answers : array like predictions, or None
        What the packed model, which has seen the rows, predicts for them.
    first : HomeTable or None
        That of the first round, where this is of a second.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from anymix.densities import GaussianKDE
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> fold = home_folds(X, X[:, 0], classification=False)
    >>> models = lambda rest: (Ridge().fit(X[rest], X[rest, 0]), GaussianKDE(0.5).fit(X[rest]))
    >>> home = HomeTable.of(models, X, X[:, 0], fold)
    >>> home.own_loss(X[:, 0])
    OwnLoss(loss='squared', value=0.00..., n_rows=60)
    """

    fingerprint: str
    rows: str
    classes: list[Any] | None
    predictions: FloatArray
    log_density: FloatArray
    answers: FloatArray | None = None
    first: HomeTable | None = None

    @classmethod
    def of(
        cls,
        train: Callable[[IntArray], tuple[Any, Any]],
        X: Any,
        y: ArrayLike,
        fold: IntArray,
        classes: list[Any] | None = None,
    ) -> HomeTable:
        """Evaluate each row by the models trained without its fold.

        `train` takes row numbers and returns a predictor and a density in the form that is packed.
        """
        n = len(fold)
        labels = None if classes is None else np.asarray(classes)
        predictions = np.empty(n if labels is None else (n, len(labels)))
        log_density = np.empty(n)
        for t in np.unique(fold).tolist():
            held, rest = np.flatnonzero(fold == t), np.flatnonzero(fold != t)
            source, rows = Source("fold", *train(rest)), _safe_indexing(X, held)
            log_density[held] = source.log_density(rows)
            predictions[held] = (
                source.predict(rows) if labels is None else source.predict_proba(rows, labels)
            )
        return cls("", digest_of(X, y), classes, predictions, log_density)

    def own_loss(self, y: ArrayLike) -> OwnLoss:
        """Return the mean loss of the fold models."""
        y = np.asarray(y)
        loss = TASK_LOSSES["regression" if self.classes is None else "classification"]
        target = y if self.classes is None else np.searchsorted(np.asarray(self.classes), y)
        return OwnLoss(loss, float(np.mean(losses_at(self.predictions, target, loss))), len(y))

    def packed(self, received: ReceivedSource, X: Any) -> HomeTable:
        """Return the table for the packed source."""
        own = received.source
        answers = own.predict(X) if self.classes is None else own.predict_proba(X, own.labels)
        return replace(self, fingerprint=received.sha256, answers=answers)

    def after(self, earlier: HomeTable) -> HomeTable:
        """Return the table for a second round, given that of the first round for the same rows."""
        same = earlier.rows == self.rows and earlier.classes == self.classes
        return replace(self, first=earlier.first or earlier) if same else self

    def in_place_of(
        self,
        received: Sequence[ReceivedSource],
        tables: Tables,
        k: int,
        rows: tuple[Any, ArrayLike],
    ) -> Tables:
        """Return the tables of rows (X, y) with the numbers of fold models at source k."""
        own = received[k]
        where = f"the home file of {own.manifest.name!r}"
        if own.sha256 != self.fingerprint:
            raise InputError(
                where,
                "was written for this source as it was packed another time; give the file that was "
                "written with this folder",
            )
        if digest_of(*rows) != self.rows:
            raise InputError(
                where,
                "is of other rows, or of rows in another order; give the training table as it was "
                "packed, or held-out rows without a home file",
            )
        masses, predictions = tables.log_masses.copy(), tables.predictions.copy()
        masses[k] = self.log_density
        predictions[k] = self._aligned(self.predictions, tables)
        models = {one.fingerprint: one for one in (self, self.first) if one is not None}
        for j, other in enumerate(received):
            key = first_round_key(own.manifest.name, "")
            for name, part in parts_of_first_rounds(other).items() if j != k else ():
                if not name.startswith(key):
                    continue
                model = models.get(name.removeprefix(key))
                if model is None or model.answers is None:
                    raise InputError(
                        where,
                        f"does not know the model from which {other.manifest.name!r} has learned; "
                        "pack the second round with the --home file of the first, and --force",
                    )
                predictions[j] = model._with_folds(predictions[j], part, tables)
        return replace(tables, log_masses=masses, predictions=predictions)

    def _aligned(self, predictions: FloatArray, tables: Tables) -> FloatArray:
        """The same with the labels of the tables."""
        if self.classes is None:
            return predictions
        stored = Source("home", lambda _: predictions, classes=self.classes)
        return stored.predict_proba(np.zeros((len(predictions), 1)), np.asarray(tables.classes))

    def _with_folds(self, said: FloatArray, part: FloatArray, tables: Tables) -> FloatArray:
        """Predict for another source as if it had consulted the fold models."""
        assert self.answers is not None
        held_out, seen = (self._aligned(p, tables) for p in (self.predictions, self.answers))
        if self.classes is None:
            return np.asarray(said + float(part) * (held_out - seen))
        if part.shape != (said.shape[1],) * 2:
            raise InputError("a second round", "was learned with other labels; pack all anew")
        moved = np.log(said) + (np.log(held_out) - np.log(seen)) @ part
        floored = np.maximum(softmax(moved, axis=1), PROBABILITY_FLOOR)
        return np.asarray(floored / floored.sum(axis=1, keepdims=True))

    def write(self, path: str | Path) -> None:
        """Write the file."""
        head = {"schema": 1, "rows": self.rows, "classes": self.classes}
        head |= {"fingerprint": self.fingerprint}
        arrays: dict[str, Any] = {"predictions": self.predictions, "log_density": self.log_density}
        arrays |= {} if self.answers is None else {ANSWERS: self.answers}
        if self.first is not None and self.first.answers is not None:
            head["first"] = self.first.fingerprint
            arrays |= dict(zip(FIRST, (self.first.answers, self.first.predictions), strict=True))
        arrays["home"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        with replacing(path) as temporary:
            temporary.write_bytes(dump_arrays(arrays))


def first_round_key(name: str, fingerprint: str) -> str:
    """Name the coefficient of a source of the first round in the graph of a second one.

    >>> first_round_key("north", "f00")
    'first round of north f00'
    """
    return f"first round of {name} {fingerprint}"


def parts_of_first_rounds(received: ReceivedSource) -> dict[str, FloatArray]:
    """Return the coefficients of sources of the first round, by their keys; finite numbers."""
    content = received.files.get(PREDICTOR, b"")
    if first_round_key("", "").strip().encode() not in content:
        return {}
    onnx = need("onnx")
    graph = onnx.load_model_from_string(content).graph
    found = {
        one.name: np.asarray(onnx.numpy_helper.to_array(one), dtype=np.float64)
        for one in graph.initializer
        if one.name.startswith(first_round_key("", "").strip())
    }
    return {name: part for name, part in found.items() if np.isfinite(part).all()}


def home_folds(
    X: Any, y: ArrayLike, classification: bool, n_folds: int = 5, seed: int = 0
) -> IntArray:
    """Assign rows to folds, stratified by class; copies of a row are in one fold, (n,)."""
    y = np.asarray(y)
    draws = copies(X, y, np.zeros(len(y), dtype=np.intp))
    draws = np.arange(len(y)) if draws is None else draws
    _, first, draw = np.unique(draws, return_index=True, return_inverse=True)
    order = np.random.default_rng(seed).permutation(first.size)
    if classification:
        labels = np.unique(y[first], return_inverse=True)[1]
        sizes = np.bincount(labels)
        if (sizes < 2).any():
            label = np.unique(y)[int(sizes.argmin())].item()
            raise InputError(
                f"the label {label!r}",
                "stands in one row; leave such rows out, or leave out --home",
            )
        order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(first.size, dtype=np.intp)
    fold[order] = np.arange(first.size) % n_folds
    return np.asarray(fold[draw])


def digest_of(X: Any, y: ArrayLike) -> str:
    """SHA-256 of rows and targets in their order.

    >>> digest_of(np.zeros((2, 1)), [0, 1]) == digest_of(np.zeros((2, 1)), [1, 0])
    False
    """
    target = np.asarray(y)
    target = target.astype(np.float64 if target.dtype.kind in "fiub" else str)
    found = hashlib.sha256(np.ascontiguousarray(content_of(X)).tobytes())
    found.update(json.dumps(target.tolist()).encode())
    return found.hexdigest()


def read_home(path: str | Path) -> HomeTable:
    """Read what `HomeTable.write` wrote."""
    path = Path(path)
    try:
        arrays = load_arrays(read_file(path, LIMIT), str(path))
    except FileNotFoundError as error:
        raise MissingError(path, f"does not exist; {GIVE}") from error
    optional = {ANSWERS, *FIRST}
    if not PARTS <= set(arrays) <= PARTS | optional or arrays["home"].dtype != np.uint8:
        raise AuditError(path, f"is not a home file; {GIVE}")
    head = parse_json(arrays["home"].tobytes(), str(path), HEADER_MARKS)
    names, later = {"schema", "fingerprint", "rows", "classes"}, {"first"} & {*(head or ())}
    if not isinstance(head, dict) or set(head) != names | later or head["schema"] != 1:
        raise AuditError(path, f"has no sound header; {GIVE}")
    if later != ({"first"} if set(FIRST) & set(arrays) else set()):
        raise AuditError(path, f"has no sound header; {GIVE}")
    classes, log_density = head["classes"], arrays["log_density"]
    shape = log_density.shape if classes is None else (*log_density.shape, len(classes))
    tables = [arrays[name] for name in ("predictions", ANSWERS, *FIRST) if name in arrays]
    if log_density.ndim != 1 or any(one.shape != shape for one in tables):
        raise AuditError(path, "has arrays of wrong shapes")
    known = head["rows"], classes
    first = None
    if later:
        answers, predictions = (arrays[name] for name in FIRST)
        first = HomeTable(head["first"], *known, predictions, log_density, answers)
    parts = arrays["predictions"], log_density
    return HomeTable(head["fingerprint"], *known, *parts, arrays.get(ANSWERS), first)
