"""A second round of training at a site: its own learner on what the pool of the others leaves.

    h'_k(x) = Σ_{j≠k} a_j h_j(x) + b + g_k(x)

a and b are a ridge regression of the site's targets on what the others' models say, and g_k is the
site's own learner, trained on what is left.  The others have never seen rows of k: nothing leaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from anymix._arrays import FloatArray

# Strengths of the ridge that are tried, each row left out once.
STRENGTHS = 10.0 ** np.arange(-2.0, 5.0)

# What models have said of the rows at hand, by the id of the model.
Heard = dict[int, FloatArray]


def ask(model: Any, X: Any, heard: Heard | None = None) -> FloatArray:
    """Ask a model about the rows, unless it was asked before."""
    if heard is None:
        return np.asarray(model.predict(X), dtype=float)
    if id(model) not in heard:
        heard[id(model)] = np.asarray(model.predict(X), dtype=float)
    return heard[id(model)]


class SecondRound:
    """The predictor of a site after its second round.

    Parameters
    ----------
    others : models of the other sources, of their first round
    weights, offset : a (p − 1,) and b
    rest : model
        g_k.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> one, two = (DummyRegressor(strategy="constant", constant=c).fit([[0]], [0]) for c in (1, 2))
    >>> SecondRound([one], np.array([3.0]), 0.5, two).predict([[0], [0]])
    array([5.5, 5.5])
    """

    def __init__(self, others: Sequence[Any], weights: FloatArray, offset: float, rest: Any):
        self.others, self.weights, self.offset, self.rest = tuple(others), weights, offset, rest
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(rest, name):
                setattr(self, name, getattr(rest, name))

    def predict(self, X: Any, heard: Heard | None = None) -> FloatArray:
        """h'_k(x), (n,); `heard` holds what models have said of these rows before."""
        said = np.stack([ask(other, X, heard) for other in self.others])
        return np.asarray(self.weights @ said + self.offset + ask(self.rest, X, heard))


def pool_of_others(
    said: FloatArray, y: FloatArray, weight: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """a and b of the ridge regression of y (n,) on what the others say (p − 1, n).

    >>> said = np.random.default_rng(0).normal(size=(2, 300))
    >>> a, b = pool_of_others(said, said.sum(axis=0) + 1)
    >>> a.round(2), round(b, 2)
    (array([1., 1.]), 1.0)
    """
    found = RidgeCV(STRENGTHS).fit(said.T, y, sample_weight=weight)
    return np.asarray(found.coef_), float(found.intercept_)
