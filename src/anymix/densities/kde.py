"""Gaussian kernel density estimates and the choice of their bandwidth."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from anymix._arrays import FloatArray, IntArray
from anymix._parameters import Either, Number, Words, check_parameters, seed_rule
from anymix.densities.bandwidth import (
    LEAST_SCALE,
    Scale,
    checked_scale,
    climb,
    merge_repeats,
    pilot_grid,
    scott,
    silverman,
    spread,
    spreads,
    warn_of_scales,
)
from anymix.densities.centres import (
    LEAST_WEIGHT,
    MIN_ROWS,
    Kernels,
    cluster,
    sound_kernels,
)
from anymix.densities.density import (
    Arrays,
    Density,
    GraphBuilder,
    RandomState,
    Travels,
    check_arrays,
    check_shapes,
    refuse_unless,
)
from anymix.densities.kernel_sums import held_out_log_densities

RULES = {"scott": scott, "silverman": silverman}


def _choose_bandwidth(
    kde: "GaussianKDE", rows: FloatArray, weights: FloatArray, rng: np.random.RandomState
) -> float:
    if isinstance(kde.bandwidth, Real):
        return float(checked_bandwidths(kde.bandwidth)[0])
    if kde.bandwidth not in ("cv", "loo", *RULES):
        raise ValueError(
            f"bandwidth={kde.bandwidth!r} is not known; use 'cv', 'loo', 'scott', "
            "'silverman' or a positive number."
        )
    if kde.bandwidth == "loo" and kde.centres is not None:
        raise ValueError("bandwidth='loo' needs the rows themselves; use 'cv' with centres.")
    if spread(rows, weights) == 0:
        raise ValueError(
            f"bandwidth={kde.bandwidth!r} needs rows that differ; got n_samples = {len(rows)} "
            "equal ones; pass the bandwidth as a number."
        )
    if kde.bandwidth in RULES:
        return RULES[kde.bandwidth](rows, weights)
    return _search(kde, *merge_repeats(rows, weights), rng)


def _search(
    kde: "GaussianKDE", rows: FloatArray, weights: FloatArray, rng: np.random.RandomState
) -> float:
    """Keep the bandwidths tried and their mean held-out log-densities; return the best."""
    folds: IntArray | None = None
    if kde.bandwidth == "cv":
        folds = np.empty(len(rows), dtype=np.int64)
        splits = KFold(min(kde.n_folds, len(rows)), shuffle=True, random_state=rng)
        for fold, (_, test) in enumerate(splits.split(rows)):
            folds[test] = fold

    def score(tried: FloatArray) -> FloatArray:
        if kde.centres is None or folds is None:
            logs = held_out_log_densities(rows, weights, tried, folds, for_means=True)
            return logs @ weights
        logs = np.empty((len(tried), len(rows)))
        for fold in range(folds.max() + 1):
            test = folds == fold
            kernels = cluster(rows[~test], weights[~test], kde.centres, rng)
            logs[:, test] = kernels.log_densities(rows[test], tried)
        return logs @ weights

    if kde.bandwidths is not None:
        tried = checked_bandwidths(kde.bandwidths)
        kde.bandwidths_, kde.cv_scores_ = tried, score(tried)
    elif kde.centres is not None:
        # Thirty bandwidths from the spread downwards, in steps of 2^(1/4).
        kde.bandwidths_ = spread(rows, weights) * 2.0 ** (-np.arange(30) / 4)
        kde.cv_scores_ = score(kde.bandwidths_)
    else:
        grid = pilot_grid(rows, weights, rng)
        kde.bandwidths_, kde.cv_scores_ = climb(score, grid)
    return float(kde.bandwidths_[np.argmax(kde.cv_scores_)])


def checked_bandwidths(bandwidths: ArrayLike) -> FloatArray:
    """Return bandwidths as an array, after checking that they are positive."""
    checked = np.ravel(np.asarray(bandwidths, dtype=np.float64))
    if not checked.size or not np.all((checked > 0) & (checked < np.inf)):
        raise ValueError(f"Bandwidths must be positive and finite; got {bandwidths!r}.")
    return checked


class GaussianKDE(Travels, Density):
    """Gaussian kernel density estimate.

        f(x) = Σ_j w_j (2 pi h^2)^(-d/2) exp(-|x - x_j|^2 / 2h^2),    Σ_j w_j = 1

    All features share one bandwidth h, so scale them first, or pass `scale`: `fit`
    warns where half of them have less than 1e-4 of the variance. Log-densities are right to 1e-4
    nats plus 1e-6 of their value in any dimension.

    With `centres` the estimate keeps k-means centres in place of the rows, each with its weight and
    the variance s_j^2 within its cluster, and h^2 + s_j^2 takes the place of h^2. Every centre is
    the mean of at least five distinct rows (of all rows, if there are fewer). That is no formal
    guarantee: anyone who knows all but one row of a cluster can compute the last one.

    Parameters
    ----------
    bandwidth : {"cv", "loo", "scott", "silverman"} or float, default="cv"
        "cv" takes the bandwidth with the best held-out log-likelihood over `n_folds` folds, "loo"
        leaves out one row at a time; repeated rows are held out together. The other two are rules
        of thumb, scaled by the spread of the data.
    bandwidths : array-like, default=None
        Bandwidths tried by "cv" and "loo". By default fifteen, in steps of 7 %, about one that
        suits a sample of the rows, and more of them if the best is the first or the last.
    n_folds : int, default=5
        Folds of "cv", at most one for each row: those of
        ``KFold(n_folds, shuffle=True, random_state=random_state)``.
    centres : int, default=None
        Number of k-means centres to keep in place of the rows; None keeps the rows.
    scale : array of shape (n_features,), "shared" or None, default=None
        Positive numbers s that the features are divided by; kernels and bandwidth are of x / s, the
        log-density is of x itself, log f(x) = log f_s(x / s) - Σ log s. Densities are compared, so
        all sources need one scale: "shared" stands for the one that `with_shared` finds in the rows
        of all of them, or, where that was not asked, for the spread of the own ones.
    random_state : int, RandomState instance or None, default=None
        Draws the folds, the sample of rows and the first centres.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth h.
    centres_, weights_, variances_ : ndarray of shape (n_centres, n_features), (n_centres,) twice
        The points x_j that carry a kernel, their weights w_j, and s_j^2 (zero for rows).
    scale_ : ndarray of shape (n_features,), or None
        What features are divided by.
    bandwidths_, cv_scores_ : ndarray of shape (n_bandwidths,)
        Bandwidths tried and their mean held-out log-density; only after "cv" and "loo".

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> kde = GaussianKDE(random_state=0).fit(X)
    >>> print(round(kde.bandwidth_, 1))
    0.5
    >>> kde.score_samples([[0.0, 0.0], [2.0, 0.0]]).round(0)
    array([-2., -4.])

    Paper: App. E.3.
    """

    kind = "gaussian_kernels"
    scale_: FloatArray | None = None
    _least_distinct: int | None = None  # rows behind a centre; None if centres are all we have

    _takes: ClassVar = {
        "bandwidth": Either(Words("cv", "loo", "scott", "silverman"), Number(above=0)),
        "n_folds": Number(2, whole=True),
        "centres": Either(None, Number(1, whole=True)),
        "random_state": seed_rule,
    }

    def __init__(
        self,
        bandwidth: str | float = "cv",
        *,
        bandwidths: ArrayLike | None = None,
        n_folds: int = 5,
        centres: int | None = None,
        scale: Scale = None,
        random_state: RandomState = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.bandwidths = bandwidths
        self.n_folds = n_folds
        self.centres = centres
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the bandwidth and keep rows or centres.

        Rows of weight zero, or of less than 1e-30 of the largest, are dropped.
        """
        check_parameters(self)
        # In one order, so that a density read from its arrays rounds as this one does.
        rows: FloatArray = validate_data(self, X, dtype=np.float64, order="C")
        weights: FloatArray = _check_sample_weight(
            sample_weight, rows, ensure_non_negative=True, dtype=np.float64
        )
        if not weights.any():
            raise ValueError("All sample weights are zero; give some row a positive weight.")
        kept = weights > LEAST_WEIGHT * weights.max()
        if not kept.all():
            rows, weights = rows[kept], weights[kept]
        weights = weights / weights.sum()
        self.scale_ = checked_scale(self.scale, rows, weights)
        if self.scale_ is None:
            warn_of_scales(rows, weights, getattr(self, "feature_names_in_", None), stacklevel=2)
        rng = check_random_state(self.random_state)
        self._least_distinct = min(MIN_ROWS, len(merge_repeats(rows, weights)[0]))
        scaled = rows / self._units
        self.bandwidth_ = _choose_bandwidth(self, scaled, weights, rng)
        if self.centres is None:
            # Rows to the last digit, which a division and a product may change.
            self.centres_, self.weights_, self.variances_ = rows, weights, np.zeros(len(rows))
        else:
            clusters = cluster(scaled, weights, self.centres, rng)
            self.centres_ = clusters.centres * self._units
            self.weights_, self.variances_ = clusters.weights, clusters.variances
        return self

    def with_shared(self, X: ArrayLike, sample_domain: object = None) -> Self:
        """Return a copy, not fitted, that all sources can use: "shared" becomes one scale.

        It is the standard deviation of each feature over X, the rows of all sources together, and 1
        where that is 0.  Any other `scale` is kept.
        """
        shared = clone(self)
        if isinstance(self.scale, str):
            shared.scale = spreads(check_array(X, dtype=np.float64))
        return shared

    @property
    def _units(self) -> FloatArray:
        return np.ones(self.n_features_in_) if self.scale_ is None else self.scale_

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of each row, (n_samples,)."""
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        units = self._units
        kernels = Kernels(self.centres_ / units, self.weights_, self.variances_)
        logs = kernels.log_densities(rows / units, [self.bandwidth_])[0]
        return np.asarray(logs - np.log(units).sum())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw rows from the estimate, (n_samples, n_features): a centre, then its kernel."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        chosen = rng.choice(len(self.weights_), n_samples, p=self.weights_)
        width = np.sqrt(self.bandwidth_**2 + self.variances_[chosen])
        noise = width[:, None] * rng.standard_normal((n_samples, self.centres_.shape[1]))
        return self.centres_[chosen] + noise * self._units

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return centres (k, d), weights (k,), variances (k,), bandwidth (1,), maybe scale (d,)."""
        check_is_fitted(self)
        arrays = {
            "centres": self.centres_,
            "weights": self.weights_,
            "variances": self.variances_,
            "bandwidth": np.array([self.bandwidth_]),
        }
        return arrays if self.scale_ is None else arrays | {"scale": self.scale_}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build the estimate from arrays; a ValueError says what is invalid."""
        if "scale" not in arrays:
            return cls._of(*sound_kernels(arrays, n_features))
        scaled = dict(arrays)
        scale, centres = scaled.pop("scale"), scaled.get("centres")
        check_arrays({"scale": scale}, {"scale"})
        check_shapes(arrays, scale=(n_features,))
        refuse_unless(not scale.size or scale.min() >= LEAST_SCALE, "has a scale of zero or less")
        if centres is not None:
            fits = centres.dtype == np.float64 and centres.shape[1:] == (n_features,)
            refuse_unless(fits, f"has centres of shape {centres.shape}")
            scaled["centres"] = centres / scale
        kernels, bandwidth = sound_kernels(scaled, n_features)
        density = cls._of(kernels, bandwidth, scale=scale)
        if kernels.centres is scaled["centres"]:
            density.centres_ = arrays["centres"]  # to the last digit
        return density

    @classmethod
    def _of(
        cls,
        kernels: Kernels,
        bandwidth: float,
        least: int | None = None,
        scale: FloatArray | None = None,
    ) -> Self:
        centres = len(kernels.weights) if kernels.variances.any() else None
        density = cls(bandwidth, centres=centres, scale=scale)
        density.scale_, density.n_features_in_ = scale, kernels.centres.shape[1]
        density.centres_ = kernels.centres if scale is None else kernels.centres * scale
        density.weights_, density.variances_ = kernels.weights, kernels.variances
        density.bandwidth_, density._least_distinct = bandwidth, least
        return density

    def reveals(self) -> str:
        """Describe whether the arrays hold the rows or means of them."""
        return Kernels(self.centres_, self.weights_, self.variances_).reveals(self._least_distinct)

    def shareable(self, n_centres: int | None = None, seed: int = 0) -> Self:
        """Replace rows by centres of five distinct rows or more, by default one for every ten."""
        check_is_fitted(self)
        if self.variances_.any():
            return self
        rows, weights = self.centres_ / self._units, self.weights_
        n_centres = n_centres or min(500, max(1, len(merge_repeats(rows, weights)[0]) // 10))
        shared = cluster(rows, weights, n_centres, np.random.RandomState(seed))
        return self._of(shared, self.bandwidth_, self._least_distinct, self.scale_)

    def log_density_graph(self, graph: GraphBuilder) -> str:
        """Write the estimate into an ONNX graph, (n, 1)."""
        check_is_fitted(self)
        kernels = Kernels(self.centres_ / self._units, self.weights_, self.variances_)
        if self.scale_ is None:
            return kernels.log_density_graph(graph, self.bandwidth_)
        rows = graph.add("Div", graph.rows, graph.constant(self.scale_))
        logs = kernels.log_density_graph(graph, self.bandwidth_, rows)
        return graph.add("Sub", logs, graph.constant(np.array(np.log(self.scale_).sum())))
