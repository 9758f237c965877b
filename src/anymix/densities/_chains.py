"""Sums of exponentials at many bandwidths, with squares in place of most exponentials."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LENGTH = 3  # of a chain: each square doubles the rounding of float32
NEGLIGIBLE = -87 / 2 ** (LENGTH - 1)  # keeps the last square above the slow subnormal numbers


class Chains(NamedTuple):
    """Precisions (h_max / h)^2 of the bandwidths, in chains where each doubles the one before.

    In a chain only the first costs an exponential; the others are squares, exp(2t) = exp(t)^2.
    """

    precisions: NDArray[np.float64]
    chains: list[list[int]]

    @classmethod
    def of(cls, bandwidths: NDArray[np.float64]) -> "Chains":
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
                if doubled and len(chain) < LENGTH:
                    chain.append(int(i))
                    break
            else:
                chains.append([int(i)])
        return cls(precisions, chains)

    def log_sums(
        self, products: NDArray[np.floating], weights: NDArray[np.float64], axis: int
    ) -> NDArray[np.float64]:
        """log sum_j w_j exp(precision * product_ij) over one axis of a tile, (n_bandwidths, n).

        Terms below e^-21 of the largest count as that: at most 2e-7 of a tile of 512.

        Examples
        --------
        >>> chains = Chains.of(np.array([1.0]))
        >>> chains.log_sums(np.array([[-1000.0, -1000.0]]), np.array([1.0, 2.0]), axis=1).round(4)
        array([[-998.9014]])
        """
        peak = products.max(axis=axis, keepdims=True)
        w = weights.astype(np.float32)
        sums = np.empty((len(self.precisions), peak.size))
        with np.errstate(over="ignore"):
            t = np.subtract(products, peak).astype(np.float32, copy=False)
            e = np.empty_like(t)
            for chain in self.chains:
                np.multiply(t, np.float32(self.precisions[chain[0]]), out=e)
                np.exp(np.clip(e, np.float32(NEGLIGIBLE), 0, out=e), out=e)
                for i in chain:
                    if i != chain[0]:
                        np.multiply(e, e, out=e)
                    sums[i] = e @ w if axis else w @ e
        return np.asarray(np.log(sums) + self.precisions[:, None] * peak.ravel())
