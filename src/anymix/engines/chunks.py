"""Chunks: more rows than memory holds, read in chunks, evaluated once, kept on disk."""

from __future__ import annotations

import builtins
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from anymix._arrays import FloatArray, mixed, source_numbers
from anymix.core import Loss, SeenRowsSketch
from anymix.engines.store import Store, StoredProblem, StoredTables, joined, prepare_problem
from anymix.exceptions import InputError
from anymix.sources import (
    CHUNK_ROWS,
    FoldResult,
    LearningSettings,
    Map,
    PartitionedProblem,
    Seen,
    Source,
    Tables,
    add_to_sketch,
    evaluate,
    find_z,
    learn_fold,
    seen_through,
)
from anymix.storage import need

# Of a thinned problem, which is in memory: 160 MB; and points that a source has there at least.
MOST_NUMBERS, FEWEST_POINTS = 2 * 10**7, 1000
# Of a table of a part, as of a block of the core; and rows that are worth a question.
PIECE_NUMBERS, LEAST_ROWS = 120_000, 1000
# X, the targets or labels, and which source each row is from: 0..p−1, or one number for all.
Batch = tuple[Any, ArrayLike, ArrayLike]


def ask_in_chunks(
    sources: Sequence[Source],
    batches: Iterable[Batch],
    classes: ArrayLike | None = None,
    map: Map = builtins.map,
) -> Iterator[Tables]:
    """Evaluate every source once on every row, batch by batch; yield labelled tables.

    Parameters
    ----------
    sources : sequence of Source
    batches : iterable of (X, y, sample_domain)
    classes : labels, optional
        Given for classification.
    map : callable
        `ThreadMap()` evaluates several batches at once, if the models allow that.

    Examples
    --------
    >>> near, far = (Source(n, lambda X: X[:, 0], lambda X: -X[:, 0] ** 2) for n in ("a", "b"))
    >>> batches = [(np.ones((2, 1)), [1.0, 2.0], 0), (np.ones((3, 1)), [0.0, 1.0, 2.0], 1)]
    >>> [tables.n_points for tables in ask_in_chunks([near, far], batches)]
    [2, 3]
    """

    def ask(batch: Batch) -> Tables:
        X, y, domain = batch
        return evaluate(sources, X, classes).labelled(y, domain)

    return iter(map(ask, batches))


class ChunkedProblem(PartitionedProblem):
    """A `PartitionedProblem` of parts on disk; some of its points are copied into memory once."""

    def thin(self, n: int, rng: np.random.Generator) -> Any:
        """Return the problem on about n of the points, or on as many as memory is spent on."""
        counts = np.sum([np.diff(part.bounds) for part in self.parts], axis=0)
        share = min(n, MOST_NUMBERS // (2 * counts.size)) / counts.sum()
        shares = np.minimum(np.maximum(share, FEWEST_POINTS / counts), 1.0)
        seeds = rng.integers(2**31, size=len(self.parts)).tolist()
        given = [(part, shares, seed) for part, seed in zip(self.parts, seeds, strict=True)]
        first = self.parts[0]
        return seen_through(joined(self.map(_some, given), first.loss, first.eta), self.steps)


def _some(given: tuple[StoredProblem, FloatArray, int]) -> tuple[Any, ...]:
    part, shares, seed = given
    return part.some(shares, seed)


def _pieces(parts: Iterable[Tables]) -> Iterator[Tables]:
    """Cut tables into pieces that stay in the caches; larger ones took three times as long."""
    for tables in parts:
        each = tables.predictions.size // max(tables.n_points, 1)
        size = max(LEAST_ROWS, PIECE_NUMBERS // each)
        for first in range(0, tables.n_points, size):
            yield tables.taken(np.arange(first, min(first + size, tables.n_points)))


def problem_in_chunks(
    parts: Iterable[Tables],
    store: Store,
    loss: str | Loss = "squared",
    eta: float = 1e-3,
    rule: str = "marginal",
    map: Map = builtins.map,
) -> ChunkedProblem:
    """Keep the tables for z in a store; the problem reads them part by part when needed.

    Parameters
    ----------
    parts : iterable of labelled Tables
        As `ask_in_chunks` or `parquet_tables` yield them; each is forgotten when it is kept.
    store : Store
        Open for as long as the problem is used.
    loss, eta, rule : see `Tables.problem`
    map : callable
        The map over the parts: `ThreadMap()` for all cores.

    Examples
    --------
    >>> from anymix.core import solve
    >>> rng = np.random.default_rng(0)
    >>> def part():
    ...     x, domain = rng.normal(size=100), rng.integers(2, size=100)
    ...     return Tables(np.zeros((2, 100)), np.stack([x, x + 0.1])).labelled(x, domain)
    >>> with Store() as store:
    ...     problem = problem_in_chunks((part() for _ in range(3)), store)
    ...     problem.n_points, solve(problem).status
    (300, 'stationary')
    """
    prepare = partial(prepare_problem, loss=loss, eta=eta, rule=rule)
    prepared = map(prepare, _pieces(parts))
    found = [StoredProblem(store.keep(**arrays), *known) for arrays, known in prepared]
    if not found:
        raise InputError("a problem in chunks", "needs rows; the batches have none")
    totals = np.sum([part.totals for part in found], axis=0)
    if totals.min() <= 0:
        raise InputError(
            f"source {int(totals.argmin())}", "has no rows of its own, or none with weight"
        )
    return ChunkedProblem([replace(part, totals=totals) for part in found], map=map)


def parquet_tables(
    path: str | Path,
    log_masses: Sequence[str],
    predictions: Sequence[str],
    target: str = "target",
    domain: str = "domain",
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[Tables]:
    """Yield the tables of a Parquet file with predictions and densities of p sources.

    Parameters
    ----------
    path : path
    log_masses, predictions : sequence of str
        The p columns of log-densities or log-responsibilities, and those of the p predictions: a
        number, or the probability of the label that occurred.
    target, domain : str
        The columns of the target and of the source 0..p−1; a table of probabilities has no target.
    chunk_rows : int
        Rows in memory at a time.
    """
    parquet, p = need("pyarrow.parquet"), len(log_masses)
    if len(predictions) != p:
        raise InputError(path, f"has {p} columns of densities, but {len(predictions)} predictions")
    # With buffers all that was read would stay in memory until the end.
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        there = set(file.schema_arrow.names)
        names = [name for name in (*log_masses, *predictions, domain) if name not in there]
        if names:
            raise InputError(path, f"has no column {names[0]!r}")
        targets = [target] if target in there else []
        columns = [*log_masses, *predictions, domain, *targets]
        for batch in file.iter_batches(chunk_rows, columns=columns):
            found = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
            said = np.stack([found[name] for name in predictions]).astype(float)
            log_d = np.stack([found[name] for name in log_masses]).astype(float)
            d = source_numbers(found[domain], p, batch.num_rows, least=0)
            if targets:
                yield Tables(log_d, said, found[target].astype(float), d)
            else:  # probabilities of the label that occurred
                y = np.zeros(batch.num_rows, dtype=np.intp)
                yield Tables(log_d, said[:, :, None], y, d, at_label=True)


# A fifth of the rows judges, as where they are dealt out to five parts, or as many as may.
MOST_JUDGING = 0.2
# Of the sample that chooses a calibration and pools; it is tried in six ways at once.
MOST_ANSWERS = 2 * 10**6
# That a source has at least, where it has so many; and that it must have on either side.
FEWEST_DRAWN, FEWEST_OF_SOURCE = 1000, 15


class RowSplit(NamedTuple):
    """The split into evaluation and training rows, and the sample for calibration and pools.

    Shares (p,) of the rows of each source.  A row is drawn by its source and number, so that the
    draw does not depend on the size or order of chunks.
    """

    judging: FloatArray
    choosing: FloatArray

    @classmethod
    def of(cls, counts: Sequence[int], most: int) -> RowSplit:
        """Split the rows of each source; about `most` become evaluation rows."""
        n = np.asarray(counts, dtype=float)
        if n.min() < FEWEST_OF_SOURCE / MOST_JUDGING:
            raise InputError(
                f"{int(n.min())} rows of a source",
                "are too few to be split into training and evaluation rows; hold them "
                "in memory with --engine memory",
            )
        judging, choosing = (
            np.maximum(some / n.sum(), FEWEST_DRAWN / n) for some in (most, MOST_ANSWERS / n.size)
        )
        judging = np.minimum(judging, MOST_JUDGING)
        return cls(judging, np.minimum(choosing, 1.0 - judging))

    def drawn(self, k: int, first: int, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Draw which of n rows of source k are evaluation rows, and which are in the sample."""
        numbers = np.stack([np.full(n, k), first + np.arange(n)], axis=1).astype(np.uint64)
        share = mixed(numbers) / 2.0**64
        judges = share < self.judging[k]
        return judges, ~judges & (share < self.judging[k] + self.choosing[k])


class ChunkedTrainingRows:
    """Training rows on disk, for z; some of them, in memory, choose calibration and pools.

    z is learned from all rows, by sums over points. Consulting and calibration are learned from the
    sample: sums cannot replace it, or would change nothing.
    """

    def __init__(self, store: Store, map: Map = builtins.map):
        self.store = store
        self.map = map
        self.parts: list[StoredTables] = []
        self.sample: list[Tables] = []
        self.sketch = SeenRowsSketch()

    @property
    def n_points(self) -> int:
        """The number of training rows."""
        return sum(part.n_points for part in self.parts)

    def add(self, tables: Tables, choosing: NDArray[np.bool_]) -> None:
        """Keep training rows; those that the choice of settings uses stay in memory."""
        if tables.n_points:
            self.parts.append(StoredTables.keep(tables, self.store))
            add_to_sketch(self.sketch, tables)
        if choosing.any():
            self.sample.append(tables.taken(np.flatnonzero(choosing)))

    def seen(self) -> Seen:
        """Remember the training rows."""
        return Seen(None, self.sketch.seen_rows())

    def learned(self, goal: LearningSettings) -> FoldResult:
        """Choose calibration and pools by the sample, and find z by all rows."""
        used, _, report = learn_fold(Tables.concatenate(self.sample), goal)
        said = (
            part.tables().heard(used.consulting).weighed(used.calibration) for part in self.parts
        )
        given = goal.loss, goal.eta, goal.rule
        problem: Any = problem_in_chunks(said, self.store, *given, map=self.map)
        found = find_z(problem, goal)
        return replace(used, z=found.z), found, report


# Parts that are begun before the result of the first is taken, beyond one a thread.
AHEAD = 2


class ThreadMap:
    """`map` by some threads, for the parts of a problem.

    Parameters
    ----------
    n_threads : int, optional
        By default the number of cores that this process may use.
    progress : callable, optional
        Called after every part with the number of maps begun, and the share of this
        one that is done, 0 to 1; not called for an iterable without a length.

    Examples
    --------
    >>> list(ThreadMap(2)(abs, [-1, -2, 3]))
    [1, 2, 3]
    """

    def __init__(
        self, n_threads: int | None = None, progress: Callable[[int, float], None] | None = None
    ):
        self.n_threads = n_threads
        self.progress = progress
        self.passes = 0

    def __call__(self, function: Callable[..., Any], *parts: Iterable[Any]) -> Iterator[Any]:
        """Yield function(part) for each part; the next ones are under way meanwhile."""
        self.passes += 1
        total = next((len(each) for each in parts if isinstance(each, Sized)), 0)
        with self._libraries.limit(limits=1, user_api="blas"):
            for done, found in enumerate(self._results(function, parts), 1):
                if self.progress is not None and total:
                    self.progress(self.passes, done / total)
                yield found

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        # To look for them takes as long as a small problem does.
        return ThreadpoolController()

    def _results(
        self, function: Callable[..., Any], parts: tuple[Iterable[Any], ...]
    ) -> Iterator[Any]:
        allowed = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
        n = self.n_threads or len(allowed(0))
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(n) as pool:
            try:
                for given in zip(*parts, strict=True):
                    waiting.append(pool.submit(function, *given))
                    if len(waiting) >= n + AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
