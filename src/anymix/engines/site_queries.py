"""The queries that a site accepts: those of the protocol, with arrays within bounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anymix.core import N_CANDIDATES, TASK_LOSSES, get_loss
from anymix.exceptions import InputError
from anymix.sources import N_FOLDS, QUERIES, Arrays, Query, Tables, read_average

# "sample" is rows, and "novelty" the log-densities of single rows; "below" is for sources whose
# rows lie at several sites.
ANSWERED = frozenset(QUERIES) - {"sample", "novelty", "below"}
# A sum over few rows reveals them; these would ask for one.
NEVER = {"share", "seed", "shares"}
LARGEST = 10**6
# Most z of a query: a fit asks for a few, and a stack costs a site time and memory.
MOST_Z = 64
# Temperature by sharpness of a calibration: benchmarks/federated.py shows what sharper ones tell.
LEAST_WIDTH = 0.1
# Largest weight of a pool.  Steeper ones count rows on one side of a plane.
MOST_PULL = 100.0
# What each array may hold; the number of a part is not in its name here.
BOUNDS: Mapping[str, tuple[float, float]] = {
    **{"Z": (-1e-9, 1.0 + 1e-6), "z": (-1e-9, 1.0 + 1e-6), "multipliers": (-1e9, 1e9)},
    **{"eta": (0.0, 1.0), "width": (0.0, 1e15), "parts": (1, N_FOLDS)},
    **{"folds": (1, N_FOLDS), "without": (-1, N_FOLDS - 1), "spread": (0, 0)},
    **{"homes": (0, 1), "aside": (0, 1), "asked": (0, 1), "counts": (0, 1e15), "totals": (0, 1e15)},
    **{"temperature": (1e-9, 1e9), "offset": (-1e6, 1e6), "floor": (-1e6, 0.0)},
    **{"sharpness": (1e-9, 100.0), "doubt": (0.0, 10.0), "theta": (-1e6, 1e6)},
    **{"ears": (-MOST_PULL, MOST_PULL), "ear_offset": (-1e6, 1e6), "reach": (0.0, 1e15)},
    **{"choice": (0, N_CANDIDATES - 1), "general": (0, 2**48)},
    **{"part": (1.0, 1.0), "c": (0.0, 1e300), "delta": (0.0, 1.0), "t": (0.0, 0.0)},
    **{"clip": (0.0, np.inf), "constant": (-1e15, 1e15)},
}
OPTIONS: Mapping[str, frozenset[str]] = {
    "rule": frozenset({"marginal"}),
    "judged": frozenset({"folds", "alone"}),
    "kind": frozenset({"loss", "regret", "above"}),
    "method": frozenset({"betting", "bernstein", "hoeffding", "binomial", "student"}),
}


def check_query(query: Query, tables: Tables) -> None:
    """Refuse queries that the protocol does not need, and arrays with wrong shapes or values."""
    where, arrays, p = f"the query {query.name!r:.60}", query.arrays, tables.n_sources
    if query.name not in ANSWERED:
        raise InputError(where, "is not answered by sites")
    task = "regression" if tables.classes is None else "classification"
    for name, value in query.options.items():
        allowed = OPTIONS.get(name, frozenset())
        if name == "loss":
            known = get_loss(value) == get_loss(TASK_LOSSES[task])
        else:
            known = isinstance(value, str) and value in allowed
        if not known:
            raise InputError(where, f"has {name} {value!r:.60}, which the protocol does not need")
    for name, array in arrays.items():
        _check_array(where, name, array)
    _check_simplex(where, arrays, p)
    _check_widths(where, arrays, p)
    if int(arrays.get("folds", np.array(1))) not in (1, N_FOLDS):
        raise InputError(where, f"assigns the rows to {arrays['folds']} folds, not to {N_FOLDS}")
    # Shapes and bounds of the combinations that the query describes.
    if "parts" in arrays:
        read_average(query.options, arrays).check()


def _check_array(where: str, name: str, array: np.ndarray) -> None:
    if name in NEVER:
        raise InputError(where, "is about some of the rows; sites answer for all or a fold")
    if array.dtype.kind not in "biuf" or array.size > LARGEST:
        raise InputError(where, f"has {name!r:.40} of {array.size} {array.dtype} values")
    stem, _, number = name.partition(".")
    if stem not in BOUNDS or (number and not number.isdecimal()):
        raise InputError(where, f"has {name!r:.40}, which the protocol does not need")
    if np.isnan(array).any() or (stem != "clip" and not np.isfinite(array).all()):
        raise InputError(where, f"has {name!r:.40} that are not finite")
    low, high = BOUNDS[stem]
    # Points off the simplex have no meaning, and some would single rows out; so says their check.
    if stem not in ("Z", "z") and array.size and not (low <= array.min() <= array.max() <= high):
        raise InputError(where, f"has {name!r:.40} outside of {low:g} to {high:g}")


def _check_simplex(where: str, arrays: Arrays, p: int) -> None:
    for name in ("Z", "z"):
        Z = np.atleast_2d(arrays.get(name, np.full(p, 1.0 / p)))
        if Z.ndim != 2 or Z.shape[1] != p:
            raise InputError(where, f"has {name} of shape {Z.shape} for {p} sources")
        if len(Z) > MOST_Z:
            raise InputError(where, f"has {len(Z)} z; sites answer for {MOST_Z} at once")
        if (Z < -1e-9).any() or (np.abs(Z.sum(axis=1) - 1.0) > 1e-6).any():
            raise InputError(where, f"has {name} off the simplex")


def _check_widths(where: str, arrays: Arrays, p: int) -> None:
    """With a sharper calibration a loss would jump when an offset passes the odds of one row."""
    cause = f"has a calibration that is sharper than 1/{LEAST_WIDTH:g}"
    for name, array in arrays.items():
        if name.split(".")[0] == "temperature":
            sharpness = arrays.get(name.replace("temperature", "sharpness"), np.array(1.0))
            if not (array >= LEAST_WIDTH * sharpness).all():
                raise InputError(where, cause)
    if "theta" in arrays:
        if arrays["theta"].shape != (2 * p,):
            raise InputError(where, f"has theta of {arrays['theta'].size} values, not {2 * p}")
        if np.abs(arrays["theta"][:p]).max() > 1.0 / LEAST_WIDTH:
            raise InputError(where, cause)
