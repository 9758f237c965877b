"""A block: labelled tables that answer named queries with small arrays.

p sources, c classes, K folds, s stacked z; every response is a dict of arrays.

    query           goes in, beside the fold           comes out                          numbers
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
    exact_upper     clip, δ, method                    the largest bound of a source      1
    moments         clip                               moments of clipped losses          7p
    theorems        totals by fold                     what the theorems start from       K(2p+6)
    beside          clip, mean target                  reference losses                   2(p+2)p
    cross           loss                               moments of all models everywhere   7p²
    advice          the average                        moments of the consulting gains    14p
    novelty         how many quantiles q               quantiles of own log-densities     p(q+1)

"sample" alone brings rows, and is asked only where the rows of a source lie in several blocks and
sources are to consult; a block that does not share rows refuses.  "novelty" brings quantiles, the
least and the largest among them.  All other responses are sums, counts, extremes and fitted
numbers.
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
from anymix.core import Moments, Pool, Problem, SourceSample, TheoremSums, get_loss
from anymix.densities import DomainRows, lowest_responsibility
from anymix.exceptions import InputError
from anymix.sources.consultation import consulting_of, crossed, learn_pools
from anymix.sources.cross_fitting import (
    HeldOut,
    combined_predictions,
    draw_folds,
    held_out_predictions,
    losses_with_gains,
    moments_by_source,
    predictions_after,
)
from anymix.sources.error_measures import Measure, measure_of, own_values, reference_point_losses
from anymix.sources.partitioned import thinned
from anymix.sources.queries import Arrays, Options, read_average, read_calibration, read_consulting
from anymix.sources.tables import Tables

# Tables made for a query are kept for the next one: so many of them.
KEPT = 12
# What may differ between two queries about one problem, and between two about one average.
NOT_OF_PROBLEM = ("Z", "multipliers", "z", "width", "theta")
NOT_OF_AVERAGE = ("c", "paired", "delta", "without", "thresholds", "totals", "asked")
# What no rows add to what the theorems start from.
NO_POINTS: dict[str, Any] = {
    "largest": -np.inf,
    "lowest": np.inf,
    "away": 0.0,
    "spared": 0.0,
    "floor": np.inf,
    "disagreement": -np.inf,
}


class Block:
    """Labelled tables, or what gives them, that answer queries.

    Parameters
    ----------
    tables : Tables, or an object with a method tables() that returns them
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

    def answer(self, name: str, options: Options, arrays: Arrays) -> Arrays:
        """Answer a query; see the table above."""
        if name not in QUERIES:
            raise InputError(f"the question {name!r}", f"is not one of {', '.join(QUERIES)}")
        found = QUERIES[name](self, options, {key: np.asarray(a) for key, a in arrays.items()})
        return {key: np.asarray(array, dtype=float) for key, array in found.items()}

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
        tables = self.given if isinstance(self.given, Tables) else self.given.tables()
        if tables.targets is None or tables.sample_domain is None:
            raise ValueError("tables need targets and sample_domain: see Tables.labelled.")
        return tables

    def fold(self, arrays: Mapping[str, Any]) -> IntArray:
        """The fold of each row, (m,), of `folds`; some sources may be `spread` over many blocks."""
        n_folds, spread = int(arrays["folds"]), np.asarray(arrays.get("spread", ()))
        key = n_folds, spread.tobytes()
        tables = self.tables
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

        def made() -> Tables:
            return self.tables.taken(np.flatnonzero(self.fold(arrays) != without))

        folds = {name: arrays[name] for name in ("folds", "spread") if name in arrays}
        rows: Tables = self.keep(("training", without, _key_of({}, folds)), made)
        return rows

    def pools(self, options: Options, arrays: Mapping[str, Any]) -> dict[int, Pool]:
        """What the sources whose rows are all here have learned from each other."""
        loss, homes = get_loss(options["loss"]), np.asarray(arrays["homes"])
        key = ("pools", int(arrays["without"]), int(arrays["folds"]), loss, homes.tobytes())
        others = np.flatnonzero(homes == 0).tolist()
        pools: dict[int, Pool] = self.keep(
            key, lambda: learn_pools(self.training_rows(arrays), loss, others)
        )
        return pools

    def pooled(self, options: Options, arrays: Mapping[str, Any]) -> Tables:
        """The training rows after consulting, each at home by pools that never saw it."""
        consulting, tables = read_consulting(arrays, options["loss"]), self.training_rows(arrays)
        if consulting is None or not tables.n_points:
            return tables
        names = ("folds", "spread", "without", "homes", "ears", "ear_offset", "reach")
        told = {name: arrays[name] for name in names if name in arrays}
        pooled: Tables = self.keep(
            ("pooled", _key_of(options, told)),
            lambda: crossed(tables, consulting, self.pools(options, arrays)),
        )
        return pooled

    def make_problem(self, options: Options, arrays: Mapping[str, Any]) -> Problem | None:
        """The problem of z on the training rows of this block; None without rows."""
        pooled = self.pooled(options, arrays)
        if not pooled.n_points:
            return None
        weighed = pooled.weighed(read_calibration(arrays))
        given = options["loss"], float(arrays["eta"]), options["rule"]
        return weighed.problem(*given, totals=arrays.get("totals"))

    def problem(self, options: Options, arrays: Mapping[str, Any]) -> Problem | None:
        """The same, kept for the next query, and seen through its steps."""

        def made() -> Problem | None:
            problem = self.make_problem(options, arrays)
            if problem is not None and "share" in arrays:
                problem = thinned(problem, float(arrays["share"]), int(arrays["seed"]))
            return problem

        problem: Problem | None = self.keep(_key_of(options, arrays), made)
        if problem is not None and "width" in arrays:
            return problem.smoothed(float(arrays["width"]))
        return problem

    def held_out(self, options: Options, arrays: Mapping[str, Any]) -> HeldOut:
        """What is judged: each row by the fold that never saw it, by pools alone, or by all of it.

        Option "judged" says which: "folds", "alone" or "new".
        """
        used, tables, how = read_average(options, arrays), self.tables, options["judged"]
        fold = self.fold(arrays)
        if how == "folds":
            return HeldOut(held_out_predictions(tables, used, fold), fold)
        if how == "new":
            return HeldOut(combined_predictions(tables, used), fold)
        # The pools at least were learned without the row.
        alone = {"without": np.array(-1), "homes": arrays["homes"], "folds": np.array(1)}
        consulting = {n.removesuffix(".0"): a for n, a in arrays.items() if n.endswith(".0")}
        pooled = self.pooled({"loss": options["loss"]}, consulting | alone).predictions
        return HeldOut(predictions_after(tables, used.parts[0], pooled), fold, crossed=False)

    def samples(self, options: Options, arrays: Mapping[str, Any]) -> dict[int, SourceSample]:
        """Losses, own losses, weights and folds of each source's rows with weight."""

        def made() -> dict[int, SourceSample]:
            tables, judge = self.tables, measure_for(self.tables, options)
            held_out = self.held_out(options, arrays)
            losses = judge.value(held_out.predictions, np.asarray(tables.targets))
            own, weight = own_values(tables, judge), tables.weights
            samples = {}
            for k in range(tables.n_sources):
                rows = tables.rows_of(k)
                rows = rows[weight[rows] > 0]
                if rows.size:
                    known = losses[rows], own[rows], weight[rows], held_out.fold[rows]
                    samples[k] = SourceSample(*known)
            return samples

        told = {name: option for name, option in options.items() if name != "method"}
        samples: dict[int, SourceSample] = self.keep(
            ("samples", _key_of(told, arrays, NOT_OF_AVERAGE)), made
        )
        return samples


def _key_of(
    options: Options, arrays: Mapping[str, Any], besides: tuple[str, ...] = NOT_OF_PROBLEM
) -> Any:
    """What tells queries about different tables apart."""
    told = {n: np.asarray(a).tobytes() for n, a in arrays.items() if n not in besides}
    return tuple(sorted(options.items(), key=str)), tuple(sorted(told.items()))


def measure_for(tables: Tables, options: Options) -> Measure:
    """The measure that a query judges by."""
    return measure_of(options.get("measure"), options["loss"], tables.n_classes)


# --- queries of learning -------------------------------------------------------------------------


def check(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Refuse a loss that these rows cannot be judged by."""
    block.tables.check_loss(options["loss"], options["rule"])
    return {}


def count(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Rows, rows with weight and weights of each source by fold, and of what kind the rows are."""
    tables, n_folds = block.tables, int(arrays["folds"])
    p, weight = tables.n_sources, tables.weights
    cell = block.fold(arrays) * p + tables.domain
    shape, size = (n_folds, p), n_folds * p
    homes = [weight[(tables.domain == k) & (weight > 0)] for k in range(p)]
    return {
        "rows": np.bincount(cell, minlength=size).reshape(shape),
        "weighed": np.bincount(cell, weight > 0, size).reshape(shape),
        "weights": np.bincount(cell, weight, size).reshape(shape),
        "lightest": [home.min(initial=np.inf) for home in homes],
        "heaviest": [home.max(initial=0.0) for home in homes],
        "classes": tables.n_classes or 0,
        "at_label": tables.at_label,
        "has_densities": tables.has_densities,
        "all_classes": tables.predictions.ndim == 3 and tables.predictions.shape[2] > 1,
        "target_sum": 0.0 if tables.n_classes else np.asarray(tables.targets, dtype=float).sum(),
    }


def _calibration_rows(block: Block, arrays: Arrays) -> Tables:
    """The training rows with weight of sources that are not set aside."""
    tables = block.training_rows(arrays).without(np.flatnonzero(arrays["aside"]).tolist())
    weight = tables.weights
    return tables if weight.min(initial=1.0) > 0 else tables.taken(np.flatnonzero(weight > 0))


def floor(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The lowest log-responsibility of the training rows."""
    tables = _calibration_rows(block, arrays)
    return {"floor": lowest_responsibility(tables.log_masses) if tables.n_points else np.inf}


def _domain_rows(block: Block, arrays: Arrays) -> DomainRows | None:
    def made() -> DomainRows | None:
        tables = _calibration_rows(block, arrays)
        if not tables.n_points:
            return None
        table = np.asarray(tables.log_masses, dtype=float)
        return DomainRows(table, tables.domain, tables.weights, float(arrays["doubt"]), arrays)

    told = {n: a for n, a in arrays.items() if n not in ("temperature", "offset")}
    rows: DomainRows | None = block.keep(("domains", _key_of({}, told)), made)
    return rows


def calibrate(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Value, gradient and Hessian of the domain likelihood."""
    rows, q = _domain_rows(block, arrays), arrays["theta"].size
    none = (0.0, np.zeros(q), np.zeros((q, q)))
    found = none if rows is None else rows.likelihood(arrays["theta"])
    return dict(zip(("value", "gradient", "hessian"), found, strict=True))


def tally(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """How sure responsibilities are, and how right, before and after calibration."""
    rows = _domain_rows(block, arrays)
    known = arrays["temperature"], arrays["offset"]
    return {"tally": np.zeros(33) if rows is None else rows.tally(*known)}


def pools(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The pools of sources whose rows are all here: of the others zeros, so that sums are right."""
    found, tables = block.pools(options, arrays), block.training_rows(arrays)
    p, loss = tables.n_sources, get_loss(options["loss"])
    offset = (p, tables.predictions.shape[-1]) if loss.takes != "number" else (p,)
    told = {"learned": np.zeros(p), "ears": np.zeros((p, p)), "ear_offset": np.zeros(offset)}
    told["reach"] = np.zeros(p)
    if found:
        learned = consulting_of(tables, found, loss)
        for k in found:
            told["learned"][k], told["ears"][k] = 1.0, learned.weights[k]
            told["ear_offset"][k], told["reach"][k] = learned.offset[k], learned.reach[k]
    return told


def sample(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Rows of some sources, of each about its share of the most that is wanted, by chance."""
    if not block.shares_rows:
        raise InputError(
            "a part that keeps its rows",
            "was asked for a sample of them, since the rows of a source lie in several parts; keep "
            "each source's rows in one part, or learn with consult=False",
        )
    tables = block.training_rows(arrays)
    rng, chosen = np.random.default_rng(int(arrays["seed"])), []
    for k, share in enumerate(arrays["shares"]):
        rows = tables.rows_of(k)
        chosen.append(np.sort(rng.permutation(rows)[: int(np.ceil(share * rows.size))]))
    few = tables.taken(np.concatenate(chosen))
    return {
        "domain": few.sample_domain,
        "predictions": np.moveaxis(few.predictions, 1, 0),
        "targets": few.targets,
        "weight": few.weights,
    }


def baseline(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """How many rows there are, and what the own models lose."""
    problem = block.problem(options, arrays)
    if problem is None:
        return {"n_points": 0, "own_losses": np.zeros(arrays["totals"].size)}
    return {"n_points": problem.n_points, "own_losses": problem.own_losses}


def evaluate(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """L, G and Hessians for a stack of z."""
    problem, Z = block.problem(options, arrays), arrays["Z"]
    multipliers: FloatArray | None = arrays.get("multipliers")
    if problem is None:
        s, p = Z.shape
        none: dict[str, Any] = {"losses": np.zeros((s, p)), "jacobians": np.zeros((s, p, p))}
        return none if multipliers is None else none | {"hessians": np.zeros((s, p, p))}
    sums = problem.evaluate_many(Z, multipliers)._asdict()
    return {name: array for name, array in sums.items() if array is not None}


def paired(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of what h_z loses to the own model at home."""
    problem = block.problem(options, arrays)
    none = np.zeros((5, arrays["totals"].size))
    return {"moments": none if problem is None else problem.paired_moments(arrays["z"])}


# --- queries of certifying -----------------------------------------------------------------------


def evidence(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Weights, losses and extremes of each source: sums, but for the extremes."""
    p = block.tables.n_sources
    found = {name: np.zeros(p) for name in ("weight", "squares", "losses", "own")}
    found |= {name: np.full(p, np.inf) for name in ("least", "own_least")}
    found |= {name: np.full(p, -np.inf) for name in ("largest", "own_largest")}
    for k, home in block.samples(options, arrays).items():
        w, both = home.weights, np.concatenate([home.losses, home.own])
        sums = w.sum(), w @ w, w @ home.losses, w @ home.own
        ends = both.min(), home.own.min(), both.max(), home.own.max()
        for name, value in zip(found, (*sums, *ends), strict=True):
            found[name][k] = value
    return found


def below(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """How many own losses of all folds but one are at most each threshold, and how many there are.

    without (F,) is the fold that is left out, -1 for none; thresholds are (F, g).
    """
    homes = block.samples(options, arrays).values()
    own, fold = (
        np.concatenate([getattr(h, name) for h in homes] or [np.zeros(0)])
        for name in ("own", "fold")
    )
    counts, totals = np.zeros(arrays["thresholds"].shape), np.zeros(arrays["without"].size)
    for f, (t, at) in enumerate(zip(arrays["without"], arrays["thresholds"], strict=True)):
        kept = np.sort(own[fold != t])
        counts[f], totals[f] = np.searchsorted(kept, at, side="right"), kept.size
    return {"counts": counts, "totals": totals}


def exact_upper(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The largest over the sources here of the mean over folds of bounds."""
    given = float(arrays["c"]), bool(arrays["paired"]), float(arrays["delta"]), options["method"]
    homes = block.samples(options, arrays).values()
    return {"upper": max((home.exact_upper(*given) for home in homes), default=-np.inf)}


def moments(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of clipped losses, or of their differences, at each home: (p, 7)."""
    found = np.zeros((block.tables.n_sources, len(Moments._fields)))
    for k, home in block.samples(options, arrays).items():
        clipped = home.clipped(float(arrays["c"]), bool(arrays["paired"]))
        found[k] = Moments.of(clipped, home.weights)
    return {"moments": found}


def theorems(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """What the theorems start from, for each part of the average: see `TheoremSums`."""
    used, tables = read_average(options, arrays), block.tables
    fold = block.fold(arrays) if options["judged"] == "folds" else None
    none = {"losses": np.zeros(tables.n_sources), "own": np.zeros(tables.n_sources)} | NO_POINTS
    told = [dict(none) for _ in used.parts]
    for t, part in enumerate(used.parts):
        rows = tables if fold is None else tables.taken(np.flatnonzero(fold == t))
        if not rows.n_points:
            continue
        weighed, totals = rows.heard(part.consulting).weighed(part.calibration), arrays["totals"][t]
        judged = weighed.judgement(options["loss"], part.eta, part.rule, totals=totals)
        points = TheoremSums.of(judged, part.z, asked=bool(arrays["asked"]))
        known = {name: getattr(points, name) for name in none}
        told[t] |= {name: value for name, value in known.items() if value is not None}
    return {name: np.array([one[name] for one in told]) for name in none}


def beside(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Σ w ℓ by source of the reference predictions, as it is and clipped: (ways, p) each."""
    tables, cap = block.tables, float(arrays["clip"])
    judge, constant = measure_for(tables, options), float(arrays["constant"])
    losses = np.array(reference_point_losses(tables, judge, constant))
    members = (np.arange(tables.n_sources)[:, None] == tables.domain) * tables.weights
    return {"plain": losses @ members.T, "clipped": np.minimum(losses, cap) @ members.T}


def cross(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of the loss of each model k on the rows of each source j: (p, p, 7)."""
    losses = block.tables.point_losses(options["loss"])
    return {"moments": moments_by_source(losses, block.tables)}


def advice(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of the own models' losses at home, and of the consulting gains there."""
    used, tables = read_average(options, arrays), block.tables
    values = losses_with_gains(tables, used, block.fold(arrays), options["loss"])
    own, gains = moments_by_source(values, tables)
    return {"own": own, "gains": gains}


def novelty(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Quantiles of each source's log-densities at home, evenly from the least to the largest."""
    tables, q = block.tables, int(arrays["quantiles"])
    found, rows = np.zeros((tables.n_sources, q)), np.zeros(tables.n_sources)
    for k, row in enumerate(tables.log_masses):
        own = np.sort(row[tables.rows_of(k)])
        rows[k] = own.size
        if own.size:
            # Of those at hand, so that -inf is not averaged with a number.
            found[k] = own[np.linspace(0, own.size - 1, q).round().astype(np.intp)]
    return {"quantiles": found, "rows": rows}


_LEARNING = check, count, floor, calibrate, tally, pools, sample, baseline, evaluate, paired
_CERTIFYING = evidence, below, exact_upper, moments, theorems, beside, cross, advice, novelty
QUERIES: dict[str, Callable[[Block, Options, Arrays], dict[str, Any]]] = {
    query.__name__: query for query in (*_LEARNING, *_CERTIFYING)
}
