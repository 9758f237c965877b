"""A block: labelled tables that answer named queries with small arrays; see `block_queries`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import IntArray
from anymix.core import (
    Consulting,
    Pool,
    PoolCandidates,
    Problem,
    SourceSample,
    get_loss,
)
from anymix.exceptions import InputError
from anymix.sources.block_queries import QUERIES
from anymix.sources.consultation import crossed, learn_candidates, learn_pools
from anymix.sources.cross_fitting import (
    HeldOut,
    combined_predictions,
    draw_folds,
    held_out_predictions,
    predictions_after,
)
from anymix.sources.error_measures import Measure, measure_of, own_values
from anymix.sources.queries import (
    CONSULTING,
    NOT_OF_AVERAGE,
    Arrays,
    Memory,
    Options,
    key_of,
    read_average,
)
from anymix.sources.tables import Tables

# Tables made for a query are kept for the next one: so many of them.
KEPT = 12


class Block:
    """Labelled tables that answer queries.

    Parameters
    ----------
    tables : Tables
        With targets and the source of each row; log_masses of float32 and memory maps are fine.
    kept : int
        How many tables made for a query are kept for the next one; each takes as much memory as
        the block itself.  0 builds them anew for every query.
    shares_rows : bool
        Whether the query "sample" may take rows.

    Examples
    --------
    >>> tables = Tables(np.zeros((2, 4)), np.zeros((2, 4))).labelled(np.ones(4), [0, 0, 1, 1])
    >>> Block(tables).answer("count", {}, {"folds": np.array(1)})["rows"]
    array([[2., 2.]])
    """

    def __init__(self, tables: Tables, kept: int = KEPT, shares_rows: bool = True):
        if tables.targets is None or tables.sample_domain is None:
            raise ValueError("tables need targets and sample_domain: see Tables.labelled.")
        self.tables, self.shares_rows = tables, shares_rows
        self.keep = Memory(kept)
        self._folds: dict[Any, NDArray[np.int8]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"tables": self.tables, "kept": self.keep.size, "shares_rows": self.shares_rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def answer(self, name: str, options: Options, arrays: Arrays) -> Arrays:
        """Answer a query."""
        if name not in QUERIES:
            raise InputError(f"the query {name!r}", f"is not one of {', '.join(QUERIES)}")
        found = QUERIES[name](self, options, {key: np.asarray(a) for key, a in arrays.items()})
        return {key: np.asarray(array, dtype=float) for key, array in found.items()}

    def fold(self, arrays: Mapping[str, Any]) -> IntArray:
        """The fold of each row, (m,), of `folds`; some sources may be `spread` over many blocks."""
        n_folds, spread = int(arrays["folds"]), np.asarray(arrays.get("spread", ()))
        key, tables = (n_folds, spread.tobytes()), self.tables
        if n_folds == 1:
            return np.zeros(tables.n_points, dtype=np.intp)
        if key not in self._folds:
            fold = draw_folds(tables, n_folds)
            for k in np.flatnonzero(spread).tolist():
                # Rows begin with the first fold: where they are few in each block it had most.
                rows = tables.rows_of(k)
                first = crc32(np.ascontiguousarray(tables.predictions[k, rows]).tobytes())
                fold[rows] = (fold[rows] + first) % n_folds
            self._folds[key] = fold.astype(np.int8)
        return self._folds[key].astype(np.intp)

    def training_rows(self, arrays: Mapping[str, Any]) -> Tables:
        """The rows of all folds but one; of all of them where that is -1."""
        without = int(arrays["without"])
        if without < 0:
            return self.tables
        folds = {name: arrays[name] for name in ("folds", "spread") if name in arrays}
        return self.keep(
            ("training", without, key_of({}, folds)),
            lambda: self.tables.taken(np.flatnonzero(self.fold(arrays) != without)),
        )

    def candidates(self, options: Options, arrays: Mapping[str, Any]) -> dict[int, PoolCandidates]:
        """The pool candidates of the sources whose rows are all in this block."""
        loss, homes = get_loss(options["loss"]), np.asarray(arrays["homes"])
        key = ("candidates", int(arrays["without"]), int(arrays["folds"]), loss, homes.tobytes())
        others = np.flatnonzero(homes == 0).tolist()
        return self.keep(key, lambda: learn_candidates(self.training_rows(arrays), loss, others))

    def pools(
        self, options: Options, arrays: Mapping[str, Any], choice: NDArray[Any]
    ) -> dict[int, Pool]:
        """The pools that were chosen."""
        known = get_loss(options["loss"]), self.candidates(options, arrays), choice
        return learn_pools(self.training_rows(arrays), *known)

    def pooled(
        self, options: Options, arrays: Mapping[str, Any], consulting: Consulting | None
    ) -> Tables:
        """The training rows after consulting, each by pools learned without it."""
        tables = self.training_rows(arrays)
        if consulting is None or not tables.n_points:
            return tables
        names = ("folds", "spread", "without", "homes", *(f"{name}.0" for name in CONSULTING))
        told = {name: arrays[name] for name in names if name in arrays}
        return self.keep(
            ("pooled", key_of({"loss": options["loss"]}, told)),
            lambda: crossed(tables, consulting, self.pools(options, arrays, consulting.choices)),
        )

    def make_problem(self, options: Options, arrays: Mapping[str, Any]) -> Problem | None:
        """The problem of z on the training rows of this block; None without rows."""
        (part,) = read_average(options, arrays).parts
        pooled = self.pooled(options, arrays, part.consulting)
        if not pooled.n_points:
            return None
        given = options["loss"], part.eta, part.rule
        return pooled.weighed(part.calibration).problem(*given, totals=arrays.get("totals"))

    def problem(self, options: Options, arrays: Mapping[str, Any]) -> Problem | None:
        """The problem of z after some steps, cached for the next query."""

        def made() -> Problem | None:
            problem = self.make_problem(options, arrays)
            if problem is None or "share" not in arrays:
                return problem
            return problem.thin(float(arrays["share"]) * problem.n_points, int(arrays["seed"]))

        problem: Problem | None = self.keep(key_of(options, arrays), made)
        if problem is not None and "width" in arrays:
            return problem.smoothed(float(arrays["width"]))
        return problem

    def held_out(self, options: Options, arrays: Arrays) -> HeldOut:
        """The evaluated predictions: by the fold that never saw the row, by pools, or by all parts.

        Option "judged" says which: "folds", "alone" or "new".
        """
        used, tables, how = read_average(options, arrays), self.tables, options["judged"]
        fold = self.fold(arrays)
        if how == "folds":
            return HeldOut(held_out_predictions(tables, used, fold), fold)
        if how == "new":
            return HeldOut(combined_predictions(tables, used), fold)
        # The pools at least were learned without the row.
        part, everything = used.parts[0], {"without": np.array(-1), "folds": np.array(1)}
        pooled = self.pooled(options, arrays | everything, part.consulting).predictions
        return HeldOut(predictions_after(tables, part, pooled), fold, crossed=False)

    def judge(self, options: Options) -> Measure:
        """The loss, or another measure, that is evaluated."""
        return measure_of(options.get("measure"), options["loss"], self.tables.n_classes)

    def samples(self, options: Options, arrays: Arrays) -> dict[int, SourceSample]:
        """Losses, own losses, weights and folds of each source's rows with weight."""

        def made() -> dict[int, SourceSample]:
            tables, judge = self.tables, self.judge(options)
            held_out, weight = self.held_out(options, arrays), tables.weights
            losses = judge.value(held_out.predictions, np.asarray(tables.targets))
            columns = [losses, own_values(tables, judge), weight, held_out.fold]
            columns += [] if tables.groups is None else [tables.groups]
            homes = [(tables.domain == k) & (weight > 0) for k in range(tables.n_sources)]
            return {
                k: SourceSample.of(*(column[rows] for column in columns))
                for k, rows in enumerate(homes)
                if rows.any()
            }

        told = {n: option for n, option in options.items() if n not in ("kind", "method")}
        return self.keep(("samples", key_of(told, arrays, NOT_OF_AVERAGE)), made)
