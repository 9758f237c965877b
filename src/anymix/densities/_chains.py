"""Sums of exponentials at many bandwidths, with squares in place of most exponentials."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray

LOG_TINY = -87.0  # about the logarithm of the least float32 that is not subnormal, and so slow
SHARE = 2e-5  # of a sum that terms below the floor may make up


class Chains(NamedTuple):
    """Precisions (h_max / h)^2 of the bandwidths, in chains where each doubles the one before.

    In a chain only the first costs an exponential; the others are squares, exp(2t) = exp(t)^2.
    Exponents stop at a floor, above which no square is subnormal.
    """

    precisions: FloatArray
    chains: list[list[int]]
    floor: float

    @classmethod
    def of(cls, bandwidths: FloatArray, length: int = 3) -> "Chains":
        """Chain each bandwidth to one that is sqrt(2) times as large, where there is one.

        Examples
        --------
        >>> Chains.of(np.array([4.0, 2.0, np.sqrt(8), 1.0, np.sqrt(2), 3.0])).chains
        [[0, 2, 1], [5], [4, 3]]
        """
        precisions = (bandwidths.max() / bandwidths) ** 2
        chains: list[list[int]] = []
        for i in np.argsort(precisions, kind="stable"):
            for chain in chains:
                doubled = np.isclose(precisions[i], 2 * precisions[chain[-1]], rtol=1e-9, atol=0)
                if doubled and len(chain) < length:
                    chain.append(int(i))
                    break
            else:
                chains.append([int(i)])
        return cls(precisions, chains, LOG_TINY / 2 ** (length - 1))

    def log_sums(
        self, products: NDArray[np.floating], weights: FloatArray, axis: int
    ) -> FloatArray:
        """log Σ_j w_j exp(precision * product_ij) over one axis of a tile, (n_bandwidths, n).

        Examples
        --------
        >>> chains = Chains.of(np.array([1.0]))
        >>> chains.log_sums(np.array([[-1000.0, -1000.0]]), np.array([1.0, 2.0]), axis=1).round(4)
        array([[-998.9014]])
        """
        peak = products.max(axis=axis, keepdims=True)
        w = weights.astype(np.float32)
        sums = np.empty((len(self.precisions), peak.size))
        # "invalid": all terms lie in (0, 1], but some BLAS raise the flag on lanes they discard.
        with np.errstate(over="ignore", invalid="ignore"):
            t = np.subtract(products, peak).astype(np.float32, copy=False)
            e = np.empty_like(t)
            for chain in self.chains:
                np.multiply(t, np.float32(self.precisions[chain[0]]), out=e)
                np.exp(np.clip(e, np.float32(self.floor), 0, out=e), out=e)
                for i in chain:
                    if i != chain[0]:
                        np.multiply(e, e, out=e)
                    sums[i] = e @ w if axis else w @ e
        return np.asarray(np.log(sums) + self.precisions[:, None] * peak.ravel())


def chain_length(weights: FloatArray, n_terms: int) -> int:
    """Longest chain, up to three, with a floor that no weight lifts into sight.

    A sum of n terms is at least the least weight, and its terms at the floor are at most
    n e^floor times the largest.

    Examples
    --------
    >>> [chain_length(np.array([1.0, ratio]), 512) for ratio in (1.0, 1e6, 1e20)]
    [3, 2, 1]
    """
    seen = np.log(n_terms * weights.max() / weights.min() / SHARE)
    return next((n for n in (3, 2) if LOG_TINY / 2 ** (n - 1) + seen <= 0), 1)
