"""Arrays in an unnamed temporary file: written once, read as copies, deleted with the process."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anymix._arrays import FloatArray
from anymix.core import Loss, OwnMeasure, Problem
from anymix.exceptions import InputError
from anymix.sources import Tables

# Every array begins at a multiple of it.
ALIGNED = 64


@dataclass(frozen=True)
class Kept:
    """The positions of some named arrays in the file of a store."""

    file: BinaryIO
    offset: int
    layout: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]

    def read(self) -> dict[str, NDArray[Any]]:
        """Return the arrays."""
        sizes = [_aligned(dtype.itemsize * math.prod(shape)) for _, dtype, shape in self.layout]
        content: Any = np.empty(sum(sizes), dtype=np.uint8)
        done = start = 0
        # At a place, and not after the last read: several threads read at once.
        while done < content.size:
            got = os.preadv(self.file.fileno(), [content[done:]], self.offset + done)
            if not got:
                raise OSError("the temporary file is shorter than what was written to it.")
            done += got
        found = {}
        for (name, dtype, shape), size in zip(self.layout, sizes, strict=True):
            n_bytes = dtype.itemsize * math.prod(shape)
            found[name] = content[start : start + n_bytes].view(dtype).reshape(shape)
            start += size
        return found


class Store:
    """A temporary file of arrays, in float32 unless another type is given.

    Parameters
    ----------
    dtype : "float32" or "float64"
        Of numbers that `keep` rounds.
    folder : path, optional
        Where the file is; by default the folder of temporary files (TMPDIR).

    Examples
    --------
    >>> with Store() as store:
    ...     kept = store.keep(x=np.arange(3.0), n=np.arange(2))
    ...     kept.read()
    {'x': array([0., 1., 2.], dtype=float32), 'n': array([0, 1])}
    """

    def __init__(self, dtype: DTypeLike = "float32", folder: str | Path | None = None):
        self.dtype = dtype
        self.folder = folder
        self.size = 0

    def __enter__(self) -> Self:
        self._file: Any = tempfile.TemporaryFile(dir=self.folder, buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, **arrays: NDArray[Any]) -> Kept:
        """Write arrays, those of fractions rounded, and return what reads them again."""
        rounded = {
            name: np.ascontiguousarray(a, dtype=self.dtype if a.dtype.kind == "f" else a.dtype)
            for name, a in arrays.items()
        }
        layout = tuple((name, a.dtype, a.shape) for name, a in rounded.items())
        kept = Kept(self._file, self.size, layout)
        for array in rounded.values():
            self._write(array.reshape(-1).view(np.uint8))
        return kept

    def _write(self, content: Any) -> None:
        try:
            done = 0
            while done < content.size:
                done += os.pwrite(self._file.fileno(), content[done:], self.size + done)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise InputError(
                f"the folder of temporary files {self.folder or tempfile.gettempdir()}",
                f"has no space next to {self.size / 1e9:.3g} GB of tables; set TMPDIR to a folder "
                "on a larger disk",
            ) from error
        self.size += _aligned(content.size)
        # A hole is nothing to be written, but the file must reach behind the last one.
        os.ftruncate(self._file.fileno(), self.size)


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNED) * ALIGNED


# log r of less is negligible next to η U, and float32 has no such number; a source of which no mass
# were left in a part would be taken for one that has none at all.
LEAST = -85.0


@dataclass(frozen=True)
class StoredTables:
    """Tables in the file of a store, as h − y and responsibilities, which rounding spares."""

    kept: Kept
    n_points: int
    classes: NDArray[Any] | None
    has_densities: bool
    at_label: bool

    @classmethod
    def keep(cls, tables: Tables, store: Store) -> StoredTables:
        """Write labelled tables into a store."""
        total = np.logaddexp.reduce(tables.log_masses, axis=0)
        y, domain = np.asarray(tables.targets), tables.domain
        said = tables.predictions - y if tables.predictions.ndim == 2 else tables.predictions
        arrays: dict[str, NDArray[Any]] = {
            "log_r": tables.log_masses - np.where(np.isneginf(total), 0.0, total),
            "said": said,
            # All their digits: whole numbers are not rounded.
            "targets": y.astype(float).view(np.int64) if y.dtype.kind == "f" else y,
            "domain": domain.astype(np.int32),
        }
        if tables.has_densities:
            arrays["log_total"] = total.view(np.int64)
        if tables.sample_weight is not None:
            arrays["weight"] = tables.sample_weight.view(np.int64)
        flags = tables.classes, tables.has_densities, tables.at_label
        return cls(store.keep(**arrays), tables.n_points, *flags)

    def tables(self) -> Tables:
        """Return the tables, in float64."""
        found = self.kept.read()
        log_masses, said = found["log_r"].astype(float), found["said"].astype(float)
        if self.has_densities:
            log_masses += found["log_total"].view(float)
        y: NDArray[Any] = found["targets"]
        if said.ndim == 2:
            y = y.view(float)
            said += y
        weight = found["weight"].view(float) if "weight" in found else None
        known = self.classes, self.has_densities, self.at_label
        return Tables(log_masses, said, y, found["domain"].astype(np.intp), weight, *known)


def prepare_problem(
    tables: Tables, loss: str | Loss, eta: float, rule: str
) -> tuple[dict[str, NDArray[Any]], tuple[Any, ...]]:
    """Return arrays to be kept of a part, and what else a `StoredProblem` has."""
    totals = np.bincount(tables.domain, tables.sample_weight, tables.n_sources).astype(float)
    near = np.maximum(tables.log_responsibilities(), LEAST)
    # A source without points here has no total yet, and needs none.
    problem = replace(tables, log_masses=near).problem(
        loss, eta, rule, np.where(totals > 0, totals, 1.0)
    )
    h, y = problem.predictions, problem.targets
    if problem.loss.of_error:
        h, y = h - y, np.zeros(0)
    arrays = {"masses": problem.masses, "said": h, "targets": y}
    if tables.sample_weight is not None:
        arrays["weight"] = tables.sample_weight[np.argsort(tables.domain, kind="stable")]
    bounds = cast(OwnMeasure, problem.measure).bounds
    return arrays, (bounds, problem.loss, problem.eta, totals)


@dataclass(frozen=True)
class StoredProblem:
    """A part of a problem in the file of a store, read anew for every query.

    `totals` (p,) is what the weights of each source sum to over all parts.
    """

    kept: Kept
    bounds: NDArray[np.intp]
    loss: Loss
    eta: float
    totals: FloatArray

    def __call__(self) -> Problem:
        """Read the tables; the problem is in float64, as all sums are."""
        found, n = self.kept.read(), int(self.bounds[-1])
        of_each = np.repeat(1.0 / np.where(self.totals > 0, self.totals, 1.0), np.diff(self.bounds))
        measure = OwnMeasure(of_each * found.get("weight", 1.0), self.bounds)
        y = np.zeros(n) if found["targets"].size < n else found["targets"]
        return Problem(found["masses"], found["said"], y, self.loss, self.eta, measure)

    def some(self, shares: FloatArray, seed: int) -> tuple[NDArray[Any], ...]:
        """Draw a share of each source's points: masses, predictions, targets, weights, domain."""
        whole, rng = self(), np.random.default_rng(seed)
        domain = np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))
        rows = np.flatnonzero(rng.random(domain.size) < shares[domain])
        weights = cast(OwnMeasure, whole.measure).weights[rows] / shares[domain[rows]]
        tables = whole.masses[:, rows], whole.predictions[:, rows]
        return *tables, whole.targets[rows], weights, domain[rows]


def joined(parts: Iterable[tuple[NDArray[Any], ...]], loss: Loss, eta: float) -> Problem:
    """Return one problem in memory, of points that were drawn from all parts."""
    tables, points = [], []
    for masses, said, *others in parts:
        tables.append((masses, said))
        points.append(others)
    masses, said = (np.concatenate(each, axis=1) for each in zip(*tables, strict=True))
    y, weights, domain = (np.concatenate(each) for each in zip(*points, strict=True))
    order, p = np.argsort(domain, kind="stable"), len(masses)
    weights = (weights / np.bincount(domain, weights, p)[domain])[order]
    measure = OwnMeasure(weights, np.searchsorted(domain[order], np.arange(p + 1)))
    return Problem(masses[:, order], said[:, order], y[order], loss, eta, measure)
