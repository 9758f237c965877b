"""Some rows of a study, run alone and put into the records of the whole.

A study whose module has `run_part(data, seeds, progress, only)` can run the methods named in `only`
on its own splits.  The header of the records then lists what was run apart, with version and date.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.runner import (
    STUDIES,
    Progress,
    Result,
    header,
    quiet,
    read_records,
    write_records,
)


def run_part(
    name: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    data: Path | str | None = None,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run some methods of a study on some seeds; write header and records to `out` if given."""
    module: Any = import_module(f"experiments.{name}") if name in STUDIES else None
    if not hasattr(module, "run_part"):
        raise ValueError(f"No study {name!r} has rows that run alone; run the whole study.")
    folder = data or os.environ.get("ANYMIX_DATA")
    start = time.perf_counter(), time.process_time()
    where = Path(folder) if folder else None
    results = list(module.run_part(where, seeds, progress or quiet, methods))
    missing = set(methods) - {r.method for r in results}
    if missing:
        raise ValueError(f"The study {name} runs no rows {sorted(missing)} alone; check the names.")
    if out is not None:
        spent = time.perf_counter() - start[0], time.process_time() - start[1]
        head = header(name, len(seeds), *spent)
        write_records(out, head | {"methods": [*methods], "of_seeds": [*seeds]}, results)
    return results


def merge(path: Path | str, parts: Sequence[Path | str]) -> None:
    """Put the records of parts in the place of the same methods, protocols and seeds of a file.

    A method that the file lacks comes in beside one of its part that it has.
    """
    head, old = read_records(path)
    one, new = _joined([read_records(part) for part in parts])
    if head["study"] != one["study"]:
        raise ValueError(f"{path} holds {head['study']} and not {one['study']}; give one study.")
    groups: dict[tuple[str, int], list[Result]] = {}
    for r in new:
        groups.setdefault((r.protocol, r.seed), []).append(r)
    merged: list[Result] = []
    for r in old:
        key = (r.protocol, r.seed)
        if r.method not in one["methods"] or r.seed not in one["of_seeds"]:
            merged.append(r)
        elif key in groups:
            merged.extend(groups.pop(key))
    if groups:
        raise ValueError(
            f"{path} has no row of {one['methods']} for {sorted(groups)}; run the whole study."
        )
    kept = [p for p in head.get("parts", []) if not _replaced(p, one)]
    write_records(path, head | {"parts": [*kept, one]}, merged)


def _joined(
    parts: Sequence[tuple[dict[str, Any], list[Result]]],
) -> tuple[dict[str, Any], list[Result]]:
    """One header for parts that ran the same methods on several seeds."""
    heads = [head for head, _ in parts]
    for key in ("study", "methods", "version"):
        if any(head[key] != heads[0][key] for head in heads):
            raise ValueError(f"The parts differ in {key}; merge them one after the other.")
    total = {key: round(sum(h[key] for h in heads), 1) for key in ("seconds", "processor_seconds")}
    seeds = sorted({seed for head in heads for seed in head["of_seeds"]})
    joined = heads[-1] | total | {"of_seeds": seeds}
    joined["command"] = joined["command"].rpartition(" ")[0] + f" {len(seeds)}"
    return joined, [r for _, results in parts for r in results]


def _replaced(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether all that an older part ran was run again."""
    return all(set(old[key]) <= set(new[key]) for key in ("methods", "of_seeds"))
