"""A source: a trained predictor and a density of its training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV

from anymix._arrays import FloatArray, n_rows
from anymix.densities import ask
from anymix.exceptions import PredictorError
from anymix.sources.torch_predictor import torch_predictor
from anymix.tables import Columns, as_rows

# What a source gives to a class that it never saw, and the least it may give to any class.
# The cross-entropy then never exceeds 13.8.
PROBABILITY_FLOOR = 1e-6
# Of the logarithm of a density: sums and squares up to it are finite numbers.
LARGEST_LOG = 1e100


@dataclass(frozen=True)
class Source:
    """One organisation's contribution.

    Parameters
    ----------
    name : str
    predictor : object with `predict` or `predict_proba`, or a callable
        Trained elsewhere and never changed here.  A classifier gives (n, c) probabilities, in the
        order of `classes`; a regressor gives (n,) numbers.
    density : object with `score_samples`, a callable, or None
        log D_k(x) in nats; None where responsibilities come from a `DomainClassifier`.
    own_loss : float, optional
        Loss of the predictor on held-out rows at home, as its owner states it: the cross-entropy of
        labels, the squared error of numbers.  Rows on which it loses far less are warned of, as
        they look like training rows.
    classes : sequence, optional
        Labels of the columns; taken from `predictor.classes_` where it has them.
    feature_names : sequence of str, optional
        Names and order of the columns the predictor expects; taken from
        `predictor.feature_names_in_` where it has them.
    n_rows : int, optional
        How many rows it was trained on.
    columns : Columns, optional
        How a mixed table becomes the numbers that predictor and density take; a
        DataFrame is then encoded by it, and an array is taken as encoded.
    own_rows : int, optional
        How many rows own_loss was measured on.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import Source
    >>> source = Source("north", lambda X: X[:, 0], lambda X: -0.5 * (X**2).sum(axis=1))
    >>> source.log_density(np.array([[1.0], [2.0]]))
    array([-0.5, -2. ])
    """

    name: str
    predictor: Any
    density: Any = None
    own_loss: float | None = None
    classes: Sequence[Any] | None = None
    feature_names: Sequence[str] | None = None
    n_rows: int | None = None
    columns: Columns | None = None
    own_rows: int | None = None

    @classmethod
    def from_torch(
        cls,
        module: Any,
        *,
        name: str,
        output: str,
        classes: Sequence[Any] | None = None,
        shape: tuple[int, ...] | None = None,
        **more: Any,
    ) -> Self:
        """Make a source from a trained PyTorch network.

        It is evaluated in evaluation mode, without gradients, in batches, on its device; its
        training mode is restored.

        Parameters
        ----------
        module : torch.nn.Module
            Takes a tensor of rows; its weights may be float32 or float64.
        name : str
        output : "logits", "probabilities" or "number"
            What the module gives.  Of logits the softmax is taken; of one column and two classes
            the sigmoid, which is the probability of the second class.
        classes : sequence, optional
            Labels of the columns, for all but "number".
        shape : tuple of int, optional
            Of one row, as the module takes it, such as (1, 28, 28) for rows of 784 numbers.
        **more
            `density`, `own_loss`, `feature_names` and the like, as `Source` takes them.

        Examples
        --------
        >>> import numpy as np, torch
        >>> from anymix import Source
        >>> net = torch.nn.Linear(2, 3)
        >>> source = Source.from_torch(net, name="north", output="logits", classes=["a", "b", "c"])
        >>> source.predict_proba(np.zeros((4, 2)), np.array(["a", "b", "c"])).shape
        (4, 3)
        """
        predictor = torch_predictor(module, output, classes, shape)
        return cls(name, predictor, classes=classes, **more)

    def __sklearn_clone__(self) -> Self:
        # A source is finished work: an estimator that is cloned keeps its sources.
        return self

    @property
    def gives_probabilities(self) -> bool:
        """Whether this is a classifier: it has `predict_proba`, or a callable states classes."""
        return self.classes is not None or hasattr(self.predictor, "predict_proba")

    @property
    def labels(self) -> NDArray[Any]:
        """Class labels of the predictor's columns."""
        classes = (
            getattr(self.predictor, "classes_", None) if self.classes is None else self.classes
        )
        if classes is None:
            raise ValueError(
                f"source {self.name!r} does not say which classes its columns stand for; pass "
                "classes=[...] to Source."
            )
        return np.asarray(classes)

    def log_density(self, X: Any) -> FloatArray:
        """log D_k(x), shape (n,)."""
        if self.density is None:
            raise ValueError(
                f"source {self.name!r} has no density; pass one to Source, or learn with "
                "density=DomainClassifier()."
            )
        X = self._encoded(X, check=False)
        score = getattr(self.density, "score_samples", self.density)
        found = self._checked(score(X), (n_rows(X),), "its density", allow=-np.inf)
        size = np.abs(np.where(np.isneginf(found), 0.0, found))
        if size.size and size.max() > LARGEST_LOG:
            row = int(size.argmax())
            raise ValueError(
                f"source {self.name!r}: its density returned the logarithm {found[row]:.3g} (row "
                f"{row}), where {LARGEST_LOG:g} is the most; check that row, or repair the source."
            )
        return found

    def predict(self, X: Any, heard: Heard | None = None) -> FloatArray:
        """Numbers of a regressor, shape (n,); `heard` has known predictions for these rows."""
        X = self._encoded(X)
        heard = {} if heard is None else heard
        if isinstance(self.predictor, SecondRound):
            out = self.predictor.predict(X, heard)
        elif id(self.predictor) in heard:
            out = heard[id(self.predictor)]
        else:
            out = np.asarray(self._ask("predict", X))
        if out.shape == (n_rows(X), 1):
            out = out[:, 0]
        out = heard[id(self.predictor)] = self._checked(out, (n_rows(X),), "its predictor")
        return out

    def predict_proba(self, X: Any, classes: NDArray[Any]) -> FloatArray:
        """Probabilities for the given classes, shape (n, c), each row of sum 1.

        Columns are matched by label.  Classes that the source does not know, and probabilities
        below 1e-6, get the probability 1e-6; the rest is rescaled.
        """
        X = self._encoded(X)
        labels = self.labels
        proba = self._ask("predict_proba", X)
        proba = self._checked(proba, (n_rows(X), labels.size), "its predictor")
        if proba.min(initial=0.0) < -1e-6 or np.abs(proba.sum(axis=1) - 1).max(initial=0.0) > 1e-3:
            raise ValueError(
                f"source {self.name!r} gives probabilities that are negative or do not sum to 1; "
                "its predictor must return class probabilities, not scores."
            )
        aligned = np.zeros((proba.shape[0], classes.size))
        position = {label: c for c, label in enumerate(classes.tolist())}
        for column, label in enumerate(labels.tolist()):
            if label in position:
                aligned[:, position[label]] = proba[:, column]
        aligned = np.maximum(aligned, PROBABILITY_FLOOR)
        return np.asarray(aligned / aligned.sum(axis=1, keepdims=True))

    def _encoded(self, X: Any, check: bool = True) -> Any:
        """Encode a frame; `check` that its columns are those of the predictor, in their order."""
        X = as_rows(X)
        if not hasattr(X, "columns"):
            return X
        X = X if self.columns is None else self.columns.encode(X)
        names = self.feature_names
        if names is None:
            names = getattr(self.predictor, "feature_names_in_", None)
        if not check or names is None or not hasattr(X, "columns"):
            return X
        given, due = [str(c) for c in X.columns], [str(c) for c in names]
        if given != due:
            how = "them in another order" if sorted(given) == sorted(due) else "others"
            raise ValueError(
                f"source {self.name!r} expects the features {due}; X has {how}: {given}. "
                f"Select them with X[{due}]."
            )
        return X

    def _ask(self, name: str, X: Any) -> Any:
        """Call the predictor's method of this name, or the predictor itself."""
        if not callable(getattr(self.predictor, name, self.predictor)):
            raise TypeError(
                f"source {self.name!r}: {type(self.predictor).__name__} has no {name} and is not "
                "a function; choose another predictor, or wrap it (CalibratedClassifierCV gives "
                "probabilities to any classifier)."
            )
        return ask(self.predictor, name, X)

    def _checked(
        self, values: Any, shape: tuple[int, ...], part: str, allow: float = 0.0
    ) -> FloatArray:
        out = np.asarray(values, dtype=float)
        if out.shape != shape:
            raise ValueError(
                f"source {self.name!r}: {part} returned shape {out.shape}; {shape} is expected."
            )
        bad = ~np.isfinite(out) & (out != allow)
        if bad.any():
            row, cause = int(np.argwhere(bad)[0][0]), f"returned {out[bad][0]}"
            if part == "its predictor":
                raise PredictorError(f"source {self.name!r}: {part}", cause, row)
            raise ValueError(
                f"source {self.name!r}: {part} {cause} (row {row}); check that row, or repair the "
                "source."
            )
        return out


# Strengths of the ridge that are tried, each row left out once.
STRENGTHS = 10.0 ** np.arange(-2.0, 5.0)

# What models have said of the rows at hand, by the id of the model.
Heard = dict[int, FloatArray]


class SecondRound:
    """The predictor of a site after its second round.

    Parameters
    ----------
    others : models of the other sources, of their first round
    weights, offset : a (p − 1,) and b
    rest : model
        g_k.
    bounds : (float, float)
        Least and greatest prediction.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> one, two = (DummyRegressor(strategy="constant", constant=c).fit([[0]], [0]) for c in (1, 2))
    >>> SecondRound([one], np.array([3.0]), 0.5, two).predict([[0], [0]])
    array([5.5, 5.5])
    """

    def __init__(
        self,
        others: Sequence[Any],
        weights: FloatArray,
        offset: float,
        rest: Any,
        bounds: tuple[float, float] = (-np.inf, np.inf),
    ):
        self.bounds = bounds
        self.others, self.weights, self.offset, self.rest = tuple(others), weights, offset, rest
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(rest, name):
                setattr(self, name, getattr(rest, name))

    def predict(self, X: Any, heard: Heard | None = None) -> FloatArray:
        """h'_k(x), (n,); `heard` holds known predictions of models for these rows."""
        heard = {} if heard is None else heard
        for model in (*self.others, self.rest):
            if id(model) not in heard:
                heard[id(model)] = np.asarray(ask(model, "predict", X), dtype=float)
        said = np.stack([heard[id(other)] for other in self.others])
        return np.clip(self.weights @ said + self.offset + heard[id(self.rest)], *self.bounds)


def pool_of_others(
    said: FloatArray, y: FloatArray, weight: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """a and b of the ridge regression of y (n,) on the others' predictions (p − 1, n).

    >>> said = np.random.default_rng(0).normal(size=(2, 300))
    >>> a, b = pool_of_others(said, said.sum(axis=0) + 1)
    >>> a.round(2), round(b, 2)
    (array([1., 1.]), 1.0)
    """
    found = RidgeCV(STRENGTHS).fit(said.T, y, sample_weight=weight)
    return np.asarray(found.coef_), float(found.intercept_)
