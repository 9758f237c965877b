"""Rounds that were answered, on disk: a fit that was broken off asks nothing twice.

A learner is deterministic, so that it asks the same questions again; those that were answered are
answered from here, and the first new one is where it left off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.engines.wire import Arrays
from anymix.exceptions import InputError
from anymix.storage import replacing

CHECKPOINT = "checkpoint.json"


def key_of(arrays: Arrays) -> str:
    """SHA-256 of a packed question: the same question has the same key.

    >>> z = np.array([0.5, 0.5])
    >>> key_of({"z": z}) == key_of({"z": z.copy()}), key_of({"z": z}) == key_of({"z": z * 0.9})
    (True, False)
    """
    found = sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        found.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        found.update(array.tobytes())
    return found.hexdigest()


class Journal:
    """Packed answers of all sites, by question; in a folder, or in memory alone.

    `sites` are the names of the sites in order; a journal of others is refused.
    """

    def __init__(self, folder: str | Path | None, sites: Sequence[str]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.sites = list(sites)
        self.known: dict[str, list[Arrays]] = {}
        self.n_rounds = 0

    def resume(self) -> int:
        """Read the rounds that are there; return how many."""
        if self.folder is None:
            return 0
        for path in sorted(self.folder.glob("round-*.npz")):
            with np.load(path, allow_pickle=False) as file:
                self._take({name: file[name] for name in file.files}, path)
            self.n_rounds += 1
        return self.n_rounds

    def clear(self) -> None:
        """Forget the rounds of an earlier fit."""
        if self.folder is not None:
            for path in [*self.folder.glob("round-*.npz"), self.folder / CHECKPOINT]:
                path.unlink(missing_ok=True)

    def add(self, answered: Mapping[str, list[Arrays]]) -> None:
        """Keep the answers of one round, whole or not at all."""
        self.n_rounds += 1
        self.known |= answered
        if self.folder is None:
            return
        told: dict[str, NDArray[Any]] = {"sites": np.array(self.sites)}
        for key, answers in answered.items():
            for site, arrays in enumerate(answers):
                told |= {f"{key}.{site}.{name}": array for name, array in arrays.items()}
        with replacing(self.folder / f"round-{self.n_rounds:05d}.npz") as temporary:
            np.savez(temporary, allow_pickle=False, **told)

    def note(self, state: Mapping[str, Any]) -> None:
        """Write for people how far the fit has come: rounds, the last z, why it ended."""
        if self.folder is not None:
            with replacing(self.folder / CHECKPOINT) as temporary:
                temporary.write_text(json.dumps({"rounds": self.n_rounds, **state}, indent=1))

    def _take(self, told: dict[str, NDArray[Any]], path: Path) -> None:
        if told.pop("sites").tolist() != self.sites:
            raise InputError(path, "is of other sites; choose another folder, or start anew")
        for entry, array in told.items():
            key, site, name = entry.split(".", 2)
            answers = self.known.setdefault(key, [{} for _ in self.sites])
            answers[int(site)] = {**answers[int(site)], name: array}
