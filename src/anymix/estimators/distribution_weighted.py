"""The distribution-weighted combination as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from anymix._arrays import FloatArray
from anymix.core import Loss
from anymix.estimators import _conformal
from anymix.estimators._ensemble import store_parameters
from anymix.estimators._weighting import DistributionWeighting
from anymix.sources import Source


class DistributionWeightedRegressor(RegressorMixin, DistributionWeighting):
    """Regressor that combines several sources and is good on any mixture of them.

    Parameters
    ----------
    estimator : "auto", regressor, or list of regressors
        Cloned and trained for each domain.  Of a list, the one whose models lose least on held-out
        rows of their own domains is chosen; "auto", or None, compares linear models and boosted
        trees that suit the kind of rows.  See `learner_choice_`.
    density : "auto", density, or `DomainClassifier`
        "auto" compares densities and classifiers of domains that suit the kind of rows, on held-out
        rows; see `density_choice_`.  What is given is cloned and trained for each domain; a
        classifier of domains once for all.  For given sources
        that have none it is learned from the rows of `fit`.  Densities are compared, so a step
        before one (a vocabulary, a scaler) is fitted beforehand and put in a `FrozenEstimator`.
    sources : list of Source, optional
        Trained elsewhere; see `from_sources`.
    loss : str or Loss, default "squared"
    objective : "regret", "robust" or "gamma"
        What z is to achieve; see `anymix.core.solve`.
    shrinkage : "auto" or float
        How strongly z is held near uniform.
    eta : float
        η, the part of the mean density in the weights.
    calibrate : bool
        Fit temperatures and offsets of the densities on held-out rows, and sharpen what comes out
        where that serves the objective.
    cv : int or splitter
        Folds: no source is evaluated on rows that it was trained on.  A splitter of scikit-learn,
        such as GroupKFold, must put each row into one test set.
    confidence : float
        Of the certificate.
    skip_below : float
        Sources whose weights at a row sum to less are not evaluated there: probabilities move by
        less than this, numbers by less than this times the spread of the sources' answers.  As
        every source keeps a weight of about η/p, only a value above 2η saves much.  Without effect
        where sources consult, which takes all predictions.
    random_state : int or None
        For the folds.
    set_aside : list of str, "worst" or None
        Sources whose rows choose neither z nor the calibration; their predictors and densities are
        combined as before, and the certificate covers their rows all the same.  "worst" sets one
        aside if its rows harm another's loss as `influence_` says.  None sets those aside whose
        rows are of one class, if two others are left.
    mixtures : dict or None
        What is known of the shares of future rows, as {source: (least, most)}: z and the
        certificate are then for these mixtures alone, which can be better than for all.
    consult : bool
        Let each source consult the other models: on its own held-out rows it learns to pool the
        predictions of all, and held-out losses choose between its own model and such pools.
    generalist : "auto", None, estimator or Source
        One more predictor, learned from the rows of all sources, that every source may consult.  It
        has no density and no z.  "auto" trains the learner that is best on all rows; with
        share_rows=False it is a linear model of columns that all sites can make, learned by sums
        over sites.  For given sources "auto" trains nothing.  An estimator is cloned and trained, a
        `Source` is used as it is.
    share_rows : bool
        False uses only what sites that keep their rows can compute: each density is learned from
        the rows of one source, classifiers of sources and the generalist by sums over sources.
    refit : bool
        Deploy models that are trained on all rows; the certificate is then of the models of the
        folds, which were judged.  False deploys those, so that what is certified is what is used:
        everything is learned without each of `cv` folds, and the members' average predicts.
    n_jobs : int or None
        How many models and densities are trained at a time, −1 on all cores; what is learned is
        the same.  In threads; with `joblib.parallel_config("loky")` in processes.
    verbose : bool or int
        Print a line for each step of `fit`, with its time.

    Attributes
    ----------
    z_ : array (p,)
    certificate_ : Certificate
        Upper bounds on the regret and the loss on any mixture.
    result_ : FitResult
        Everything that was learned: `combination` predicts, `evidence` says how well.  The
        attributes below are read from it.
    combination_ : CrossFittedCombination
        z, η, the calibration of the densities and the consulting: all that predictions are made
        with.  Its parts were each learned without some of the held-out rows.
    held_out_ : HeldOut
        What the combination says at the rows it was learned from, each row by the part that was
        learned without it.
    advice_ : Advice or None
        What consulting has brought to the sources.
    generalist_ : Source or None
        The predictor of all rows that sources may consult.
    members_ : list
        With refit=False: the model that was learned without each fold.
    learner_choice_ : LearnerChoice or None
        Which learner the sources were trained by, and the held-out losses of all that were
        compared; None where nothing was compared.
    estimator_ : estimator
        The learner that was chosen or given, not trained.
    solution_, cross_loss_, comparison_, tables_, sources_
        The solver's answer; each source's model on each domain; this model and its rivals on
        held-out rows; the held-out tables, densities as they came; what was combined.
    influence_, set_aside_
        Which site or source influences the losses of others, computed when first read; the names of
        the sources whose rows were set aside.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import DistributionWeightedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (200, 1)), rng.normal(2, 1, (200, 1))]
    >>> y, d = np.abs(X[:, 0]), np.repeat(["north", "south"], 200)
    >>> model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=d)
    >>> bool(np.abs(model.predict([[-2.0], [2.0]]) - 2).max() < 0.2)
    True

    Paper: Eq. 1.
    """

    _classification = False

    def __init__(
        self,
        estimator: Any = "auto",
        density: Any = "auto",
        *,
        sources: Sequence[Source] | None = None,
        loss: str | Loss = "squared",
        objective: str = "regret",
        shrinkage: float | str = "auto",
        eta: float = 1e-3,
        calibrate: bool = True,
        cv: int = 5,
        confidence: float = 0.95,
        skip_below: float = 1e-6,
        random_state: Any = None,
        set_aside: str | Sequence[str] | None = None,
        mixtures: Mapping[str, tuple[float, float]] | None = None,
        consult: bool = True,
        generalist: Any = "auto",
        share_rows: bool = True,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def predict_interval(
        self, X: Any, alpha: float = 0.1, *, calibration: Any = None
    ) -> FloatArray:
        """Lower and upper ends that miss at most α of each source, so of every mixture: (n, 2).

        y is inside where max_k p_k(x, y) > α, p_k being the conformal p-value of its score among
        the held-out rows of source k; see docs/sets.md.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        alpha : float
            The share of rows that may be missed.
        calibration : (X, y, sample_domain[, groups]) or Tables, optional
            New rows, which make the promise exact.  None takes the held-out rows of `fit`, each
            scored by the part of the model that never saw it: `coverage` says what that proves.  Of
            each group one row counts, drawn by chance: the promise is for a row of a new group.
        """
        return _conformal.predict_interval(self, X, alpha, calibration)


class DistributionWeightedClassifier(ClassifierMixin, DistributionWeighting):
    """Classifier that combines several sources and is good on any mixture of them.

    Parameters are those of `DistributionWeightedRegressor`, with the default loss "cross_entropy"
    (or "brier"), and

    Parameters
    ----------
    rule : "marginal" or "normalised"
        Weigh sources by D_k(x), the same for all classes; or by D_k(x) h_k(x, y), class by class,
        and normalise (Thm 3).

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import DistributionWeightedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (200, 1)), rng.normal(2, 1, (200, 1))]
    >>> y, d = np.where(np.abs(X[:, 0]) > 2, "far", "near"), np.repeat(["north", "south"], 200)
    >>> model = DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=d)
    >>> model.predict([[-4.0], [-1.0], [1.0], [4.0]])
    array(['far', 'near', 'near', 'far'], dtype='<U4')

    Paper: Eq. 2, Thm 3, App. C.
    """

    _classification = True

    def __init__(
        self,
        estimator: Any = "auto",
        density: Any = "auto",
        *,
        sources: Sequence[Source] | None = None,
        loss: str | Loss = "cross_entropy",
        rule: str = "marginal",
        objective: str = "regret",
        shrinkage: float | str = "auto",
        eta: float = 1e-3,
        calibrate: bool = True,
        cv: int = 5,
        confidence: float = 0.95,
        skip_below: float = 1e-6,
        random_state: Any = None,
        set_aside: str | Sequence[str] | None = None,
        mixtures: Mapping[str, tuple[float, float]] | None = None,
        consult: bool = True,
        generalist: Any = "auto",
        share_rows: bool = True,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        store_parameters(self, locals())

    def predict_set(
        self, X: Any, alpha: float = 0.1, *, calibration: Any = None, by_label: bool = False
    ) -> NDArray[np.bool_]:
        """Which labels to expect, missing at most α of each source, so of every mixture: (n, c).

        A label is in the set (True, in the order of `classes_`) where max_k p_k(x, y) > α, p_k
        being the conformal p-value of its score among the held-out rows of source k; see
        docs/sets.md.  The likeliest label is in every set.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        alpha : float
            The share of rows that may be missed.
        calibration : (X, y, sample_domain[, groups]) or Tables, optional
            New rows, which make the promise exact.  None takes the held-out rows of `fit`, each
            scored by the part of the model that never saw it: `coverage` says what that proves.  Of
            each group one row counts, drawn by chance: the promise is for a row of a new group.
        by_label : bool
            Miss at most α of each label of each source: p_k is then found among rows of source k
            with that label.  Where a source has fewer than 1/α − 1 of them, all its rows speak for
            the label, and nothing is promised for it alone.
        """
        return _conformal.predict_set(self, X, alpha, calibration, by_label)
