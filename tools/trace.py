"""Functions and files that one call runs, per package: `python tools/trace.py [-v [PACKAGE]]`.

With -v it lists the calls from one package into another, or every function of one package that ran.
Functions of other libraries in between are skipped.  Modules at the top of the library, such as
`_errors`, belong to no package.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np

import anymix

LIBRARY = str(Path(anymix.__file__).parent)
Called = tuple[str, str]


def package(file: str) -> str:
    """Return the package that a file of the library is in; "top" for a module at its top."""
    parts = Path(file).relative_to(LIBRARY).parts
    return parts[0] if len(parts) > 1 else "top"


@dataclass
class Trace:
    """Every function of the library that runs inside the `with`, as (file, qualified name).

    `crossings` are the pairs of caller and callee in different packages.

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
    crossings: set[tuple[Called, Called]] = field(default_factory=set)

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
        packages = {package(_named(caller)[0]), package(here[0])}
        if len(packages) == 2 and "top" not in packages:
            self.crossings.add((_named(caller), here))

    @property
    def files(self) -> set[str]:
        """The files of these functions."""
        return {file for file, _ in self.functions}

    def names(self, name: str) -> set[str]:
        """Return the qualified names of the functions that ran in a package, or in one file."""
        return {called for file, called in self.functions if file.startswith(f"{LIBRARY}/{name}")}

    def __str__(self) -> str:
        functions = Counter(package(file) for file, _ in self.functions)
        files = Counter(map(package, self.files))
        each = ", ".join(f"{name} {n}/{files[name]}" for name, n in functions.most_common())
        return f"{len(self.functions)} functions in {len(self.files)} files: {each}"


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
    traces = {}
    for _ in range(2):
        model = anymix.DistributionWeightedClassifier(random_state=0)
        with Trace() as traces["fit"]:
            model.fit(X, y, sample_domain=domain)
        with Trace() as traces["predict_proba"]:
            model.predict_proba(X)
    return traces


def of_the_command(folder: Path) -> dict[str, Trace]:
    """Trace `anymix fit` and `anymix predict` on two packed sources."""
    rng, paths = np.random.default_rng(0), [folder / "north", folder / "south"]
    for centre, path in zip((-2.0, 2.0), paths, strict=True):
        for part in ("train", "held"):
            with open(f"{path}_{part}.csv", "w", newline="", encoding="utf-8") as file:
                X, y = rows(rng, centre)
                table = [[*row, label] for row, label in zip(X.tolist(), y, strict=True)]
                csv.writer(file).writerows([["a", "b", "y"], *table])
        pack = ["source", "pack", str(path), "--name", path.name, "--rows", f"{path}_train.csv"]
        _run([*pack, "--task", "classification", "--quiet"])
    held = [f"{path.name}={path}_held.csv" for path in paths]
    fit = ["fit", *map(str, paths), "--held-out", *held, "--out", str(folder / "model"), "--quiet"]
    predict = ["predict", str(folder / "model"), f"{paths[0]}_held.csv", "--weights", "--quiet"]
    predict += ["--out", str(folder / "predictions.csv")]
    return {"anymix fit": _second(fit), "anymix predict": _second(predict)}


def _run(arguments: list[str]) -> None:
    """Run a command; a refusal must not be taken for the work that it refuses."""
    from anymix.cli import main

    status = main(arguments)
    if status:
        raise RuntimeError(f"anymix {' '.join(arguments)} ended with exit code {status}")


def _second(arguments: list[str]) -> Trace:
    """Trace a run after a first one, which imports all it needs and whose output it overwrites."""
    _run(arguments)
    with Trace() as trace:
        _run([*arguments, "--force"])
    return trace


def main(arguments: Sequence[str] = ()) -> None:
    """Print the numbers and, with -v, crossings or the functions of one package."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        traces = of_the_library() | of_the_command(Path(folder))
    for name, trace in traces.items():
        sys.stdout.write(f"{name}: {trace}\n")
        for line in _details(trace, *arguments[1:]) if "-v" in arguments else ():
            sys.stdout.write(f"    {line}\n")


def _details(trace: Trace, of: str = "") -> list[str]:
    if of:
        inside = sorted(called for called in trace.functions if package(called[0]) == of)
        return [f"{Path(file).relative_to(LIBRARY)} {called}" for file, called in inside]
    return [
        f"{package(above)} {caller} -> {package(below)} {callee}"
        for (above, caller), (below, callee) in sorted(trace.crossings)
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
