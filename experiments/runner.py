"""What all studies share: seeds in, flat records out, one JSON line each.

A study is one module of this room with two functions,

    run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]
    rehearse(seeds: Sequence[int], progress: Progress) -> Iterator[Result]

the second of which is the same study on little made-up data, for tests and for a first look; and
one line in `STUDIES`.  Everything else (files, tables, pictures, the page of results) is made from
its records, and the tests of studies run over all that are listed.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np

from anymix._version import __version__
from anymix.core import Record
from anymix.storage import replacing

# How a method was set up; records, tables and pages call it the protocol.
Setup = Literal["as published", "clean", "beyond"]
Progress = Callable[[int, int, str], None]

# The one list of studies: name -> its usual number of seeds.  The module of that name is imported
# when its study is run.
STUDIES = {
    "artificial": 10,
    "theory": 10,
    "sentiment": 10,
    "digits": 3,
    "digits_small": 3,
    "office": 10,
    "evidence": 5,
}


@dataclass(frozen=True)
class Result(Record):
    """One cell of one table for one seed, with the paper's value beside it.

    Attributes
    ----------
    study, table : str
        The study's name and where the cell stands, e.g. "sentiment" and "Table 1".
    protocol : "as published", "clean" or "beyond"
        The paper's way; the paper's method with no test row seen in training; our own additions.
    method, target, metric : str
        Row, column and what is measured.  A table whose columns are numbers is drawn as curves.
    seed : int
    value : float
    privileged : bool
        Whether the method sees what the others may not, such as the target or all rows pooled.
    paper, paper_sd : float or None
        The paper's mean and standard deviation for this cell.

    Examples
    --------
    >>> cell = Result("sentiment", "Table 1", "clean", "DW", "K", "MSE", 0, 1.5, paper=1.45)
    >>> Result(**cell.to_dict()) == cell
    True
    """

    study: str
    table: str
    protocol: Setup
    method: str
    target: str
    metric: str
    seed: int
    value: float
    privileged: bool = False
    paper: float | None = None
    paper_sd: float | None = None


def run_study(
    name: str,
    data: Path | str | None = None,
    n_seeds: int | None = None,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run a study on seeds 0 .. n_seeds - 1; write header and records to `out` if it is given.

    Without a number there are as many seeds as `STUDIES` has for it.

    The folder of the data is `data`, or else the environment's ANYMIX_DATA; without either the
    loaders download what they need.  The same seeds give the same records to the last digit.

    Examples
    --------
    >>> results = run_study("artificial", n_seeds=1)
    >>> regret = {r.method: r.value for r in results if r.target == "regret"}
    >>> regret["DW, anymix (regret)"] < 0 < regret["uniform"]
    True
    """
    n_seeds = STUDIES.get(name, 1) if n_seeds is None else n_seeds
    module = _study(name, n_seeds)
    folder = data or os.environ.get("ANYMIX_DATA")
    start = time.perf_counter(), time.process_time()
    where = Path(folder) if folder else None
    results = list(module.run(where, range(n_seeds), progress or quiet))
    if out is not None:
        spent = time.perf_counter() - start[0], time.process_time() - start[1]
        write_records(out, header(name, n_seeds, *spent), results)
    return results


def rehearse_study(name: str, n_seeds: int = 1, progress: Progress | None = None) -> list[Result]:
    """Run a study on little made-up data: all its tables in seconds, with meaningless numbers.

    Examples
    --------
    >>> results = rehearse_study("artificial")
    >>> results[0].table, results[0].protocol, results[0].seed
    ('Fig. 2, passes', 'as published', 0)
    """
    return list(_study(name, n_seeds).rehearse(range(n_seeds), progress or quiet))


def _study(name: str, n_seeds: int) -> Any:
    if name not in STUDIES:
        raise ValueError(f"There is no study {name!r}; choose one of {', '.join(STUDIES)}.")
    if n_seeds < 1:
        raise ValueError(f"A study needs at least one seed; got {n_seeds}.")
    return import_module(f"experiments.{name}")


def header(
    name: str, n_seeds: int, seconds: float, processor_seconds: float | None = None
) -> dict[str, Any]:
    """Say how the records were made, without naming the machine.

    Processor seconds show what a study costs on a machine that others use as well.
    """
    return {
        "study": name,
        "command": f"python -m experiments {name} --seeds {n_seeds}",
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds, 1),
        "processor_seconds": None if processor_seconds is None else round(processor_seconds, 1),
    }


def write_records(path: Path | str, head: dict[str, Any], results: Iterable[Result]) -> None:
    """Write the header and one JSON object per line."""
    lines = [json.dumps(head), *(result.to_json() for result in results)]
    with replacing(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_records(path: Path | str) -> tuple[dict[str, Any], list[Result]]:
    """Return the header and the records of a file."""
    head, *rows = Path(path).read_text(encoding="utf-8").splitlines()
    return json.loads(head), [Result(**json.loads(row)) for row in rows]


def quiet(done: int, total: int, what: str) -> None:
    """Report nothing."""


class ProgressLine:
    """Say on a stream what is done and how long the rest will take.

    On a terminal one line is overwritten; a file gets a line for each step.

    Examples
    --------
    >>> import sys
    >>> ProgressLine(sys.stdout)(1, 4, "split 1")
    [1/4] split 1, ... left
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.start = time.perf_counter()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Report that `done` of `total` steps are done, the last of them `what`."""
        spent = time.perf_counter() - self.start
        left = f"{clock(spent / done * (total - done))} left" if done else "starting"
        line = f"[{done}/{total}] {what}, {left}"
        if self.stream.isatty():
            end = "\n" if done == total else ""
            self.stream.write(f"\r\x1b[K{line}{end}")
        else:
            self.stream.write(f"{line}\n")
        self.stream.flush()


def clock(seconds: float) -> str:
    """Write a duration.

    >>> clock(42), clock(192), clock(7260)
    ('42 s', '3 min 12 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def mean_rows(results: Sequence[Result], over: Sequence[str] = ()) -> Iterator[Result]:
    """Yield for each table, method and seed its mean over the columns `over`, as target "mean".

    All columns count if none is named.  The paper prints a mean of its own, which is left alone.
    """
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for r in results:
        if not over or r.target in over:
            key = (r.study, r.table, r.protocol, r.method, r.metric, r.seed, r.privileged)
            groups.setdefault(key, []).append(r)
    for (study, table, protocol, method, metric, seed, privileged), cells in groups.items():
        value = float(np.mean([cell.value for cell in cells]))
        yield Result(study, table, protocol, method, "mean", metric, seed, value, privileged)
