"""Densities relative to a public reference, learned by separating rows from its draws."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from anymix._arrays import FloatArray
from anymix._parameters import Number, check_parameters, seed_rule
from anymix.densities.boosted_trees import TREES, BoostedTrees, tree_arrays
from anymix.densities.density import (
    Arrays,
    Density,
    GraphBuilder,
    RandomState,
    Travels,
    refuse_unless,
)
from anymix.densities.public_reference import Reference
from anymix.exceptions import InputError
from anymix.storage import plain_json
from anymix.tables import Columns

MOST_OFFSET = 60.0  # log of a ratio of two numbers of rows


MOST_VALUES = 255  # of a column that boosted trees tell apart, splitting halfway between two


def on_public_grid(table: FloatArray, draws: FloatArray, words: NDArray[np.bool_]) -> FloatArray:
    """Move every number to the nearest of at most 255 drawn values of its column, (n, d).

    Trees split halfway between two of them, so that no threshold is the value of a row.  A column
    of missing values becomes one of zeros, as trees must see some value.
    """
    moved = table.copy()
    for j in np.flatnonzero(~words):
        values = np.sort(draws[~np.isnan(draws[:, j]), j])
        grid = np.unique(values)
        if len(grid) > MOST_VALUES:  # as many draws between all neighbours
            places = np.linspace(0, len(values) - 1, MOST_VALUES).astype(np.intp)
            grid = np.unique(values[places])
        edges = grid[:-1] + np.diff(grid) / 2
        nearest = grid[np.searchsorted(edges, table[:, j])] if grid.size else 0.0
        moved[:, j] = np.where(np.isnan(table[:, j]), np.nan, nearest)
    moved[:, np.isnan(moved).all(axis=0)] = 0.0
    return moved


def _trees(n: int, words: NDArray[np.bool_]) -> Any:
    """Boosted trees for n rows: small ones for few rows, so as not to learn them by heart."""
    return HistGradientBoostingClassifier(
        max_iter=50,
        max_leaf_nodes=int(np.clip(n // 12, 8, 63)),
        learning_rate=0.15,
        l2_regularization=2.0,
        min_samples_leaf=int(np.clip(n // 20, 5, 20)),
        categorical_features=words if words.any() else None,
        early_stopping=False,
        random_state=0,
    )


LEAST_PROBABILITY = 1e-7  # a classifier that is surer than this has seen too few rows to be
LARGEST_LOGIT = float(logit(1 - LEAST_PROBABILITY))
PER_DRAW = 20  # draws of U that one drawn row is chosen from
CHUNK = 200_000  # draws of U scored at a time


class ContrastiveDensity(Travels, Density):
    """The log-ratio of a source to a public reference, learned by a classifier of the two.

    A classifier of n rows against m draws of the reference U learns P(row | x), and by Bayes' rule

        log P(x) / (1 - P(x)) + log(m / n) = log D(x) / U(x).

    Sources that share U can be compared by it: in D_k / D_j the reference cancels.  Trees need no
    scaling and accept categories and missing values, so tables need no preparation.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier of scikit-learn with `predict_proba`; by default boosted trees.  It is given
        numbers: categories as codes, NaN where missing.
    reference : Reference, sampler or {"marginals", "centres", "both"}, optional
        The distribution U: a `Reference`, anything with `sample(n, random_state)`, or the kind of
        reference that is made of the rows of `fit`; None is "marginals".  Sources can be compared
        only if they share it, so give the same to all, or use `with_shared`.
    n_draws : float, default=2
        Draws of U for each row.
    least_draws : int, default=4000
        But not fewer than these.
    random_state : int, RandomState instance or None, default=None
        Draws from U.

    Attributes
    ----------
    reference_ : Reference or sampler
        The distribution U.
    columns_ : Columns
        The columns of the rows.
    model_ : classifier
        The fitted classifier; absent in what was read from arrays.
    trees_ : BoostedTrees or None
        Its trees, if it is boosted trees: then the density can be packed.
    offset_ : float
        log(m / n).

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.base import clone
    >>> rng = np.random.default_rng(0)
    >>> age = np.concatenate([rng.normal(40, 5, 500), rng.normal(60, 5, 500)])
    >>> table = pd.DataFrame({"age": age, "sex": ["f"] * 400 + ["m"] * 600})
    >>> site = np.repeat(["north", "south"], 500)
    >>> shared = ContrastiveDensity(random_state=0).with_shared(table, site)
    >>> north, south = (clone(shared).fit(table[site == name]) for name in ("north", "south"))
    >>> nearer = north.score_samples(table) > south.score_samples(table)
    >>> float(np.mean(nearer == (site == "north")).round(1))
    1.0
    """

    kind = "contrastive"

    _takes: ClassVar = {
        "n_draws": Number(above=0),
        "least_draws": Number(1, whole=True),
        "random_state": seed_rule,
    }

    def __init__(
        self,
        estimator: Any = None,
        reference: Any = None,
        *,
        n_draws: float = 2,
        least_draws: int = 4000,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.reference = reference
        self.n_draws = n_draws
        self.least_draws = least_draws
        self.random_state = random_state

    def with_shared(
        self, X: Any, sample_domain: Any = None, columns: Columns | None = None
    ) -> Self:
        """Return an unfitted copy whose reference is made of these rows, those of all sources.

        A reference that was passed is kept.  `columns` describes the columns of rows that are
        already encoded.
        """
        copy = clone(self)
        if self.reference is None or isinstance(self.reference, str):
            kind, seed = self.reference or "marginals", self.random_state
            copy.reference = Reference.of(
                X, kind, sample_domain, random_state=seed, columns=columns
            )
        return copy

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Draw from the reference and learn to separate the rows from the draws.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Rows of one source.
        y : ignored
        sample_weight : array of shape (n,), optional
            Weight of each row.
        """
        check_parameters(self)
        rng = check_random_state(self.random_state)
        made = self.reference is None or isinstance(self.reference, str)
        self.reference_ = self.with_shared(X).reference if made else self.reference
        self.columns_ = getattr(self.reference_, "columns", None) or Columns.of(X)
        rows = self._encoded(X)
        if not len(rows):
            raise InputError("the table", "has 0 rows; at least 1 row is needed")
        self.n_features_in_ = rows.shape[1]
        n_draws = max(int(np.ceil(self.n_draws * len(rows))), self.least_draws)
        draws = self.columns_.encode(self.reference_.sample(n_draws, random_state=rng))
        self.offset_ = float(np.log(n_draws / len(rows)))
        words = self.columns_.categorical
        model = _trees(len(rows), words) if self.estimator is None else clone(self.estimator)
        both = np.concatenate([rows, draws])
        _refuse_gaps(model, both)
        boosted = isinstance(model, HistGradientBoostingClassifier)
        if boosted:
            both = on_public_grid(both, draws, words)
        labels = np.repeat([1, 0], [len(rows), len(draws)])
        weights = {}
        if sample_weight is not None:
            weight_in = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
            every = np.append(weight_in * (len(rows) / weight_in.sum()), np.ones(len(draws)))
            last = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
            weights = {f"{last}sample_weight": every}
        self.model_ = model.fit(both, labels, **weights)
        self.trees_ = BoostedTrees.of(model) if boosted else None
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """log D(x)/U(x) of each row, (n_samples,)."""
        check_is_fitted(self)
        rows = self._encoded(X)
        if not len(rows):
            return np.empty(0)
        if self.trees_ is not None:
            logits = self.trees_.raw_predict(rows)[:, 0]
        else:
            _refuse_gaps(self.model_, rows)
            p = np.asarray(self.model_.predict_proba(rows)[:, 1], dtype=np.float64)
            logits = logit(np.clip(p, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
        return np.asarray(np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT) + self.offset_)

    def log_density(self, X: Any) -> FloatArray:
        """log D(x) of each row, (n_samples,): the score and log U(x)."""
        check_is_fitted(self)
        rows, U = self._encoded(X), self.reference_
        log_u = getattr(U, "log_density", None) or getattr(U, "score_samples", None)
        if log_u is None:
            raise InputError(
                f"the reference {type(U).__name__}",
                "has no log_density, without which there is only a ratio; give a Reference",
            )
        return np.asarray(self.score_samples(rows) + log_u(rows))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw encoded rows, (n_samples, d): draws of U, resampled by the ratio D(x)/U(x)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        most = CHUNK // PER_DRAW
        sizes = [most] * (n_samples // most) + [n_samples % most] * (n_samples % most > 0)
        parts = [np.empty((0, self.n_features_in_))]
        for n in sizes:
            n_draws = max(PER_DRAW * n, self.least_draws)
            draws = self.columns_.encode(self.reference_.sample(n_draws, random_state=rng))
            ratios = np.exp(self.score_samples(draws))
            parts.append(draws[rng.choice(len(draws), n, p=ratios / ratios.sum())])
        return np.concatenate(parts)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the trees, the offset (1,) and the reference as bytes of JSON."""
        check_is_fitted(self)
        trees = self._packable_trees()
        text = json.dumps(self.reference_.to_dict(), ensure_ascii=False).encode()
        return {
            **{TREES + name: array for name, array in trees.to_arrays().items()},
            "offset": np.array([self.offset_]),
            "reference": np.frombuffer(text, dtype=np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build it from untrusted arrays; a ValueError says what is invalid."""
        trees, others = tree_arrays(arrays)
        named = set(others) == {"offset", "reference"}
        refuse_unless(named, "must hold the arrays offset, reference and those of trees")
        offset, text = others["offset"], others["reference"]
        sound = offset.dtype == np.float64 and offset.shape == (1,)
        refuse_unless(sound and abs(offset[0]) < MOST_OFFSET, "has an offset that is not a number")
        refuse_unless(text.dtype == np.uint8 and text.ndim == 1, "has a reference that is not text")
        reference = Reference.from_dict(plain_json(text.tobytes()))
        d = len(reference.columns)
        refuse_unless(d == n_features, f"has {d} columns, where {n_features} are expected")
        density = cls(reference=reference)
        density.reference_, density.columns_ = reference, reference.columns
        density.trees_ = BoostedTrees.from_arrays(trees, n_features)
        refuse_unless(density.trees_.n_scores == 1, "has trees of more than two classes")
        density.offset_, density.n_features_in_ = float(offset[0]), n_features
        return density

    def reveals(self) -> str:
        """Describe what the trees and the reference reveal."""
        n = 0 if self.trees_ is None else self.trees_.n_trees
        return (
            f"{n} trees that tell rows from draws of a public reference: thresholds between values "
            "of draws, and how rows and draws share the leaves. "
            f"{self.reference_.reveals()}"
        )

    def log_density_graph(self, graph: GraphBuilder) -> str:
        """Write log D(x)/U(x) of encoded rows into an ONNX graph, (n, 1)."""
        check_is_fitted(self)
        raw = self._packable_trees().add_to(graph, graph.rows)
        ends = (graph.constant(np.array(end)) for end in (-LARGEST_LOGIT, LARGEST_LOGIT))
        return graph.add("Add", graph.add("Clip", raw, *ends), graph.constant(self.offset_))

    def _packable_trees(self) -> BoostedTrees:
        if self.trees_ is None:
            raise InputError(
                f"a ContrastiveDensity with {type(self.model_).__name__}",
                "cannot be packed; use estimator=None, boosted trees",
            )
        if not isinstance(self.reference_, Reference):
            raise InputError(
                f"a ContrastiveDensity with draws of {type(self.reference_).__name__}",
                "cannot be packed; give it a Reference",
            )
        return self.trees_

    def _encoded(self, X: Any) -> FloatArray:
        plain = hasattr(X, "columns") or hasattr(X, "toarray")
        return self.columns_.encode(X if plain else np.atleast_2d(np.asarray(X)))


def _refuse_gaps(model: Any, rows: FloatArray) -> None:
    if np.isnan(rows).any() and not get_tags(model).input_tags.allow_nan:
        raise InputError(
            "the table",
            f"has missing values, which {type(model).__name__} does not take; impute "
            "them in a pipeline, or use estimator=None, boosted trees",
        )
