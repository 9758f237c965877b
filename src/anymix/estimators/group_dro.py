"""Group DRO: train one model for its worst source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length

from anymix._arrays import n_rows
from anymix._parameters import Number, Rule
from anymix.estimators._jobs import step
from anymix.estimators._order import check_order
from anymix.estimators._reweighted import ReweightedEstimator
from anymix.estimators._rows import check_names_rows


class GroupDRO(ReweightedEstimator):
    """One model, trained to make the loss on its worst source small (Sagawa et al. 2020).

    The game min_h max_q Σ_g q_g L_g(h) over group weights q is played in rounds: the estimator
    is fitted with weight q_g / n_g on each row of group g, then the groups with large loss gain,

        q_g <- q_g exp(step_size L_g / max_j L_j) / (normaliser),

    and the fit with the least max_g L_g is kept.  L_g is the training loss: log-loss where the
    estimator gives probabilities, misclassification for other classifiers, else squared error.  A
    model that fits its rows exactly has nothing to balance: regularise it.

    Parameters
    ----------
    estimator : estimator
        What is fitted; its `fit` takes `sample_weight`.
    n_rounds : int, default=20
        Number of fits.
    step_size : float, default=1.0
        How fast group weights move.
    verbose : bool or int, default=False
        Print a line for each round, with its time.

    Attributes
    ----------
    estimator_ : estimator
        The kept fit.
    groups_ : ndarray of shape (p,)
        Group labels, sorted.
    group_weights_, group_losses_ : ndarray of shape (p,)
        q and L of the kept fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X, y = np.ones((10, 1)), np.array([0.0] * 9 + [1.0])
    >>> plain = Ridge(alpha=0.0, fit_intercept=False).fit(X, y)
    >>> model = GroupDRO(Ridge(alpha=0.0, fit_intercept=False)).fit(X, y, sample_domain=y)
    >>> plain.coef_.round(2), model.estimator_.coef_.round(2)
    (array([0.1]), array([0.5]))
    """

    _takes: ClassVar[Mapping[str, Rule]] = {
        "n_rounds": Number(1, whole=True),
        "step_size": Number(above=0),
    }

    def __init__(
        self,
        estimator: Any,
        n_rounds: int = 20,
        step_size: float = 1.0,
        verbose: bool | int = False,
    ) -> None:
        self.estimator = estimator
        self.n_rounds = n_rounds
        self.step_size = step_size
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_domain: ArrayLike | None = None) -> Self:
        """Fit on the rows of all sources.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
            Training rows of all sources.
        y : array of shape (n,)
            Their targets.
        sample_domain : array of shape (n,), optional
            The source of each row; without it all rows are one group, which is a plain fit.
        """
        rows = self._rows(X, reset=True)
        check_names_rows(sample_domain)
        check_order(X, y=y, sample_domain=sample_domain)
        domain = np.zeros(n_rows(rows), dtype=int) if sample_domain is None else sample_domain
        check_consistent_length(rows, domain)
        self.groups_, group = np.unique(np.asarray(domain), return_inverse=True)
        self._play(rows, y, group)
        return self

    def _play(self, X: Any, y: Any, group: NDArray[np.intp]) -> None:
        """Play the rounds and keep the fit whose worst group is best off."""
        size = np.bincount(group)
        q, worst = np.full(len(size), 1.0 / len(size)), np.inf
        n_rounds = self.n_rounds if len(size) > 1 else 1
        for number in range(1, n_rounds + 1):
            # A mean row weight of 1 leaves the estimator's own regularisation as strong as it was.
            weights = (q * len(group) / size)[group] if len(size) > 1 else None
            with step(self, f"round {number} of {n_rounds}"):
                model = self._fit_weighted(X, y, weights)
                losses = np.bincount(group, weights=row_losses(model, X, y)) / size
            if losses.max() < worst:
                worst = losses.max()
                self.estimator_, self.group_weights_, self.group_losses_ = model, q, losses
            if losses.max() == 0:
                break
            q = q * np.exp(self.step_size * (losses / losses.max() - 1.0))
            q = q / q.sum()


def row_losses(model: Any, X: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Return the loss of each row: log-loss, misclassification or squared error (n,).

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> model = DummyRegressor(strategy="constant", constant=1.0).fit([[0.0]], [1.0])
    >>> row_losses(model, [[0.0], [0.0]], [1.0, 3.0])
    array([0., 4.])
    """
    y = np.asarray(y)
    losses: NDArray[Any]
    if not is_classifier(model):
        gap = np.reshape(model.predict(X), y.shape) - y.astype(np.float64)
        losses = (gap.reshape(len(y), -1) ** 2).mean(axis=1)
    elif not hasattr(model, "predict_proba"):
        losses = (model.predict(X) != y.ravel()).astype(np.float64)
    else:
        own = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y.ravel())]
        losses = -np.log(np.maximum(own, np.finfo(np.float64).tiny))
    return losses
