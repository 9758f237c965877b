"""How a site answers: queries that are sums over its rows, if they are sound; no others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anymix.core import Sums
from anymix.exceptions import InputError
from anymix.sources import N_FOLDS, QUERIES, Arrays, Block, Query, Tables

# "sample" is rows, and "novelty" the log-densities of single rows.
ANSWERED = frozenset(QUERIES) - {"sample", "novelty"}
# A sum over few rows tells of them; these would ask for one.
NEVER = {"share", "seed", "shares"}
MAY_BE_INFINITE = {"clip"}
LARGEST = 10**6
# Temperature by sharpness of a calibration: benchmarks/federated.py shows what sharper ones tell.
LEAST_WIDTH = 0.1
RECORDS = {"Query": Query}


def part_of_site(tables: Tables) -> Block:
    """Return a part that answers for a site; how likely its rows are stays there."""
    return Block(replace(tables, has_densities=False), shares_rows=False)


def answer(question: Any, part: Block) -> Arrays:
    """Answer, or refuse in one sentence."""
    check_question(question, part.tables.n_sources)
    try:
        found = part.answer(question.name, question.options, dict(question.arrays))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise InputError(f"the question {question.name!r}", f"is incomplete: {error}") from error
    return own_sums(found, home_of(part)) if question.name == "evaluate" else found


def check_question(question: Any, p: int) -> None:
    """Refuse queries that are not answered, and arrays of wrong shapes or odd numbers."""
    if not isinstance(question, Query) or question.name not in ANSWERED:
        name = getattr(question, "name", type(question).__name__)
        raise InputError(f"the question {name!r:.60}", "is not answered by sites")
    where = f"the question {question.name!r}"
    for name, array in question.arrays.items():
        if name in NEVER:
            raise InputError(where, "is about some of the rows; sites answer for all or a fold")
        if array.dtype.kind not in "biuf" or array.size > LARGEST:
            raise InputError(where, f"has {name!r:.40} of {array.size} {array.dtype} values")
        if not np.isfinite(array).all() and name not in MAY_BE_INFINITE:
            raise InputError(where, f"has {name!r:.40} that are not finite")
    _check_weights(where, question.arrays, p)
    _check_folds(where, question.arrays)
    _check_calibrations(where, question.arrays)


def _check_folds(where: str, arrays: Arrays) -> None:
    """All rows, or all but a fold of the usual ones: differences of smaller ones tell of rows."""
    if int(arrays.get("folds", np.array(1))) not in (1, N_FOLDS):
        raise InputError(where, f"deals the rows out to {arrays['folds']} folds, not to {N_FOLDS}")


def _check_calibrations(where: str, arrays: Arrays) -> None:
    """No calibration is so sharp that a loss jumps when an offset passes the odds of one row."""
    for name, temperature in arrays.items():
        if name.split(".")[0] == "temperature":
            sharpness = arrays.get(name.replace("temperature", "sharpness"), np.array(1.0))
            if not (temperature >= LEAST_WIDTH * sharpness).all():
                raise InputError(where, f"has a calibration that is sharper than 1/{LEAST_WIDTH:g}")


def _check_weights(where: str, arrays: Arrays, p: int) -> None:
    """Every z is a point of the simplex: no other has a meaning, and some would single rows out."""
    for name in ("Z", "z"):
        Z = np.atleast_2d(arrays.get(name, np.full(p, 1.0 / p)))
        if Z.ndim != 2 or Z.shape[1] != p:
            raise InputError(where, f"has {name} of shape {Z.shape} for {p} sources")
        if (Z < -1e-9).any() or (np.abs(Z.sum(axis=1) - 1.0) > 1e-6).any():
            raise InputError(where, f"has {name} off the simplex")


def home_of(part: Block) -> int:
    """The source that all rows of a site are of."""
    return int(np.asarray(part.tables.sample_domain)[0])


def own_sums(found: Arrays, k: int) -> Arrays:
    """Take what is of source k; of the others a site has no rows, and zeros need not travel."""
    own = {"losses": found["losses"][:, k], "slopes": found["jacobians"][:, k]}
    return own | ({"hessians": found["hessians"]} if "hessians" in found else {})


def spread(own: Arrays, k: int) -> Arrays:
    """Put the sums of source k where they belong among those of all.

    >>> spread({"losses": np.array([0.5]), "slopes": np.array([[1.0, -1.0]])}, 1)["losses"]
    array([[0. , 0.5]])
    """
    s, p = own["slopes"].shape
    sums = Sums(np.zeros((s, p)), np.zeros((s, p, p)), own.get("hessians"))
    sums.losses[:, k], sums.jacobians[:, k] = own["losses"], own["slopes"]
    return {name: array for name, array in sums._asdict().items() if array is not None}
