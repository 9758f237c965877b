"""A part of the rows, with what the sources say of them: it answers questions by their verbs.

p sources, c classes, K folds, s stacked z; every answer is a dict of arrays.

    verb            goes in, beside the fold           comes out                          numbers
    check           loss, rule                         nothing, or an error               0
    count           folds K                            rows and weights by fold, kinds    3Kp+2p+6
    floor           sources set aside                  the lowest log-responsibility      1
    calibrate       θ (2p)                             value, gradient, Hessian           1+2p+4p²
    tally           temperatures, offsets              calibration before and after       33
    pools           loss, which sources                pools learned at home              2p+p²+pc
    sample          how many rows of which sources     ROWS: what was said of them        n(p[c]+3)
    baseline        calibration, pools, totals         rows, own losses                   1+p
    evaluate        the same, Z (s, p), multipliers    L, G, Hessians                     s(p+2p²)
    paired          the same, z                        moments for the shrinkage          5p
    evidence        the average that is judged         weights, losses, extremes          8p
    below           thresholds (F, g)                  how many own losses are below      F(g+1)
    exact_upper     clip, δ, method                    the largest bound of a home        1
    moments         clip                               moments of clipped losses          7p
    theorems        totals by fold                     what the theorems start from       K(2p+6)
    beside          clip, mean target                  losses of other ways               2(p+2)p
    cross           loss                               moments of all models everywhere   7p²
    advice          the average                        moments of what hearing brought    14p
    novelty         how many quantiles q               quantiles of own log-densities     p(q+1)

"sample" alone brings rows, and is asked only where the rows of a source lie in several parts and
sources are to hear each other; a part that does not share rows refuses.  "novelty" brings
quantiles, the least and the largest among them.  All other answers are sums, counts, extremes and
fitted numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core import Pool, Problem, get_loss
from anymix.engines.partitioned import thinned
from anymix.engines.questions import Arrays, Words, read_calibration, read_consulting
from anymix.exceptions import InputError
from anymix.sources import Tables, crossed, deal_out, learn_pools

# Tables made for a question are kept for the next one: so many of them.
KEPT = 12
# What may differ between two questions about one problem.
ASKED = ("Z", "multipliers", "z", "width", "theta")


class TablePart:
    """Labelled tables, or what gives them, as a part that answers questions.

    Parameters
    ----------
    tables : Tables, or an object with a method tables() that returns them
        With targets and the source of each row; log_masses of float32 and memory maps are fine.
    kept : int
        How many tables made for a question are kept for the next one; each takes as much memory as
        the part itself.  0 builds them anew for every question.
    shares_rows : bool
        Whether the verb "sample" may take rows.

    Examples
    --------
    >>> tables = Tables(np.zeros((2, 4)), np.zeros((2, 4))).labelled(np.ones(4), [0, 0, 1, 1])
    >>> part = TablePart(tables)
    >>> part.answer("count", {}, {"folds": np.array(1)})["rows"]
    array([[2., 2.]])
    """

    def __init__(self, tables: Any, kept: int = KEPT, shares_rows: bool = True):
        self.given = tables
        self.kept = kept
        self.shares_rows = shares_rows
        self._store: OrderedDict[Any, Any] = OrderedDict()
        self._folds: dict[Any, NDArray[np.int8]] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"tables": self.given, "kept": self.kept, "shares_rows": self.shares_rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def answer(self, verb: str, words: Words, arrays: Arrays) -> Arrays:
        """Answer a question; see the table of verbs above."""
        from anymix.engines.verbs import VERBS

        if verb not in VERBS:
            raise InputError(f"the question {verb!r}", f"is not one of {', '.join(VERBS)}")
        found = VERBS[verb](self, words, {name: np.asarray(a) for name, a in arrays.items()})
        return {name: np.asarray(array, dtype=float) for name, array in found.items()}

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made for a key, or make it."""
        with self._lock:
            if key in self._store:
                self._store.move_to_end(key)
                return self._store[key]
        made = make()
        with self._lock:
            self._store[key] = made
            while len(self._store) > self.kept:
                self._store.popitem(last=False)
        return made

    @property
    def tables(self) -> Tables:
        """The rows."""
        found = self.given if isinstance(self.given, Tables) else self.given.tables()
        if found.targets is None or found.sample_domain is None:
            raise ValueError("rows in parts need targets and sample_domain: see Tables.labelled.")
        return found

    def fold(self, arrays: Mapping[str, Any]) -> IntArray:
        """The fold of each row, (m,), of `folds`; some sources may be `spread` over many parts."""
        n_folds, spread = int(arrays["folds"]), np.asarray(arrays.get("spread", ()))
        key = n_folds, spread.tobytes()
        if key not in self._folds:
            self._folds[key] = self._dealt(n_folds, np.flatnonzero(spread))
        return self._folds[key].astype(np.intp)

    def _dealt(self, n_folds: int, spread: IntArray) -> NDArray[np.int8]:
        tables = self.tables
        if n_folds == 1:
            return np.zeros(tables.n_points, dtype=np.int8)
        fold, domain = deal_out(tables, n_folds), np.asarray(tables.sample_domain)
        for k in spread:
            # Rows begin with the first fold: where they are few in each part it would have most.
            rows = np.flatnonzero(domain == k)
            first = crc32(np.ascontiguousarray(tables.predictions[k, rows]).tobytes())
            fold[rows] = (fold[rows] + first) % n_folds
        return fold.astype(np.int8)

    def lesson(self, arrays: Mapping[str, Any]) -> Tables:
        """The rows of all folds but one; of all of them where that is -1."""
        without = int(arrays["without"])
        if without < 0:
            return self.tables

        def made() -> Tables:
            return self.tables.taken(np.flatnonzero(self.fold(arrays) != without))

        dealt = {name: arrays[name] for name in ("folds", "spread") if name in arrays}
        found: Tables = self.keep(("lesson", without, key_of({}, dealt)), made)
        return found

    def pools(self, words: Words, arrays: Mapping[str, Any]) -> dict[int, Pool]:
        """What the sources whose rows are all here have learned from each other."""
        loss, homes = get_loss(words["loss"]), np.asarray(arrays["homes"])
        key = ("pools", int(arrays["without"]), int(arrays["folds"]), loss, homes.tobytes())
        others = np.flatnonzero(homes == 0).tolist()
        found: dict[int, Pool] = self.keep(
            key, lambda: learn_pools(self.lesson(arrays), loss, others)
        )
        return found

    def said(self, words: Words, arrays: Mapping[str, Any]) -> Tables:
        """The rows of a lesson after the sources heard each other, at home by what never saw it."""
        consulting, tables = read_consulting(arrays, words["loss"]), self.lesson(arrays)
        if consulting is None or not tables.n_points:
            return tables
        return crossed(tables, consulting, self.pools(words, arrays))

    def problem(self, words: Words, arrays: Mapping[str, Any]) -> Problem | None:
        """The problem of a lesson on this part, seen through its steps; None without rows."""

        def made() -> Problem | None:
            said = self.said(words, arrays)
            if not said.n_points:
                return None
            weighed = said.weighed(read_calibration(arrays))
            given = words["loss"], float(arrays["eta"]), words["rule"]
            problem = weighed.problem(*given, totals=arrays["totals"])
            if "share" in arrays:
                problem = thinned(problem, float(arrays["share"]), int(arrays["seed"]))
            return problem

        problem: Problem | None = self.keep(key_of(words, arrays), made)
        if problem is not None and "width" in arrays:
            return problem.smoothed(float(arrays["width"]))
        return problem


def key_of(words: Words, arrays: Mapping[str, Any], besides: tuple[str, ...] = ASKED) -> Any:
    """What tells questions about different tables apart."""
    told = {n: np.asarray(a).tobytes() for n, a in arrays.items() if n not in besides}
    return tuple(sorted(words.items(), key=str)), tuple(sorted(told.items()))


def weights_of(tables: Tables) -> FloatArray:
    """The weight of each row, (m,)."""
    weight = tables.sample_weight
    return np.ones(tables.n_points) if weight is None else np.asarray(weight, dtype=float)
