"""A smoothed bigram model as a table: probabilities of pairs of ids, and sampling.

Words have the ids 0 .. V-1. The boundary V stands for both ends of a document: a corpus is one
sequence of ids, V w w w V w w V, and each of its steps is one transition.

    P(w | h) = the listed probability   if the pair (h, w) is listed
             = backoff_h P(w)           otherwise
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anymix._arrays import FloatArray, IntArray

# A drawn document that has not ended after so many words shows a model that hardly ever ends one.
MAX_WORDS = 1_000_000
CHUNK = 2**18  # pairs taken apart at a time


@dataclass(frozen=True, eq=False)
class BigramTable:
    """Log-probabilities of transitions between the ids 0 .. V, in back-off form.

    Parameters
    ----------
    log_unigram : (V + 1,) array
        log P(w); the last entry is the end of a document.
    log_backoff : (V + 1,) array
        log of the back-off weight of each context; the last entry is the beginning.
    keys : (b,) array
        The listed pairs (h, w) as h (V + 1) + w, strictly increasing.
    log_listed : (b,) array
        log P(w | h) of the listed pairs.
    """

    log_unigram: FloatArray
    log_backoff: FloatArray
    keys: IntArray
    log_listed: FloatArray

    @property
    def size(self) -> int:
        """V + 1: the words and the boundary."""
        return len(self.log_unigram)

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The listed pairs as contexts and next ids."""
        return np.divmod(self.keys, self.size)

    def log_prob(self, contexts: IntArray, nexts: IntArray) -> FloatArray:
        """Return log P(next | context) of each transition."""
        excess: FloatArray = self._excess[contexts, nexts]
        return self._backed_off(contexts, nexts) + excess

    def _backed_off(self, contexts: IntArray, nexts: IntArray) -> FloatArray:
        return self.log_backoff[contexts] + self.log_unigram[nexts]

    @cached_property
    def _excess(self) -> csr_array:
        """Return log P(w | h) - log (backoff_h P(w)), which is 0 for pairs that are not listed."""
        starts = np.searchsorted(self.keys, np.arange(self.size + 1) * self.size)
        narrow = np.int32 if max(self.size, len(self.keys)) < 2**31 else np.int64
        columns, excess = np.empty(len(self.keys), narrow), np.empty(len(self.keys))
        for part, contexts, nexts in self._parts():
            columns[part] = nexts
            excess[part] = self.log_listed[part] - self._backed_off(contexts, nexts)
        return csr_array(
            (excess, columns, starts.astype(narrow, copy=False)), shape=(self.size, self.size)
        )

    def _parts(self) -> Iterator[tuple[slice, IntArray, IntArray]]:
        """Some pairs at a time: where they stand, contexts and next ids."""
        for start in range(0, len(self.keys), CHUNK):
            part = slice(start, start + CHUNK)
            yield part, *np.divmod(self.keys[part], self.size)

    def sums(self) -> FloatArray:
        """Return Σ_w P(w | h) of each context h, (V + 1,): ones, up to rounding."""
        unigram: FloatArray = np.exp(self.log_unigram)
        listed, passed = np.zeros(self.size), np.zeros(self.size)
        for part, contexts, nexts in self._parts():
            # Keys are in order, so a part has few contexts: no array of all of them is needed.
            first = int(contexts[0])
            here = slice(first, int(contexts[-1]) + 1)
            listed[here] += np.bincount(contexts - first, np.exp(self.log_listed[part]))
            passed[here] += np.bincount(contexts - first, unigram[nexts])
        unlisted = np.maximum(unigram.sum() - passed, 0.0)
        backed_off: FloatArray = np.exp(self.log_backoff) * unlisted
        return listed + backed_off

    def sample(self, n_documents: int, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
        """Draw documents: all words in one array, and the length of each document."""
        draw, end = _Inverse(self), self.size - 1
        alive, context = np.arange(n_documents), np.full(n_documents, end)
        owners, words = [alive[:0]], [context[:0]]
        while len(alive):
            context = draw(context, rng.random_sample(len(alive)))
            goes_on = context != end
            alive, context = alive[goes_on], context[goes_on]
            owners.append(alive)
            words.append(context)
            if len(words) > MAX_WORDS:
                raise ValueError(
                    f"a drawn document has more than {MAX_WORDS} words: the model hardly ever "
                    "ends a document, so check the texts or the file that it comes from"
                )
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        return np.concatenate(words)[order], np.bincount(owner, minlength=n_documents)


class _Inverse:
    """The inverse distribution function of every context: listed words first, then all others.

    Let U(w) be the unigram mass before word w, and S_j that of the first j words listed in h. The
    unlisted mass before the j-th listed word v_j is G_j = U(v_j) - S_(j-1), which never falls; so
    the word at unlisted mass t is the one at unigram mass t + S_j, where j counts the G_i <= t. To
    search all contexts in one sorted array, h is added to the values of row h.
    """

    def __init__(self, table: BigramTable) -> None:
        contexts, self.nexts = table.pairs
        unigram = np.exp(table.log_unigram)
        self.starts = np.searchsorted(contexts, np.arange(table.size + 1))
        self.unigram_ends = np.cumsum(unigram / unigram.sum())
        passed, self.passed_all = self._running(np.diff(self.unigram_ends, prepend=0.0)[self.nexts])
        gaps = np.clip(self.unigram_ends[self.nexts] - passed, 0.0, 1.0)
        ends, self.listed = self._running(np.exp(table.log_listed))
        self.passed = np.append(0.0, passed)
        self.gap_keys = contexts + gaps
        self.end_keys = contexts + np.minimum(ends, 1.0)

    def _running(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cumulative sums within each row, each with its own value, and the row sums."""
        total = np.append(0.0, np.cumsum(values))
        first = total[self.starts]
        rows = np.repeat(first[:-1], np.diff(self.starts))
        return total[1:] - rows, np.diff(first)

    def __call__(self, contexts: IntArray, uniforms: FloatArray) -> IntArray:
        """Return the next id of each context at its uniform number in [0, 1)."""
        nexts, drawn = np.empty_like(contexts), uniforms < self.listed[contexts]
        h, u = contexts[drawn], uniforms[drawn]
        at = np.searchsorted(self.end_keys, h + u, side="right")
        nexts[drawn] = self.nexts[np.minimum(at, self.starts[h + 1] - 1)]
        h, u = contexts[~drawn], uniforms[~drawn]
        listed, first = self.listed[h], self.starts[h]
        mass = (u - listed) / (1.0 - listed) * (1.0 - self.passed_all[h])
        at = np.searchsorted(self.gap_keys, h + mass, side="right")
        at = np.clip(at, first, self.starts[h + 1])
        mass += np.where(at > first, self.passed[at], 0.0)
        words = np.searchsorted(self.unigram_ends, mass, side="right")
        nexts[~drawn] = np.minimum(words, len(self.unigram_ends) - 1)
        return nexts


UNIGRAM = "unigram"
SMOOTHINGS = "katz", "kneser_ney", "witten_bell", "absolute", UNIGRAM
KATZ_BINS = 5
# What OpenGrm discounts where Good-Turing has nothing sensible to say: almost nothing.
NEARLY_ONE = 1.0 - 1e-3
# Its absolute discount when no pair occurs once, or none twice.
DEFAULT_DISCOUNT = 0.6
# A word of the vocabulary that training never met counts for half a meeting: a positive
# probability, below that of every word which was met.
UNSEEN_COUNT = 0.5


def smooth_counts(
    keys: IntArray, counts: IntArray, size: int, smoothing: str, listed: NDArray[np.bool_]
) -> BigramTable:
    """Return the smoothed model of pairs (h, w), given as h size + w, and their counts.

    Pairs that are not to be `listed` give their probability to the back-off, so that the
    probabilities sum to 1:

    backoff_h = (1 - sum of the listed P(w | h)) / (1 - sum of P(w) over the listed w)
    """
    contexts, nexts = np.divmod(keys, size)
    often = None if smoothing == "kneser_ney" else counts
    weights = np.maximum(np.bincount(nexts, often, size), UNSEEN_COUNT)
    met = np.bincount(contexts, counts, size)[contexts]
    if smoothing == "katz":
        kept = katz_discounts(counts)[np.minimum(counts, KATZ_BINS + 1)] * counts / met
    elif smoothing == "witten_bell":
        kept = counts / np.bincount(contexts, counts + 1, size)[contexts]
    elif smoothing == UNIGRAM:
        kept = np.zeros(len(counts))
    else:
        kept = (counts - absolute_discount(counts)) / met
    if smoothing != "katz":
        reserved = 1.0 - np.bincount(contexts, kept, size)
        kept = kept + reserved[contexts] * (weights / weights.sum())[nexts]
    keys, kept, contexts, nexts = keys[listed], kept[listed], contexts[listed], nexts[listed]
    full = np.bincount(contexts, minlength=size) == size
    left = 1.0 - np.bincount(contexts, kept, size)
    # Weights are whole or half numbers, so this difference is exact.
    unlisted = (weights.sum() - np.bincount(contexts, weights[nexts], size)) / weights.sum()
    backoff = np.divide(left, unlisted, out=np.ones(size), where=~full)
    kept = kept / np.where(full, 1.0 - left, 1.0)[contexts]
    return BigramTable(np.log(weights / weights.sum()), np.log(backoff), keys, np.log(kept))


def katz_discounts(counts: IntArray) -> FloatArray:
    """Return the factors d_r of the counts r = 0 .. 6, the last for all counts above five.

    d_r = (r* / r - m) / (1 - m),   r* = (r + 1) n_(r+1) / n_r,   m = 6 n_6 / (k n_k),

    k the lowest count that occurs. Empty n_r are taken as 1; a factor outside (0, 1) becomes 0.999.
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
    """Return D = n_1 / (n_1 + 2 n_2), or 0.6 if n_1 or n_2 is zero."""
    once, twice = int(np.sum(counts == 1)), int(np.sum(counts == 2))
    return once / (once + 2 * twice) if once and twice else DEFAULT_DISCOUNT
