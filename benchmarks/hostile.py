"""Thousands of hostile and damaged folders, models, site files and tables, each met by a command.

    python -m benchmarks.hostile [10000]

None may crash the command, hang it, change a file outside, or take more than 1 GB or a minute; each
gets one sentence, or passes.  What passes may be sound: a flipped bit need not show.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.cli.odd_tables import ask, fault_of
from tests.hostile.untrusted_folders import UntrustedFolders

SECONDS, MEGABYTES = 60, 1024


class Late(BaseException):
    """Not an Exception: no handler of the command may take it for its own."""


def late(*_: Any) -> None:
    raise Late


def peak() -> int:
    """Return the most memory, in MB, that this process or the limited one ever had."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return int(max(resource.getrusage(one).ru_maxrss for one in who) // 2**10)


def outside(folder: Path) -> dict[str, tuple[int, int]]:
    """Say what stands where nothing may be written."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for part in ("c", "r", "home")
        for path in (folder / part).rglob("*")
    }


def strike(arguments: list[str]) -> tuple[str, float]:
    """Run a command; return what is wrong with its answer, if anything, and its seconds."""
    begun = time.perf_counter()
    signal.alarm(SECONDS)
    try:
        code, said = ask(arguments)
    except Late:
        return "still running", SECONDS
    finally:
        signal.alarm(0)
    fault = fault_of(code, said, arguments[0])
    return fault or ("passed" if code in (0, 1) else "refused"), time.perf_counter() - begun


def main(n: int = 10_000, seed: int = 0) -> None:
    begun, seen, slowest, faults = time.perf_counter(), Counter(), (0.0, ""), []
    signal.signal(signal.SIGALRM, late)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "home").mkdir()
        os.chdir(folder / "home")
        strangers = UntrustedFolders(folder)
        before = outside(folder)
        for i, case in enumerate(strangers.cases(n, seed)):
            if i and i % 1000 == 0:
                print(f"{i} cases in {time.perf_counter() - begun:.0f} s", flush=True)
            had = peak()
            answer, seconds = strike(case.arguments)
            seen[case.kind, answer if answer in ("passed", "refused") else "FAULT"] += 1
            if answer not in ("passed", "refused"):
                faults.append(f"case {i}, {case.kind}, {case.arguments[:2]}: {answer}")
            slowest = max(slowest, (seconds, f"case {i}, {case.kind}"))
            if peak() > had + 50:
                print(f"case {i}, {case.kind}: {peak()} MB")
            if outside(folder) != before:
                faults.append(f"case {i}, {case.kind}: wrote outside")
                before = outside(folder)
    for (kind, answer), count in sorted(seen.items()):
        print(f"{ascii(kind)[1:-1]:<34}{answer:<10}{count:>6}")
    print(*faults, sep="\n")
    print(f"{n} cases in {time.perf_counter() - begun:.0f} s; most memory {peak()} MB")
    print(f"slowest: {slowest[0]:.1f} s, {slowest[1]}; {len(faults)} faults")
    assert not faults
    assert peak() < MEGABYTES


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
