"""Labelled rows in blocks, wherever they are; learning uses them through queries.

Every query goes to all blocks at once, and responses are small; `Block` lists the queries.  Tables
in memory are one block, whose rows are used directly.  Where each source's rows lie in one block (a
site, say) all numbers are those of the rows of all in one table.  Where the rows of a source are
spread over blocks (chunks of a file) sums are still sums, and three things differ:

    folds       are drawn within each block, where copies of a row are not known from others
    pools       are learned from a sample of `most_rows` rows of the source, not from all of them
    bounds      are asymptotic: a bet on rows one after the other needs them in one place
"""

from __future__ import annotations

from builtins import map as builtin_map
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, IntArray
from anymix.core import (
    Combination,
    Consulting,
    CrossFittedCombination,
    Loss,
    Moments,
    Sums,
    choose_candidates,
    get_loss,
)
from anymix.densities import DomainRows, TemperatureScaling
from anymix.sources.block import Block
from anymix.sources.consultation import consulting_of, gains_of, learn_candidates, learn_pools
from anymix.sources.cross_fitting import FEWEST_ROWS, N_FOLDS
from anymix.sources.partitioned import Map, PartitionedProblem
from anymix.sources.queries import (
    Arrays,
    Options,
    Query,
    form_of,
    once,
    pack_average,
)
from anymix.sources.tables import Novelty, Tables

# Of each source, for pools where its rows are spread over blocks.
MOST_ROWS = 20_000
# Of the log-densities at home, for novelty.
QUANTILES = 201
# Tables that one block in memory keeps: the rows of a fold, its pools, and what they make of them.
KEPT_IN_MEMORY = 4
Flags = NDArray[np.bool_]


class Blocks:
    """Labelled rows in blocks.

    Parameters
    ----------
    blocks : iterable of Tables, Block, or a stand-in for a Block
        Each has targets and the source of each row; all have the same sources and classes.
    map : callable
        map(query, blocks) gives the responses in the order of the blocks; see `PartitionedProblem`.
        A query can be pickled, and has a name, options and arrays, should the map send these.
    together : callable
        Like map, for what can be learned at the same time: one combination for each fold, and z for
        each calibration of it.  Python's own learns one after the other; with `in_threads` their
        queries can share rounds.  It is called from within itself: a pool of so many threads
        would wait for ever.
    most_rows : int
        Rows of a source that its pool is learned from where they are spread over blocks.
    ahead : bool
        Whether to prefetch queries that may be needed, where rounds are expensive.

    Examples
    --------
    >>> from anymix.sources import LearningSettings, learn
    >>> rng = np.random.default_rng(0)
    >>> y, said = rng.normal(size=60), rng.normal(size=(2, 60))
    >>> blocks = [
    ...     Tables(rng.normal(size=(2, 30)), said[:, :30]).labelled(y[:30], 0),
    ...     Tables(rng.normal(size=(2, 30)), said[:, 30:]).labelled(y[30:], 1),
    ... ]
    >>> found = learn(Blocks(blocks), LearningSettings())
    >>> len(found.combination.parts), found.evidence.certificate.n_rows
    (5, 30.0)
    """

    def __init__(
        self,
        blocks: Iterable[Any],
        map: Map = builtin_map,
        together: Map = builtin_map,
        most_rows: int = MOST_ROWS,
        ahead: bool = False,
    ):
        self.blocks = [Block(block) if isinstance(block, Tables) else block for block in blocks]
        self.map, self.together, self.most_rows = map, together, most_rows
        self.ahead = ahead
        self.in_memory: Block | None = None
        # What was learned from a sample or a sketch of the rows: sentences, in order.
        self.sketched: dict[str, None] = {}
        if not self.blocks:
            raise ValueError("rows in blocks need one block at least; got none.")
        counts = self.ask("count", {}, {"folds": 1})
        for name in ("classes", "at_label", "has_densities", "has_generalist"):
            if len({float(one[name]) for one in counts}) > 1:
                raise ValueError(f"blocks must agree in {name.replace('_', ' ')}; these do not.")
        if len({one["rows"].shape for one in counts}) > 1:
            raise ValueError("blocks must have the same sources; these have more or fewer.")
        # Of each source in each block, (blocks, p).
        self.rows: IntArray = np.array([one["rows"][0] for one in counts], dtype=np.intp)
        self.n_sources, self.n_points = self.rows.shape[1], int(self.rows.sum())
        self.n_classes = int(counts[0]["classes"]) or None
        self.at_label = bool(counts[0]["at_label"])
        self.has_densities = bool(counts[0]["has_densities"])
        self.has_generalist = bool(counts[0]["has_generalist"])
        self.mean_target = float(sum(one["target_sum"] for one in counts)) / max(self.n_points, 1)
        # Which sources have all their rows in one block, and whether these count alike there, too.
        self.whole: Flags = np.asarray((self.rows > 0).sum(axis=0) <= 1)
        light = np.min([one["lightest"] for one in counts], axis=0)
        heavy = np.max([one["heaviest"] for one in counts], axis=0)
        self.alike = bool(self.whole.all() and (heavy - light <= 1e-9 * heavy).all())
        # One fold where a source has too few rows, or groups of them.
        draws = np.sum([one["draws"] for one in counts], axis=0)
        self.n_folds = N_FOLDS if draws.min() >= FEWEST_ROWS else 1
        self.folds: Arrays = {"folds": np.array(self.n_folds), "spread": ~self.whole}

    @classmethod
    def of(cls, rows: Tables | Blocks) -> Blocks:
        """Take tables in memory as one block, whose rows are used directly."""
        if isinstance(rows, Blocks):
            return rows
        blocks = cls([Block(rows, kept=KEPT_IN_MEMORY)])
        blocks.in_memory = blocks.blocks[0]
        return blocks

    def ask(self, name: str, options: Options, arrays: Mapping[str, Any]) -> list[Arrays]:
        """Query every block, and return the responses in the order of the blocks."""
        given = {key: np.asarray(array) for key, array in arrays.items()}
        return list(self.map(Query(name, options, given), self.blocks))

    def total(self, name: str, options: Options, arrays: Mapping[str, Any]) -> Arrays:
        """Query every block, and add the responses up, array by array."""
        responses = self.ask(name, options, arrays)
        return {key: reduce(add, (one[key] for one in responses)) for key in responses[0]}

    def at_once(self, *tasks: Callable[[], Any]) -> list[Any]:
        """Run independent tasks; their queries can share rounds."""
        return list(self.together(lambda task: task(), tasks))

    @once
    def by_fold(self) -> Arrays:
        """Rows with weight and weights of each source in each fold, (K, p)."""
        counts = self.total("count", {}, self.folds)
        return {name: counts[name] for name in ("weighed", "weights")}

    def homes(self, set_aside: Sequence[int]) -> Flags:
        """Which sources have all their rows in one block, so that it learns their pools, (p,)."""
        homes = self.whole.copy()
        homes[list(set_aside)] = False
        return homes

    def novelty(self) -> Novelty | None:
        """The log-densities of own rows, all or as quantiles, if there are densities."""
        if not self.has_densities:
            return None
        if self.in_memory is not None:
            return Novelty.from_tables(self.in_memory.tables)
        found = self.ask("novelty", {}, {"quantiles": QUANTILES})
        sentence = f"Novelty knows {QUANTILES} quantiles of each source's log-densities at home."
        self.sketched[sentence] = None
        own = []
        for k in range(self.n_sources):
            # The quantiles of each block, as often as its rows ask for.
            most, kept = max(float(one["rows"][k]) for one in found), []
            for one in found:
                n = round(QUANTILES * float(one["rows"][k]) / most)
                at = np.linspace(0, QUANTILES - 1, n).round().astype(np.intp)
                kept.append(one["quantiles"][k][at])
            own.append(np.sort(np.concatenate(kept)))
        return Novelty(tuple(own))

    def moments(self, name: str, options: Options, arrays: Mapping[str, Any]) -> FloatArray:
        """The moments (..., 7) of all blocks together, by a query that responds with them."""
        return joined_moments([one["moments"] for one in self.ask(name, options, arrays)])

    def cross_losses(self, loss: str | Loss) -> tuple[FloatArray, FloatArray]:
        """Losses of each source's model on each domain, and their standard errors, (p, p)."""
        added = self.moments("cross", {"loss": loss}, {})
        told = np.array([(one.mean, one.standard_error) for one in map_moments(added)])
        means, errors = told.reshape(self.n_sources, self.n_sources, 2).transpose(2, 0, 1)
        return means, errors


def map_moments(array: FloatArray) -> Iterator[Moments]:
    """Yield the moments of an array (..., 7)."""
    return (Moments(*row) for row in array.reshape(-1, len(Moments._fields)).tolist())


def joined_moments(arrays: Sequence[FloatArray]) -> FloatArray:
    """The moments (..., 7) of all blocks together."""
    if len(arrays) == 1:
        return arrays[0]
    same = zip(*(map_moments(array) for array in arrays), strict=True)
    return np.array([reduce(Moments.plus, each) for each in same]).reshape(arrays[0].shape)


def in_threads(function: Callable[[Any], Any], given: Iterable[Any], /) -> list[Any]:
    """Apply a function to each item in a separate thread; return the results in order.

    >>> in_threads(lambda x: 2 * x, [1, 2, 3])
    [2, 4, 6]
    """
    things = list(given)
    if not things:
        return []
    with ThreadPoolExecutor(len(things)) as pool:
        return list(pool.map(function, things))


class TrainingFold:
    """All rows but those of one fold, or all of them where that is -1."""

    def __init__(self, blocks: Blocks, without: int = -1):
        self.blocks, self.without = blocks, without
        self.arrays: Arrays = blocks.folds | {"without": np.array(without)}

    def counted(self, name: str) -> FloatArray:
        """Rows with weight ("weighed"), or "weights", of each source in this fold, (p,)."""
        by_fold = self.blocks.by_fold[name]
        left_out = by_fold[self.without] if self.without >= 0 else 0.0
        return np.asarray(by_fold.sum(axis=0) - left_out)

    def domain_sums(self, set_aside: Sequence[int]) -> DomainRows | BlockDomainSums:
        """The sums that calibration needs, over the rows of the sources that are not set aside."""
        if self.blocks.in_memory is None:
            return BlockDomainSums(self, set_aside)
        rows = self.blocks.in_memory.training_rows(self.arrays).without(set_aside)
        kept, table = rows.weights > 0, np.asarray(rows.log_masses, dtype=float)
        given = table[:, kept], rows.domain[kept], rows.weights[kept]
        return DomainRows(*given, TemperatureScaling().doubt)

    def consult(self, loss: str | Loss, set_aside: Sequence[int]) -> Consulting | None:
        """Learn the pools of each source from its rows or a sample of them, and choose jointly."""
        known, spread = get_loss(loss), ~self.blocks.whole
        spread[list(set_aside)] = False
        homes = {"homes": self.blocks.homes(set_aside)} | self.arrays
        told = self.blocks.total("gains", {"loss": loss}, homes)
        few = self._sample(spread) if spread.any() else None
        candidates = {} if few is None else learn_candidates(few, known)
        if few is not None:
            sampled = gains_of(candidates, few)
            told = {name: told[name] + more for name, more in zip(told, sampled, strict=True)}
        choice = choose_candidates(told["gains"], told["errors"], told["n_rows"])
        if not choice.any():
            return None
        found = self.blocks.total("pools", {"loss": loss}, homes | {"choice": choice})
        weights, offset = found["ears"], found["ear_offset"]
        weights[found["learned"] == 0] = np.eye(*weights.shape)[found["learned"] == 0]
        chosen = tuple(choice.tolist())
        consulting = Consulting(weights, offset, found["reach"], form_of(loss), chosen)
        if few is not None:
            pools = learn_pools(few, known, candidates, choice)
            more = consulting_of(few, pools, known)
            for k in pools:
                weights[k], offset[k] = more.weights[k], more.offset[k]
                consulting.reach[k] = more.reach[k]
        return consulting

    def _sample(self, spread: Flags) -> Tables:
        blocks, most = self.blocks, self.blocks.most_rows
        shares = np.where(spread, np.minimum(1.0, most / self.counted("weighed")), 0.0)
        given = {"shares": shares, "seed": np.array(max(self.without, 0))}
        found = blocks.ask("sample", {}, given | self.arrays)
        if (shares[spread] < 1).any():
            sentence = "Pools of sources whose rows are spread over blocks learned from "
            blocks.sketched[f"{sentence}{most} rows each."] = None
        joined = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        predictions = np.ascontiguousarray(np.moveaxis(joined["predictions"], 0, 1))
        y, classes, p = joined["targets"], blocks.n_classes, blocks.n_sources
        return Tables(
            np.zeros((p, predictions.shape[1])),
            predictions[:p],
            y if classes is None else y.astype(np.intp),
            joined["domain"].astype(np.intp),
            joined["weight"],
            None if classes is None else np.arange(classes),
            at_label=blocks.at_label,
            generalist=predictions[p] if blocks.has_generalist else None,
        )

    def problem(self, part: Combination, loss: str | Loss, set_aside: Sequence[int]) -> Any:
        """The problem of another z for a combination."""
        options = {"loss": loss, "rule": part.rule}
        given = pack_average(CrossFittedCombination((part,))) | self.arrays
        given |= {"homes": self.blocks.homes(set_aside)}
        if self.blocks.in_memory is not None:
            return self.blocks.in_memory.make_problem(options, given)
        return BlocksProblem(self.blocks, options, given | {"totals": self.counted("weights")})


class BlockDomainSums:
    """The sums over blocks that calibration needs; each is computed once."""

    def __init__(self, fold: TrainingFold, set_aside: Sequence[int]):
        p = fold.blocks.n_sources
        kept = np.setdiff1d(np.arange(p), list(set_aside))
        self.fold, self.n_sources = fold, kept.size
        self.counts, self.totals = fold.counted("weighed")[kept], fold.counted("weights")[kept]
        self.n_points = int(self.counts.sum())
        self.aside = ~np.isin(np.arange(p), kept)
        self._known: dict[bytes, tuple[float, FloatArray, FloatArray]] = {}

    @once
    def floor(self) -> float:
        """The lowest log-responsibility of all blocks."""
        found = self.fold.blocks.ask("floor", {}, {"aside": self.aside} | self.fold.arrays)
        return min(float(one["floor"]) for one in found)

    def _given(self) -> Arrays:
        known = {"counts": self.counts, "totals": self.totals, "floor": np.array(self.floor)}
        doubt = np.array(TemperatureScaling().doubt)
        return {"aside": self.aside, "doubt": doubt} | known | self.fold.arrays

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian at theta."""
        key = theta.tobytes()
        if key not in self._known:
            found = self.fold.blocks.total("calibrate", {}, self._given() | {"theta": theta})
            self._known[key] = float(found["value"]), found["gradient"], found["hessian"]
        return self._known[key]

    def tally(self, temperature: FloatArray, offset: FloatArray) -> FloatArray:
        """The numbers of a calibration report."""
        given = self._given() | {"temperature": temperature, "offset": offset}
        tally: FloatArray = self.fold.blocks.total("tally", {}, given)["tally"]
        return tally


class BlocksProblem(PartitionedProblem):
    """The problem of z on rows in blocks, by queries."""

    def __init__(self, blocks: Blocks, options: Options, arrays: Arrays):
        self.blocks, self.options, self.arrays = blocks, options, arrays

    @property
    def n_sources(self) -> int:
        """p."""
        return self.blocks.n_sources

    def answers(self, question: str, *given: Any) -> Iterator[Any]:
        """Query every block."""
        if question == "loss":
            return iter([get_loss(self.options["loss"])])
        if question == "counted":
            found = self.blocks.ask("baseline", self.options, self.arrays)
            return iter([(int(one["n_points"]), one["own_losses"]) for one in found])
        if question == "paired_moments":
            return iter([one["moments"] for one in self._paired(given[0])])
        Z, multipliers = given
        asked = {"Z": Z} if multipliers is None else {"Z": Z, "multipliers": multipliers}
        found = self.blocks.ask("evaluate", self.options, self.arrays | asked)
        return iter([Sums(one["losses"], one["jacobians"], one.get("hessians")) for one in found])

    def _paired(self, z: FloatArray) -> list[Arrays]:
        # A search asks first for these and for the own losses, which need not wait.
        asked = self.arrays | {"z": z}
        found, _ = self.blocks.at_once(
            lambda: self.blocks.ask("paired", self.options, asked), lambda: self._counts
        )
        return list(found)

    def first_losses(self, z: FloatArray) -> FloatArray:
        """L(z), together with the next queries of a search from z if these are prefetched."""
        tasks: list[Callable[[], Any]] = [lambda: self.source_losses(z)]
        tasks += [lambda: self._paired(z)] if self.blocks.ahead else []
        return np.asarray(self.blocks.at_once(*tasks)[0])

    def viewed(self, step: str, *given: Any) -> Self:
        """Return the same rows after one more step."""
        seen = dict(self.arrays)
        if step == "smoothed":
            seen["width"] = np.array(given[0])
        else:
            share, seed = given
            seen["share"] = share * self.arrays.get("share", np.array(1.0))
            seen["seed"] = np.array(seed)
        return type(self)(self.blocks, self.options, seen)
