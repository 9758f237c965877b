"""All benchmarks in turn: python -m benchmarks [--quick]."""

import sys

from benchmarks import bigram, kde, kmm, random_problems, solvers


def main(quick: bool = False) -> None:
    """Run every benchmark; the random problems in their small version, which takes seconds."""
    for module in (solvers, random_problems, kde, bigram, kmm):
        print(f"\n=== {module.__name__.removeprefix('benchmarks.')} ===", flush=True)
        module.main(quick=quick or module is random_problems)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
