"""The interface of densities: a score, and packing as named arrays for those with a `kind`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state

from anymix._arrays import FloatArray, IntArray, n_rows

RandomState = int | np.random.RandomState | None
Arrays = Mapping[str, NDArray[Any]]

TYPES = (np.float64, np.int64, np.uint8)
LARGEST = 1e100  # of a number that travels: its square is still finite
# Below, a number changes no digit next to those that travel; far below, processors are slow.
TINY = 1e-200
# What an untrusted density may cost per row that it scores: some milliseconds.
MOST_OPERATIONS = 50_000_000
ROUNDED = 1e-12  # how far weights may sum from 1 by rounding alone


class Density(DensityMixin, BaseEstimator):
    """A density with `score_samples`, and so with a `score` for model selection."""

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of each row, (n_samples,)."""
        raise NotImplementedError

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))


class Travels:
    """A density that can be packed, by its `kind`, and read again; `takes` is the type of rows.

    A density of numbers may also have `log_density_graph(graph)`, for an ONNX graph.
    """

    kind: ClassVar[str]
    takes: ClassVar[str] = "numbers"

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was fitted as arrays of float64, int64 or bytes."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_features: int) -> Self:
        """Build it from untrusted arrays; a ValueError says what is invalid."""
        raise NotImplementedError

    def reveals(self) -> str:
        """Describe in one sentence what the arrays reveal about the training rows."""
        raise NotImplementedError

    def shareable(self) -> Self:
        """Return a form that may be shared: here, the density itself."""
        return self


# An ONNX graph in the making, `exchange.onnx_graph.Graph`: its methods return names of results.
GraphBuilder = Any


def refuse_unless(condition: Any, cause: str) -> None:
    """Raise a ValueError with this cause, worded to follow the name of a file."""
    if not condition:
        raise ValueError(cause)


def check_cost(operations: int, what: str) -> None:
    """Refuse a density that would take too long for each row, before it is built."""
    refuse_unless(
        operations <= MOST_OPERATIONS,
        f"has {what}, some {operations:.0e} operations for each row, where {MOST_OPERATIONS:.0e} "
        "are allowed",
    )


def check_arrays(arrays: Arrays, names: Collection[str], logs: Collection[str] = ()) -> None:
    """Refuse arrays of other names, and non-finite floats; −inf is allowed among `logs`."""
    refuse_unless(set(arrays) == set(names), f"must hold the arrays {sorted(names)}")
    for name, array in arrays.items():
        refuse_unless(array.dtype in TYPES, f"has {name} of type {array.dtype}")
        if array.dtype == np.float64:
            least = -np.inf if name in logs else -LARGEST
            sound = array.size == 0 or (least <= array.min() and array.max() < LARGEST)
            refuse_unless(sound, f"has numbers in {name} that are not finite")


def check_shapes(arrays: Arrays, **shapes: tuple[int, ...]) -> None:
    """Refuse arrays that are not float64 of these shapes."""
    for name, shape in shapes.items():
        array = arrays[name]
        right = array.shape == shape and array.dtype == np.float64
        refuse_unless(right, f"has {name} of shape {array.shape}, where {shape} is expected")


def check_weights(weights: NDArray[Any]) -> FloatArray:
    """Refuse weights that are not positive or do not sum to 1; return them with the sum 1."""
    sound = weights.ndim == 1 and weights.size and weights.dtype == np.float64
    total = weights.sum() if sound else 0.0
    refuse_unless(
        sound and weights.min() > 0 and abs(total - 1) < 1e-6,
        "must have positive weights that sum to 1",
    )
    return weights if abs(total - 1) < ROUNDED else np.asarray(weights / total)


def domain_codes(sample_domain: Any, n: int) -> IntArray:
    """Return the domain of each of n rows as 0, 1, ...; all 0 if none is given."""
    if sample_domain is None:
        return np.zeros(n, dtype=np.intp)
    names = np.asarray(sample_domain)
    if names.shape != (n,):
        raise ValueError(
            f"sample_domain has the shape {names.shape}; it must name the domain of each of {n} "
            "rows."
        )
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.intp)


class KnownDensity(Density):
    """A log-density function with the interface of a fitted density.

    Parameters
    ----------
    log_density : callable
        Takes the rows and returns their natural-log densities, (n_samples,); minus infinity where
        the density is zero.
    sampler : callable, default=None
        ``sampler(n_samples, random_state)`` draws rows; only `sample` needs it.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> density = KnownDensity(lambda X: norm.logpdf(X[:, 0]))
    >>> density.score_samples(np.array([[0.0], [1.0]])).round(3)
    array([-0.919, -1.419])
    """

    def __init__(
        self,
        log_density: Callable[[Any], Any],
        sampler: Callable[[int, np.random.RandomState], Any] | None = None,
    ) -> None:
        self.log_density = log_density
        self.sampler = sampler

    def fit(self, X: Any = None, y: object = None) -> Self:
        """Do nothing: the density is known already."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of each row, (n_samples,), as the function gives it."""
        logs = np.asarray(self.log_density(X), dtype=np.float64)
        n_samples = n_rows(X)
        if logs.shape != (n_samples,):
            raise ValueError(
                f"log_density returned shape {logs.shape} for {n_samples} rows; "
                f"it must return one number for each row, shape ({n_samples},)."
            )
        if np.isnan(logs).any() or (logs == np.inf).any():
            raise ValueError(
                "log_density returned NaN or +inf; it must return natural logarithms, "
                "with -inf where the density is zero."
            )
        return logs

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Any:
        """Draw rows with the sampler."""
        if self.sampler is None:
            raise ValueError("This density cannot be sampled; pass a sampler to KnownDensity.")
        return self.sampler(n_samples, check_random_state(random_state))
