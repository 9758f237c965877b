"""Cross-validation over domains: leave one out, and score by the worst.

Both take `sample_domain`, as scikit-learn's metadata routing passes it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import _safe_indexing

from anymix._arrays import n_rows
from anymix.estimators import check_domains
from anymix.exceptions import InputError


class LeaveOneDomainOut(BaseCrossValidator):
    """Hold out the rows of each domain in turn: how good is a model on a domain without a source?

    With metadata routing the domains come as `sample_domain`; without it, as `groups`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from anymix import DistributionWeightedClassifier
    >>> from anymix.model_selection import LeaveOneDomainOut
    >>> rng = np.random.default_rng(0)
    >>> X, d = rng.normal(size=(150, 2)), np.repeat(["a", "b", "c"], 50)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DistributionWeightedClassifier(LogisticRegression(), random_state=0)
    >>> scores = cross_val_score(
    ...     model, X, y, cv=LeaveOneDomainOut(), groups=d, params={"sample_domain": d}
    ... )
    >>> scores.shape, bool(scores.min() > 0.8)
    ((3,), True)
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"sample_domain": True, "groups": True}

    def split(
        self, X: Any, y: Any = None, groups: Any = None, sample_domain: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows to train on and those to test on, for each domain."""
        names, domain = self._domains(X, groups, sample_domain)
        for k in range(len(names)):
            yield np.flatnonzero(domain != k), np.flatnonzero(domain == k)

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, sample_domain: Any = None
    ) -> int:
        """Return the number of domains."""
        return len(self._domains(X, groups, sample_domain)[0])

    def _domains(
        self, X: Any, groups: Any, sample_domain: Any
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        given = groups if sample_domain is None else sample_domain
        if given is None:
            raise InputError(
                "LeaveOneDomainOut",
                "needs the domain of each row: pass groups=d, or params={'sample_domain': d} with "
                "metadata routing",
            )
        n = len(np.asarray(given)) if X is None else n_rows(X)
        names, domain = check_domains(given, n, None)
        if len(names) < 2:
            raise InputError("LeaveOneDomainOut", "needs rows of two domains or more")
        return names, domain


class WorstDomainScorer(BaseEstimator):
    """Score a model by the domain where it is worst; see `worst_domain_scorer`."""

    __metadata_request__score: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def __init__(self, scoring: Any = "accuracy"):
        self.scoring = scoring

    def score(self, estimator: Any, X: Any, y: Any, sample_domain: Any = None) -> float:
        """Return the smallest score of a domain; larger is better."""
        if sample_domain is None:
            raise InputError(
                "worst_domain_scorer",
                "needs the domain of each row; call sklearn.set_config(enable_metadata_routing="
                "True) and pass params={'sample_domain': d}",
            )
        scorer = get_scorer(self.scoring)
        names, domain = check_domains(sample_domain, n_rows(X), None)
        target = np.asarray(y)
        rows = [np.flatnonzero(domain == k) for k in range(len(names))]
        return float(min(scorer(estimator, _safe_indexing(X, own), target[own]) for own in rows))

    def __call__(self, estimator: Any, X: Any, y: Any, sample_domain: Any = None) -> float:
        """Score as scikit-learn calls a scorer."""
        return self.score(estimator, X, y, sample_domain)


def worst_domain_scorer(scoring: Any = "accuracy") -> WorstDomainScorer:
    """Return a scorer: the score of the domain where a model is worst.

    Parameters
    ----------
    scoring : str or scorer
        As scikit-learn takes it, such as "neg_log_loss" or "r2".  A score must be defined on the
        test rows of each domain: an area under a curve needs rows of both labels.

    Examples
    --------
    >>> from sklearn import config_context
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import StratifiedKFold, cross_val_score
    >>> from anymix import DistributionWeightedClassifier
    >>> from anymix.model_selection import worst_domain_scorer
    >>> rng = np.random.default_rng(0)
    >>> X, d = rng.normal(size=(150, 2)), np.repeat(["a", "b", "c"], 50)
    >>> y = np.where(d == "c", rng.integers(0, 2, 150), X[:, 0] > 0).astype(int)
    >>> model = DistributionWeightedClassifier(LogisticRegression(), random_state=0)
    >>> folds = StratifiedKFold(2, shuffle=True, random_state=0)
    >>> with config_context(enable_metadata_routing=True):
    ...     scores = cross_val_score(
    ...         model, X, y, cv=folds, scoring=worst_domain_scorer("accuracy"),
    ...         params={"sample_domain": d},
    ...     )
    >>> bool(scores.max() < 0.8)
    True
    """
    return WorstDomainScorer(scoring)
