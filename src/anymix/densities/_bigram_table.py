"""A smoothed bigram model as numbers: probabilities of pairs of ids, and documents drawn from them.

Words have the ids 0 .. V-1. One more id, the boundary V, stands for both ends of a document: as a
context it is the beginning, as a next word it is the end. A corpus is then one sequence of ids,
V w w w V w w V, and each of its steps is one transition.

    P(w | h) = the listed probability   if the pair (h, w) is listed
             = backoff_h P(w)           otherwise
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
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

    Examples
    --------
    One word "a" and the boundary; only the pair ("a", end) is listed.

    >>> import numpy as np
    >>> half = np.log([0.5, 0.5])
    >>> table = BigramTable(half, np.array([np.log(0.2), 0.0]), np.array([1]), np.log([0.9]))
    >>> np.exp(table.log_prob(np.array([0, 0, 1]), np.array([0, 1, 0]))).round(3)
    array([0.1, 0.9, 0.5])
    >>> table.sums().round(12)
    array([1., 1.])
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
        """Return log P(w | h) - log (backoff_h P(w)), which is 0 for pairs that are not listed.

        A sparse matrix finds many pairs at once, with short searches in one row each.
        """
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
        """Draw whole documents, all of them one word further at each step.

        Returns
        -------
        ids : (t,) array
            The words of all documents, one document after the other.
        lengths : (n_documents,) array
            The number of words of each document.
        """
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

    The words that h does not list are drawn without rejection. Let U(w) be the unigram mass before
    word w, and S_j that of the first j words listed in h. The unlisted mass before the j-th listed
    word v_j is G_j = U(v_j) - S_(j-1), which never falls as j grows; so the word at unlisted mass t
    is the one at unigram mass t + S_j, where j counts the G_i <= t. To search the rows of all
    contexts in one sorted array, h is added to the values of row h.
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
        nexts = np.empty_like(contexts)
        listed = uniforms < self.listed[contexts]
        nexts[listed] = self._listed(contexts[listed], uniforms[listed])
        nexts[~listed] = self._unlisted(contexts[~listed], uniforms[~listed])
        return nexts

    def _listed(self, contexts: IntArray, uniforms: FloatArray) -> IntArray:
        at = np.searchsorted(self.end_keys, contexts + uniforms, side="right")
        return self.nexts[np.minimum(at, self.starts[contexts + 1] - 1)]

    def _unlisted(self, contexts: IntArray, uniforms: FloatArray) -> IntArray:
        listed, first = self.listed[contexts], self.starts[contexts]
        mass = (uniforms - listed) / (1.0 - listed) * (1.0 - self.passed_all[contexts])
        at = np.searchsorted(self.gap_keys, contexts + mass, side="right")
        at = np.clip(at, first, self.starts[contexts + 1])
        mass += np.where(at > first, self.passed[at], 0.0)
        found = np.searchsorted(self.unigram_ends, mass, side="right")
        return np.minimum(found, len(self.unigram_ends) - 1)
