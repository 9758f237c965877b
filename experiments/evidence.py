"""The evidence: every way to make one model of several sources, on eight real sets of rows.

Rows are cut 70 : 30 into training and test rows, copies of a row never apart, in each domain alike.
All methods train the same learner on the same rows, and each is asked about the test rows once, at
the end.  Differences are paired: the standard error of the mean difference between two methods is

    se = (1/p) √(Σ_k s_k² / n_k),    s_k the deviation of the differences at the n_k rows of k,

for one split, and the page takes the mean of it over splits or, if that is larger, what the splits
themselves say: the deviation of their differences over √(number of splits).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from experiments.evidence_methods import (
    PRIVILEGED,
    PROTOCOLS,
    methods,
    named_right,
    own_losses,
    row_losses,
)
from experiments.evidence_sets import LOADERS, EvidenceSet
from experiments.made_up import made_up_evidence
from experiments.runner import Progress, Result

SHARE_OF_TEST = 0.3
REFERENCES = ("own", "joint", "best pooled")


class Judged(NamedTuple):
    """What a method loses at each test row, (n,), and the percentage of domains it names right."""

    losses: FloatArray
    right: float | None = None


def run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on the sets in the folder; all are read first, so that none is missed late."""
    yield from study([load(data) for load in LOADERS.values()], seeds, progress)


def run_part(
    data: Path | None, seeds: Sequence[int], progress: Progress, only: Sequence[str]
) -> Iterator[Result]:
    """Run some methods, and those that they are compared with; yield the records of the former."""
    yield from study([load(data) for load in LOADERS.values()], seeds, progress, only)


def rehearse(seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on a little made-up table, the one kind of rows that every method is for."""
    yield from study(made_up_evidence()[:1], seeds, progress)


def study(
    sets: Sequence[EvidenceSet],
    seeds: Sequence[int],
    progress: Progress,
    only: Sequence[str] = tuple(PROTOCOLS),
) -> Iterator[Result]:
    """Run the study on sets of rows: all methods, or some."""
    for i, rows in enumerate(sets):
        for j, seed in enumerate(seeds):
            done = len(PROTOCOLS) * (i * len(seeds) + j)
            total = len(PROTOCOLS) * len(sets) * len(seeds)
            train, test = (rows.take(part) for part in split(rows, seed))
            step = partial(_step, progress, done, total, rows.name)
            judged = judge(train, test, seed, step, {*only, *REFERENCES, "uniform"})
            yield from (r for r in records(test, judged, seed) if r.method in only)
    progress(total, total, "done")


def _step(progress: Progress, done: int, total: int, name: str, n: int, method: str) -> None:
    progress(done + n, total, f"{name}, {method}")


def split(rows: EvidenceSet, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training and test rows: of each domain's groups, drawn in random order, 30 % of rows.

    A group that several domains share is counted in the first of them.

    >>> rows = EvidenceSet("x", "vectors", np.zeros((20, 1)), np.zeros(20),
    ...                    np.repeat(["a", "b"], 10), np.arange(20) // 2, False)
    >>> train, test = split(rows, 0)
    >>> len(train), len(test), np.intersect1d(rows.groups[train], rows.groups[test]).size
    (16, 4, 0)
    """
    rng = np.random.default_rng(seed)
    groups, first, sizes = np.unique(rows.groups, return_index=True, return_counts=True)
    home = rows.domain[first]
    out: list[NDArray[np.intp]] = []
    for name in rows.domains:
        own = rng.permutation(np.flatnonzero(home == name))
        n = sizes[own].cumsum()
        out.append(groups[own[n <= SHARE_OF_TEST * n[-1]]])
    test = np.isin(rows.groups, np.concatenate(out))
    return np.flatnonzero(~test), np.flatnonzero(test)


def judge(
    train: EvidenceSet,
    test: EvidenceSet,
    seed: int,
    step: Callable[[int, str], None],
    only: Collection[str] = tuple(PROTOCOLS),
) -> dict[str, Judged]:
    """Fit methods on the training rows, and evaluate them on the test rows."""
    found: dict[str, Judged] = {}
    chosen = {name: model for name, model in methods(train, seed).items() if name in only}
    for n, (name, model) in enumerate(chosen.items()):
        model.fit(train.X, train.y, sample_domain=train.domain)
        if name == "uniform":
            found["own"] = Judged(own_losses(model, test))
        found[name] = Judged(row_losses(model, test), named_right(model, test))
        step(n + 1, name)
    return found


def records(test: EvidenceSet, judged: Mapping[str, Judged], seed: int) -> Iterator[Result]:
    """Yield mean, worst and regret of each method, each domain's loss, and standard errors."""
    here = [test.domain == name for name in test.domains]
    own = np.array([judged["own"].losses[k].mean() for k in here])
    for name, (losses, right) in judged.items():
        cell = partial(_cell, name, seed)
        loss = np.array([losses[k].mean() for k in here])
        yield cell("Mean loss", test.name, loss.mean())
        yield cell("Worst domain", test.name, loss.max())
        yield cell("Mean regret", test.name, (loss - own).mean())
        yield cell("Worst regret", test.name, (loss - own).max())
        if right is not None:
            yield cell("Right domain", test.name, right, "%")
        errors = {}
        for other in REFERENCES:
            gap = losses - judged[other].losses
            error = np.array([_standard_error(gap[k]) for k in here])
            errors[other] = error
            together = np.sqrt((error**2).sum()) / len(error)
            yield cell(f"Standard error against {other}", test.name, together)
        for k, domain in enumerate(test.domains):
            target = f"{test.name}: {domain}"
            yield cell("Loss in a domain", target, loss[k])
            yield cell("Standard error against own in a domain", target, errors["own"][k])


def _standard_error(gap: FloatArray) -> float:
    return float(gap.std(ddof=1) / np.sqrt(len(gap)))


def _cell(
    method: str, seed: int, table: str, target: str, value: float, metric: str = "loss"
) -> Result:
    return Result(
        "evidence",
        table,
        PROTOCOLS[method],
        method,
        target,
        metric,
        seed,
        float(value),
        method in PRIVILEGED,
    )
