"""What a site keeps at home, so that all of its rows train its source: never sent to anyone.

The source is trained on all rows; row i is evaluated by a fold model, which was trained without the
fold that i is in, and so is its density.  All other sources have never seen the rows of this site.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, IntArray, content_of
from anymix.core import TASK_LOSSES, losses_at
from anymix.exceptions import AuditError, InputError, MissingError
from anymix.exchange.manifest import OwnLoss, parse_json
from anymix.exchange.read import ReceivedSource
from anymix.exchange.tensors import dump_arrays, load_arrays
from anymix.sources import Source, Tables, copies
from anymix.storage import read_file, replacing

LIMIT, HEADER_MARKS = 2**30, 10_000
PARTS = {"home", "predictions", "log_density"}
GIVE = "give what anymix source pack wrote with --home"


@dataclass(frozen=True, eq=False)
class HomeTable:
    """What fold models of one source predict for its own training rows.

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

    @classmethod
    def of(
        cls,
        train: Callable[[IntArray], tuple[Any, Any]],
        X: Any,
        y: ArrayLike,
        fold: IntArray,
        classes: list[Any] | None = None,
    ) -> HomeTable:
        """Evaluate each row by what was trained without its fold.

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

    def in_place_of(
        self, received: ReceivedSource, tables: Tables, k: int, rows: tuple[Any, ArrayLike]
    ) -> Tables:
        """Return the tables of rows (X, y) with the numbers of fold models at source k."""
        if received.sha256 != self.fingerprint:
            raise InputError(
                f"the home file of {received.manifest.name!r}",
                "was written for this source as it was packed another time; give the file that was "
                "written with this folder",
            )
        if digest_of(*rows) != self.rows:
            raise InputError(
                f"the home file of {received.manifest.name!r}",
                "is of other rows, or of rows in another order; give the training table as it was "
                "packed, or held-out rows without a home file",
            )
        masses, predictions = tables.log_masses.copy(), tables.predictions.copy()
        masses[k], predictions[k] = self.log_density, self.predictions
        if self.classes is not None:
            stored = Source("home", lambda _: self.predictions, classes=self.classes)
            predictions[k] = stored.predict_proba(rows[0], np.asarray(tables.classes))
        return replace(tables, log_masses=masses, predictions=predictions)

    def write(self, path: str | Path, fingerprint: str) -> None:
        """Write the file for a source folder of this fingerprint."""
        head = {"schema": 1, "fingerprint": fingerprint, "rows": self.rows, "classes": self.classes}
        arrays: dict[str, NDArray[Any]] = {
            "home": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
            "predictions": self.predictions,
            "log_density": self.log_density,
        }
        with replacing(path) as temporary:
            temporary.write_bytes(dump_arrays(arrays))


def home_folds(
    X: Any, y: ArrayLike, classification: bool, n_folds: int = 5, seed: int = 0
) -> IntArray:
    """Deal rows out to folds, class by class; copies of a row are in one fold, (n,)."""
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
    if set(arrays) != PARTS or arrays["home"].dtype != np.uint8:
        raise AuditError(path, f"is not a home file; {GIVE}")
    head = parse_json(arrays["home"].tobytes(), str(path), HEADER_MARKS)
    names = {"schema", "fingerprint", "rows", "classes"}
    if not isinstance(head, dict) or set(head) != names or head["schema"] != 1:
        raise AuditError(path, f"has no sound header; {GIVE}")
    classes, predictions, log_density = (
        head["classes"],
        arrays["predictions"],
        arrays["log_density"],
    )
    shape = log_density.shape if classes is None else (*log_density.shape, len(classes))
    if log_density.ndim != 1 or predictions.shape != shape:
        raise AuditError(path, "has arrays of wrong shapes")
    return HomeTable(head["fingerprint"], head["rows"], classes, predictions, log_density)
