"""What one call goes through: functions, files and changes of room: `python tools/trace.py [-v]`.

A change of room is a pair of functions of ours, caller and callee, in different rooms; a pair
counts once, however often it is called.  Functions of other libraries between them are skipped, and
so is what stands below all rooms as numpy does: `_arrays`, `_errors`, `_files`.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np

import anymix

LIBRARY = str(Path(anymix.__file__).parent)
Called = tuple[str, str]


def room(file: str) -> str:
    """Return the room that a file of ours is in; "door" for what all share."""
    parts = Path(file).relative_to(LIBRARY).parts
    return parts[0] if len(parts) > 1 else "door"


@dataclass
class Trace:
    """Every function of ours that runs inside the `with`, as (file, name), and who called whom.

    Examples
    --------
    >>> from anymix.core import Problem, solve
    >>> problem = Problem([[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.5], [0.5, 1.0]], [0.0, 1.0])
    >>> with Trace() as trace:
    ...     solution = solve(problem)
    >>> "solve" in trace.names("core")
    True
    """

    functions: set[Called] = field(default_factory=set)
    changes: set[tuple[Called, Called]] = field(default_factory=set)

    def __enter__(self) -> Self:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        here = _named(frame)
        self.functions.add(here)
        caller = next(filter(_is_ours, _callers(frame)), None)
        if caller is None:
            return
        rooms = {room(_named(caller)[0]), room(here[0])}
        if len(rooms) == 2 and "door" not in rooms:
            self.changes.add((_named(caller), here))

    def names(self, name: str) -> set[str]:
        """Return the qualified names of the functions that ran in a room, or in one file of it."""
        inside = {f for f in self.functions if f[0].startswith(f"{LIBRARY}/{name}")}
        return {called for _, called in inside}

    def __str__(self) -> str:
        files = {file for file, _ in self.functions}
        n = [len(self.functions), len(files), len(self.changes)]
        return "{:4d} functions, {:3d} files, {:3d} changes of room".format(*n)


def _is_ours(frame: FrameType) -> bool:
    code = frame.f_code
    # Comprehensions are parts of their function.
    return code.co_filename.startswith(LIBRARY) and not code.co_name.startswith("<")


def _named(frame: FrameType) -> Called:
    return frame.f_code.co_filename, frame.f_code.co_qualname


def _callers(frame: FrameType) -> Iterator[FrameType]:
    above = frame.f_back
    while above is not None:
        yield above
        above = above.f_back


def rows(rng: np.random.Generator, centre: float, n: int = 200) -> tuple[Any, Any]:
    """Draw two numbers a row, and say which rows are far from the middle."""
    X = rng.normal(centre, 1.0, (n, 2))
    return X, np.where(np.abs(X[:, 0]) > 2, "far", "near")


def of_the_library() -> dict[str, Trace]:
    """Trace fit and predict_proba on two sources, after a first run that imports all it needs."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rows(rng, centre)[0] for centre in (-2.0, 2.0)])
    y, domain = np.where(np.abs(X[:, 0]) > 2, "far", "near"), np.repeat(["north", "south"], 200)
    found = {}
    for _ in range(2):
        model = anymix.DistributionWeightedClassifier(random_state=0)
        with Trace() as found["fit"]:
            model.fit(X, y, sample_domain=domain)
        with Trace() as found["predict_proba"]:
            model.predict_proba(X)
    return found


def of_the_command(folder: Path) -> dict[str, Trace]:
    """Trace `anymix fit` and `anymix predict` on two packed sources."""
    from anymix.cli import main

    rng, paths = np.random.default_rng(0), [folder / "north", folder / "south"]
    for centre, path in zip((-2.0, 2.0), paths, strict=True):
        for part in ("train", "held"):
            with open(f"{path}_{part}.csv", "w", newline="", encoding="utf-8") as file:
                X, y = rows(rng, centre)
                table = [[*row, label] for row, label in zip(X.tolist(), y, strict=True)]
                csv.writer(file).writerows([["a", "b", "y"], *table])
        pack = ["source", "pack", str(path), "--name", path.name, "--rows", f"{path}_train.csv"]
        main([*pack, "--task", "classification", "--quiet"])
    held = [f"{path.name}={path}_held.csv" for path in paths]
    fit = ["fit", *map(str, paths), "--held-out", *held, "--out", str(folder / "model"), "--quiet"]
    predict = ["predict", str(folder / "model"), f"{paths[0]}_held.csv", "--weights", "--quiet"]
    predict += ["--out", str(folder / "predictions.csv")]
    return {"anymix fit": _second(main, fit), "anymix predict": _second(main, predict)}


def _second(main: Callable[[list[str]], int], words: list[str]) -> Trace:
    """Trace a run after a first one, which imports all it needs."""
    main(words)
    with Trace() as trace:
        main(words)
    return trace


def main() -> None:
    """Print the numbers and, with -v, every change of room."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        found = of_the_library() | of_the_command(Path(folder))
    for name, trace in found.items():
        sys.stdout.write(f"{name:15} {trace}\n")
        for (above, caller), (below, callee) in sorted(trace.changes if "-v" in sys.argv else ()):
            sys.stdout.write(f"    {room(above)} {caller} -> {room(below)} {callee}\n")


if __name__ == "__main__":
    main()
