"""The queries to a block: options and arrays go in, a dict of arrays comes out.

Brackets give the size of the response, for p sources, c classes, K folds and s stacked z.  All are
sums, counts, extremes, quantiles and fitted numbers, but "sample" returns n rows: it is used only
where the rows of a source lie in several blocks and sources consult, and a block that does not
share rows refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Moments, Sums, TheoremSums, get_loss
from anymix.densities import DomainRows, floored_responsibilities
from anymix.exceptions import InputError
from anymix.sources.consultation import consulting_of, gains_of
from anymix.sources.cross_fitting import (
    gain_moments,
    moments_by_source,
    n_draws,
)
from anymix.sources.error_measures import reference_point_losses
from anymix.sources.queries import CONSULTING, Arrays, Options, key_of, read_average
from anymix.sources.tables import Tables

if TYPE_CHECKING:
    from anymix.sources.block import Block


def check(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Check that the loss can be evaluated on these rows."""
    block.tables.check_loss(options["loss"], options["rule"])
    return {}


def count(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Numbers of rows and weights by source and fold, and the type of tables [3Kp + 3p + 5]."""
    tables, n_folds = block.tables, int(arrays["folds"])
    p, weight = tables.n_sources, tables.weights
    cell = block.fold(arrays) * p + tables.domain
    shape, size = (n_folds, p), n_folds * p
    homes = [weight[(tables.domain == k) & (weight > 0)] for k in range(p)]
    if tables.groups is not None:
        # Groups are what bounds count.
        owns = [tables.groups[(tables.domain == k) & (weight > 0)] for k in range(p)]
        pairs = zip(owns, homes, strict=True)
        homes = [np.bincount(np.unique(own, return_inverse=True)[1], w) for own, w in pairs]
    return {
        "rows": np.bincount(cell, minlength=size).reshape(shape),
        "weighed": np.bincount(cell, weight > 0, size).reshape(shape),
        "weights": np.bincount(cell, weight, size).reshape(shape),
        "draws": n_draws(tables),
        "lightest": [home.min(initial=np.inf) for home in homes],
        "heaviest": [home.max(initial=0.0) for home in homes],
        "classes": tables.n_classes or 0,
        "at_label": tables.at_label,
        "has_densities": tables.has_densities,
        "has_generalist": tables.generalist is not None,
        "target_sum": 0.0 if tables.n_classes else np.asarray(tables.targets, dtype=float).sum(),
    }


def _calibration_rows(block: Block, arrays: Arrays) -> Tables:
    """The training rows with weight of sources that are not set aside."""
    tables = block.training_rows(arrays).without(np.flatnonzero(arrays["aside"]).tolist())
    weight = tables.weights
    return tables if weight.min(initial=1.0) > 0 else tables.taken(np.flatnonzero(weight > 0))


def floor(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The lowest log-responsibility of the training rows [1]."""
    tables = _calibration_rows(block, arrays)
    return {"floor": floored_responsibilities(tables.log_masses)[1] if tables.n_points else np.inf}


def _domain_rows(block: Block, arrays: Arrays) -> DomainRows | None:
    def made() -> DomainRows | None:
        tables, doubt = _calibration_rows(block, arrays), float(arrays["doubt"])
        if not tables.n_points:
            return None
        table = np.asarray(tables.log_masses, dtype=float)
        return DomainRows(table, tables.domain, tables.weights, doubt, arrays)

    told = {n: a for n, a in arrays.items() if n not in ("temperature", "offset")}
    return block.keep(("domains", key_of({}, told)), made)


def calibrate(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Value, gradient and Hessian of the domain likelihood [1 + 2p + 4p²]."""
    rows, q = _domain_rows(block, arrays), arrays["theta"].size
    none = (0.0, np.zeros(q), np.zeros((q, q)))
    found = none if rows is None else rows.likelihood(arrays["theta"])
    return dict(zip(("value", "gradient", "hessian"), found, strict=True))


def tally(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Confidence and accuracy of responsibilities, before and after calibration [33]."""
    rows = _domain_rows(block, arrays)
    known = arrays["temperature"], arrays["offset"]
    return {"tally": np.zeros(33) if rows is None else rows.tally(*known)}


def gains(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Gains of the pool candidates of sources whose rows are all here, else zeros [37p]."""
    found = gains_of(block.candidates(options, arrays), block.training_rows(arrays))
    return dict(zip(("gains", "errors", "n_rows"), found, strict=True))


def pools(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The chosen pools of these sources, else zeros [3p + p(p + 1) + pc]."""
    found, tables = block.pools(options, arrays, arrays["choice"]), block.training_rows(arrays)
    consulting = consulting_of(tables, found, get_loss(options["loss"]))
    learned = np.isin(np.arange(tables.n_sources), list(found)).astype(float)
    weights = consulting.weights * learned[:, None]
    known = learned, weights, consulting.offset, consulting.reach, consulting.choices
    return dict(zip(("learned", *CONSULTING), known, strict=True))


def sample(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """A random share of the rows of some sources [n((p + 1)c + 3)]."""
    if not block.shares_rows:
        raise InputError(
            "a part that keeps its rows",
            "was asked for a sample of them, since the rows of a source lie in several parts; keep "
            "each source's rows in one part, or learn with consult=False",
        )
    tables = block.training_rows(arrays)
    rng = np.random.default_rng(int(arrays["seed"]))
    shuffled = [rng.permutation(tables.rows_of(k)) for k in range(tables.n_sources)]
    sizes = [
        int(np.ceil(s * rows.size)) for s, rows in zip(arrays["shares"], shuffled, strict=True)
    ]
    chosen = [np.sort(rows[:n]) for rows, n in zip(shuffled, sizes, strict=True)]
    few = tables.taken(np.concatenate(chosen))
    return {
        "domain": few.sample_domain,
        "predictions": np.moveaxis(few.all_predictions, 1, 0),
        "targets": few.targets,
        "weight": few.weights,
    }


def baseline(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The number of rows and the own models' losses [1 + p]."""
    problem = block.problem(options, arrays)
    if problem is None:
        return {"n_points": 0, "own_losses": np.zeros(arrays["totals"].size)}
    return {"n_points": problem.n_points, "own_losses": problem.own_losses}


def evaluate(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """L, G and Hessians for a stack of z [s(p + 2p²)]."""
    problem, Z = block.problem(options, arrays), arrays["Z"]
    multipliers: FloatArray | None = arrays.get("multipliers")
    if problem is None:
        second = np.zeros((*Z.shape, Z.shape[1]))
        sums = Sums(np.zeros(Z.shape), second, None if multipliers is None else second)
    else:
        sums = problem.evaluate_many(Z, multipliers)
    return {name: array for name, array in sums._asdict().items() if array is not None}


def paired(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of the excess loss of h_z over the own model [5p]."""
    problem = block.problem(options, arrays)
    none = np.zeros((5, arrays["totals"].size))
    return {"moments": none if problem is None else problem.paired_moments(arrays["z"])}


def evidence(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Weights, losses and extremes of each source: sums, but for the extremes [6p]."""
    starts = dict.fromkeys(("weight", "squares", "losses", "own"), 0.0)
    starts |= {"least": np.inf, "largest": -np.inf}
    table = np.tile(list(starts.values()), (block.tables.n_sources, 1))
    for k, home in block.samples(options, arrays).items():
        w, both = home.weights, np.concatenate([home.losses, home.own])
        sums = w @ home.by_group(home.losses), w @ home.by_group(home.own)
        table[k] = w.sum(), w @ w, *sums, both.min(), both.max()
    return dict(zip(starts, table.T, strict=True))


def quantiles(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Of each source's losses and own losses, which about ten rows exceed; else −inf [p]."""
    found = np.full(block.tables.n_sources, -np.inf)
    for k, home in block.samples(options, arrays).items():
        found[k] = home.quantile(float(arrays["part"]))
    return {"quantiles": found}


def below(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Counts of losses and own losses of each source up to each threshold [4pg].

    thresholds are (p, 2, 2, g): of losses and own losses, two sequences each.
    """
    counts = np.zeros(arrays["thresholds"].shape)
    for k, home in block.samples(options, arrays).items():
        for i, losses in enumerate((home.losses, home.own)):
            at = arrays["thresholds"][k, i]
            counts[k, i] = np.searchsorted(np.sort(losses), at, side="right")
    return {"counts": counts}


def exact_upper(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The largest bound over the sources here, of each fold [K]."""
    known = options["kind"], float(arrays["c"]), float(arrays["delta"]), options["method"]
    n_folds = int(arrays["folds"]) if options["judged"] == "folds" else 1
    given = *known, n_folds, float(arrays.get("t", 0.0))
    uppers = [home.exact_uppers(*given) for home in block.samples(options, arrays).values()]
    return {"uppers": np.max([np.full(n_folds, -np.inf), *uppers], axis=0)}


def moments(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments (p, 7) of what is bounded at each source, and weights and sums of its tail [9p]."""
    p = block.tables.n_sources
    found, tail = np.zeros((p, len(Moments._fields))), np.zeros((p, 2))
    known = options["kind"], float(arrays["c"]), float(arrays.get("t", 0.0))
    for k, home in block.samples(options, arrays).items():
        found[k], tail[k] = home.moments(*known)
    return {"moments": found, "tail": tail}


def theorems(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """The sums that theorems need, for each part: see `TheoremSums` [K(2p + 6)]."""
    used, tables = read_average(options, arrays), block.tables
    fold = block.fold(arrays) if options["judged"] == "folds" else None
    none = {
        "losses": np.zeros(tables.n_sources),
        "own": np.zeros(tables.n_sources),
        **dict.fromkeys(("largest", "disagreement"), -np.inf),
        **dict.fromkeys(("lowest", "floor"), np.inf),
        **dict.fromkeys(("away", "spared"), 0.0),
    }
    told = [dict(none) for _ in used.parts]
    for t, part in enumerate(used.parts):
        rows = tables if fold is None else tables.taken(np.flatnonzero(fold == t))
        if rows.n_points:
            weighed = rows.heard(part.consulting).weighed(part.calibration)
            known = options["loss"], part.eta, part.rule, arrays["totals"][t]
            points = TheoremSums.of(weighed.judgement(*known), part.z, asked=bool(arrays["asked"]))
            values = {name: getattr(points, name) for name in none}
            told[t] |= {name: value for name, value in values.items() if value is not None}
    return {name: np.array([one[name] for one in told]) for name in none}


def beside(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Σ w ℓ by source of the reference predictions, as it is and clipped: (ways, p) [2(p + 2)p]."""
    tables, cap = block.tables, float(arrays["clip"])
    known = block.judge(options), float(arrays["constant"])
    losses = np.array(reference_point_losses(tables, *known))
    members = (np.arange(tables.n_sources)[:, None] == tables.domain) * tables.weights
    return {"plain": losses @ members.T, "clipped": np.minimum(losses, cap) @ members.T}


def cross(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of the loss of each model k on the rows of each source j: (p, p, 7) [7p²]."""
    losses = block.tables.point_losses(options["loss"])
    return {"moments": moments_by_source(losses, block.tables)}


def advice(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Moments of the own models' losses on own rows, and of the consulting gains [14p]."""
    used, tables = read_average(options, arrays), block.tables
    return {"moments": gain_moments(tables, used, block.fold(arrays), options["loss"])}


def novelty(block: Block, options: Options, arrays: Arrays) -> dict[str, Any]:
    """Quantiles of the log-densities of own rows, from the least to the largest [p(q + 1)]."""
    tables, q = block.tables, int(arrays["quantiles"])
    found, rows = np.zeros((tables.n_sources, q)), np.zeros(tables.n_sources)
    for k, row in enumerate(tables.log_masses):
        own = np.sort(row[tables.rows_of(k)])
        rows[k] = own.size
        if own.size:
            # Of those at hand, so that -inf is not averaged with a number.
            found[k] = own[np.linspace(0, own.size - 1, q).round().astype(np.intp)]
    return {"quantiles": found, "rows": rows}


_LEARNING = check, count, floor, calibrate, tally, gains, pools, sample, baseline, evaluate, paired
_CERTIFYING = (
    *(evidence, quantiles, below, exact_upper, moments, theorems, beside, cross, advice, novelty),
)
QUERIES: dict[str, Callable[[Block, Options, Arrays], dict[str, Any]]] = {
    query.__name__: query for query in (*_LEARNING, *_CERTIFYING)
}
