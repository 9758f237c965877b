"""How likely rows are at home, where the tables of a model do not tell.

That is so beside a classifier of sources, whose tables hold responsibilities, and where the scores
in the tables are log D_k/U of a reference U.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import AuditError
from anymix.exchange import FileFacts, check_facts, load_arrays
from anymix.sources import Novelty, Tables
from anymix.storage import read_file

LIMIT = 50 * 10**6
TYPES = {"own": np.float64, "sizes": np.int64}


def novelty_to_arrays(model: Any) -> dict[str, NDArray[Any]] | None:
    """Return the log-densities of all sources at home, one after the other, and how many they are.

    None where there are none, or where the tables give them again.
    """
    novelty: Novelty | None = getattr(model, "novelty_", None)
    if novelty is None or novelty.is_of(model.tables_):
        return None
    sizes = np.array([own.size for own in novelty.own], dtype=np.int64)
    return {"own": np.concatenate(novelty.own).astype(np.float64), "sizes": sizes}


def read_novelty(path: Path, stated: FileFacts, tables: Tables) -> Novelty:
    """Read what a stranger wrote; sources have no more rows at home than the tables have."""
    content = read_file(path, LIMIT)
    check_facts(path, content, stated)
    arrays = load_arrays(content, str(path))
    if {name: array.dtype for name, array in arrays.items()} != TYPES:
        raise AuditError(path, f"must hold the arrays {sorted(TYPES)}, of float64 and int64")
    own, sizes = arrays["own"], arrays["sizes"]
    rows = np.bincount(np.asarray(tables.sample_domain), minlength=len(tables.log_masses))
    sound = sizes.shape == rows.shape and own.shape == (int(sizes.sum()),)
    if not sound or (sizes < 1).any() or (sizes > rows).any():
        raise AuditError(path, "has not as many numbers of each source as it can have rows")
    # A density may be zero, and its logarithm then -inf.
    if np.isnan(own).any() or (own == np.inf).any():
        raise AuditError(path, "has numbers that are no logarithms of densities")
    parts = np.split(own, np.cumsum(sizes)[:-1])
    if any((part[1:] < part[:-1]).any() for part in parts):
        raise AuditError(path, "has numbers that are not sorted")
    return Novelty(tuple(parts))
