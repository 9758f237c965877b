"""What each verb does at a part while z is learned; `TablePart` lists them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import get_loss
from anymix.densities import AllPoints, DomainRows, lowest_responsibility
from anymix.engines.judging_verbs import JUDGING
from anymix.engines.questions import Arrays, Words
from anymix.engines.table_part import TablePart, key_of, weights_of
from anymix.exceptions import InputError
from anymix.sources import Tables, consulting_of

Verb = Callable[[TablePart, Words, Arrays], dict[str, Any]]


def check(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Refuse a loss that these rows cannot be judged by."""
    part.tables.check_loss(words["loss"], words["rule"])
    return {}


def count(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Rows, rows with weight and weights of each source by fold, and of what kind the rows are."""
    tables, n_folds = part.tables, int(arrays["folds"])
    p, weight = len(tables.log_masses), weights_of(tables)
    cell = part.fold(arrays) * p + np.asarray(tables.sample_domain)
    shape, size = (n_folds, p), n_folds * p
    homes = [weight[(tables.sample_domain == k) & (weight > 0)] for k in range(p)]
    y = np.asarray(tables.targets, dtype=float)
    return {
        "rows": np.bincount(cell, minlength=size).reshape(shape),
        "weighed": np.bincount(cell, weight > 0, size).reshape(shape),
        "weights": np.bincount(cell, weight, size).reshape(shape),
        "lightest": [home.min(initial=np.inf) for home in homes],
        "heaviest": [home.max(initial=0.0) for home in homes],
        "classes": 0 if tables.classes is None else len(tables.classes),
        "at_label": tables.at_label,
        "has_densities": tables.has_densities,
        "all_classes": tables.predictions.ndim == 3 and tables.predictions.shape[2] > 1,
        "target_sum": y.sum() if tables.classes is None else 0.0,
    }


def _heard(part: TablePart, arrays: Arrays) -> Tables:
    """The rows with weight of a lesson that may calibrate: of sources that are not set aside."""
    tables = part.lesson(arrays).without(np.flatnonzero(arrays["aside"]).tolist())
    weight = weights_of(tables)
    return tables if weight.min(initial=1.0) > 0 else tables.taken(np.flatnonzero(weight > 0))


def floor(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """The lowest log-responsibility of a lesson's rows."""
    tables = _heard(part, arrays)
    return {"floor": lowest_responsibility(tables.log_masses) if tables.n_points else np.inf}


def _domain_rows(part: TablePart, arrays: Arrays) -> DomainRows | None:
    def made() -> DomainRows | None:
        tables = _heard(part, arrays)
        if not tables.n_points:
            return None
        whole = AllPoints(arrays["counts"], arrays["totals"], float(arrays["floor"]))
        table = np.asarray(tables.log_masses, dtype=float)
        domain = np.asarray(tables.sample_domain)
        return DomainRows(table, domain, weights_of(tables), float(arrays["doubt"]), whole)

    told = {n: a for n, a in arrays.items() if n not in ("temperature", "offset")}
    found: DomainRows | None = part.keep(("domains", key_of({}, told)), made)
    return found


def calibrate(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Value, gradient and Hessian of the domain likelihood."""
    rows, q = _domain_rows(part, arrays), arrays["theta"].size
    found = (0.0, np.zeros(q), np.zeros((q, q)))
    found = found if rows is None else rows.likelihood(arrays["theta"])
    return dict(zip(("value", "gradient", "hessian"), found, strict=True))


def tally(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """How sure responsibilities are, and how right, before and after calibration."""
    rows = _domain_rows(part, arrays)
    none = np.zeros(33)
    known = arrays["temperature"], arrays["offset"]
    return {"tally": none if rows is None else rows.tally(*known)}


def pools(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """The pools of sources whose rows are all here: of the others zeros, so that answers add up."""
    found, tables = part.pools(words, arrays), part.lesson(arrays)
    p, labels = len(tables.log_masses), get_loss(words["loss"]).takes != "number"
    offset = (p, tables.predictions.shape[-1]) if labels else (p,)
    told = {"learned": np.zeros(p), "ears": np.zeros((p, p)), "ear_offset": np.zeros(offset)}
    told["reach"] = np.zeros(p)
    if found:
        learned = consulting_of(tables, found, get_loss(words["loss"]))
        for k in found:
            told["learned"][k], told["ears"][k] = 1.0, learned.weights[k]
            told["ear_offset"][k], told["reach"][k] = learned.offset[k], learned.reach[k]
    return told


def sample(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Rows of some sources, of each about its share of the most that is wanted, by chance."""
    if not part.shares_rows:
        raise InputError(
            "a part that keeps its rows",
            "was asked for a sample of them, since the rows of a source lie in several parts; keep "
            "each source's rows in one part, or learn with consult=False",
        )
    tables = part.lesson(arrays)
    rng, chosen = np.random.default_rng(int(arrays["seed"])), []
    for k, share in enumerate(arrays["shares"]):
        rows = np.flatnonzero(np.asarray(tables.sample_domain) == k)
        most = int(np.ceil(share * rows.size))
        chosen.append(np.sort(rng.permutation(rows)[:most]))
    few = tables.taken(np.concatenate(chosen))
    return {
        "domain": few.sample_domain,
        "predictions": np.moveaxis(few.predictions, 1, 0),
        "targets": few.targets,
        "weight": weights_of(few),
    }


def baseline(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """How many rows there are, and what the own models lose."""
    problem, p = part.problem(words, arrays), arrays["totals"].size
    if problem is None:
        return {"n_points": 0, "own_losses": np.zeros(p)}
    return {"n_points": problem.n_points, "own_losses": problem.own_losses}


def evaluate(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """L, G and Hessians for a stack of z."""
    problem, Z = part.problem(words, arrays), arrays["Z"]
    multipliers: FloatArray | None = arrays.get("multipliers")
    if problem is None:
        s, p = Z.shape
        found: dict[str, Any] = {"losses": np.zeros((s, p)), "jacobians": np.zeros((s, p, p))}
        return found if multipliers is None else found | {"hessians": np.zeros((s, p, p))}
    sums = problem.evaluate_many(Z, multipliers)._asdict()
    return {name: array for name, array in sums.items() if array is not None}


def paired(part: TablePart, words: Words, arrays: Arrays) -> dict[str, Any]:
    """Moments of what h_z loses to the own model at home."""
    problem = part.problem(words, arrays)
    none = np.zeros((5, arrays["totals"].size))
    return {"moments": none if problem is None else problem.paired_moments(arrays["z"])}


LEARNING: tuple[Verb, ...] = (
    check,
    count,
    floor,
    calibrate,
    tally,
    pools,
    sample,
    baseline,
    evaluate,
    paired,
)
VERBS: dict[str, Verb] = {verb.__name__: verb for verb in (*LEARNING, *JUDGING)}
