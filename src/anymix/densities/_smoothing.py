"""From the counts of a corpus to a smoothed bigram model: five smoothings, two small choices each.

Let c(h, w) be the count of a pair, c(h) its sum over w, T(h) the number of different words after
h, and n_r the number of pairs that occur r times. A smoothing keeps a part of each pair's count,

    kept(h, w) / total(h),        lambda_h = 1 - Σ_w kept(h, w) / total(h),

and hands lambda_h to the unigram model, either for the pairs that were not seen (back-off) or for
all pairs (mixture: kept / total + lambda_h P(w)).

    name         kept        total           form      unigram P(w) in proportion to
    katz         d_c c       c(h)            back-off  c(w)
    absolute     c - D       c(h)            mixture   c(w)
    kneser_ney   c - D       c(h)            mixture   number of different words before w
    witten_bell  c           c(h) + T(h)     mixture   c(w)
    unigram      0           c(h)            mixture   c(w): the word before says nothing

Discounts d_c and D are OpenGrm NGram's (its defaults: Katz with five bins, one D for all counts),
and so are the first four models, with one exception: a context that lists every word has nothing to
back off to, and OpenGrm gives its lambda_h to the end of the document; here it is shared in
proportion.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.densities._bigram_table import BigramTable

KATZ_BINS = 5
# What OpenGrm discounts where Good-Turing has nothing sensible to say: almost nothing.
NEARLY_ONE = 1.0 - 1e-3
# Its absolute discount when no pair occurs once, or none twice.
DEFAULT_DISCOUNT = 0.6
# A word of the vocabulary that training never met counts for half a meeting: a positive
# probability, below that of every word which was met.
UNSEEN_COUNT = 0.5


def smooth(
    steps: tuple[IntArray, IntArray], size: int, smoothing: str, min_count: int
) -> BigramTable:
    """Return the smoothed model of observed transitions.

    Parameters
    ----------
    steps : pair of (t,) arrays
        Contexts and next ids, in 0 .. size - 1.
    size : int
        Number of words plus one, for the boundary.
    smoothing : {"katz", "kneser_ney", "witten_bell", "absolute", "unigram"}
        The smoothing; see the table above.
    min_count : int
        Pairs seen less often are smoothed like the others, then taken off the list; their
        probability goes to the back-off.

    Examples
    --------
    The corpus "a a" "a": four steps, begin a, a a, a end, begin a, a end.

    >>> import numpy as np
    >>> steps = np.array([1, 0, 0, 1, 0]), np.array([0, 0, 1, 0, 1])
    >>> table = smooth(steps, 2, "witten_bell", 1)
    >>> np.exp(table.log_prob(np.array([0]), np.array([0]))).round(3)   # 1/5 + 2/5 3/5
    array([0.44])
    """
    keys, counts = np.unique(steps[0] * size + steps[1], return_counts=True)
    return smooth_counts(keys, counts, size, smoothing, counts >= min_count)


def smooth_counts(
    keys: IntArray, counts: IntArray, size: int, smoothing: str, listed: NDArray[np.bool_]
) -> BigramTable:
    """Return the smoothed model of pairs (h, w), given as h size + w, and how often they were met.

    Pairs that are not to be `listed` give their probability to the back-off.
    """
    contexts, nexts = np.divmod(keys, size)
    often = None if smoothing == "kneser_ney" else counts
    weights = np.maximum(np.bincount(nexts, often, size), UNSEEN_COUNT)
    kept = SMOOTHINGS[smoothing](counts, contexts, size)
    if smoothing != "katz":
        reserved = 1.0 - np.bincount(contexts, kept, size)
        kept = kept + reserved[contexts] * (weights / weights.sum())[nexts]
    return _backoff_form(keys[listed], kept[listed], weights)


def _backoff_form(keys: IntArray, listed: FloatArray, weights: FloatArray) -> BigramTable:
    """Return the model with listed probabilities and the back-off weights that make sums 1.

    backoff_h = (1 - sum of the listed P(w | h)) / (1 - sum of P(w) over the listed w)
    """
    size = len(weights)
    contexts, nexts = np.divmod(keys, size)
    full = np.bincount(contexts, minlength=size) == size
    left = 1.0 - np.bincount(contexts, listed, size)
    # Weights are whole or half numbers, so this difference is exact.
    unlisted = (weights.sum() - np.bincount(contexts, weights[nexts], size)) / weights.sum()
    backoff = np.divide(left, unlisted, out=np.ones(size), where=~full)
    listed = listed / np.where(full, 1.0 - left, 1.0)[contexts]
    return BigramTable(np.log(weights / weights.sum()), np.log(backoff), keys, np.log(listed))


def katz_discounts(counts: IntArray) -> FloatArray:
    """Return the factors d_r of the counts r = 0 .. 6, the last for all counts above five.

    d_r = (r* / r - m) / (1 - m),   r* = (r + 1) n_(r+1) / n_r,   m = 6 n_6 / n_1

    Good-Turing estimates r* for r <= 5, scaled such that together they free n_1 counts. If no
    pair occurs once, the lowest count k that does occur stands in: m = 6 n_6 / (k n_k). Empty n_r
    are taken as 1, and a factor outside (0, 1) becomes 0.999, which is also that of counts above 5.

    Examples
    --------
    >>> counts = [1] * 10 + [2] * 3 + [3] * 1
    >>> katz_discounts(np.array(counts)).round(3)
    array([0.999, 0.6  , 0.5  , 0.999, 0.999, 0.999, 0.999])
    """
    last = KATZ_BINS + 1
    n = np.bincount(np.minimum(counts, last + 1), minlength=last + 2)[: last + 1]
    r = np.arange(1, last)
    lowest = next((k for k in range(1, last + 1) if n[k]), None)
    m = 0.0 if lowest is None else last * n[last] / (lowest * n[lowest])
    filled = np.maximum(n, 1)
    factors = (r + 1) * filled[r + 1] / (filled[r] * r) - m
    factors = factors / (1.0 - m) if m < 1.0 else factors
    factors = np.where((factors > 0.0) & (factors < 1.0), factors, NEARLY_ONE)
    return np.concatenate([[NEARLY_ONE], factors, [NEARLY_ONE]])


def absolute_discount(counts: IntArray) -> float:
    """Return D = n_1 / (n_1 + 2 n_2), or 0.6 if n_1 or n_2 is zero.

    Examples
    --------
    >>> absolute_discount(np.array([1, 1, 1, 1, 2, 2, 5]))
    0.5
    """
    once, twice = int(np.sum(counts == 1)), int(np.sum(counts == 2))
    return once / (once + 2 * twice) if once and twice else DEFAULT_DISCOUNT


def _katz(counts: IntArray, contexts: IntArray, size: int) -> FloatArray:
    factors = katz_discounts(counts)[np.minimum(counts, KATZ_BINS + 1)]
    return factors * counts / np.bincount(contexts, counts, size)[contexts]


def _absolute(counts: IntArray, contexts: IntArray, size: int) -> FloatArray:
    return (counts - absolute_discount(counts)) / np.bincount(contexts, counts, size)[contexts]


def _witten_bell(counts: IntArray, contexts: IntArray, size: int) -> FloatArray:
    return counts / np.bincount(contexts, counts + 1, size)[contexts]


def _unigram(counts: IntArray, contexts: IntArray, size: int) -> FloatArray:
    return np.zeros(len(counts))


UNIGRAM = "unigram"
SMOOTHINGS: dict[str, Callable[[IntArray, IntArray, int], FloatArray]] = {
    "katz": _katz,
    "kneser_ney": _absolute,
    "witten_bell": _witten_bell,
    "absolute": _absolute,
    UNIGRAM: _unigram,
}
