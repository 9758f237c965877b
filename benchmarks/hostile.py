"""Thousands of damaged and hostile source folders, and the memory that reading them takes.

    python -m benchmarks.hostile [2000]

The reader's own memory and that of its audit are measured; both must stay below 1 GB.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.exchange.hostile_folders import MAY_PASS, hostile_folders, verdict_of_reading


def main(n: int = 2000) -> None:
    started, seen = time.perf_counter(), Counter()
    with tempfile.TemporaryDirectory() as parent:
        for name, folder in hostile_folders(Path(parent), n):
            answer = verdict_of_reading(folder)
            assert answer == "refused" or name in MAY_PASS, f"{name} passed"
            seen[name, answer] += 1
    for (name, answer), count in sorted(seen.items()):
        print(f"{name:<18}{answer:<10}{count:>6}")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
    seconds = time.perf_counter() - started
    print(f"{n} folders in {seconds:.0f} s; most memory: reader {own:.0f} MB, audit {child:.0f} MB")
    assert max(own, child) < 1024


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
