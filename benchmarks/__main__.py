"""All benchmarks in turn: python -m benchmarks [--quick]."""

import sys

from benchmarks import (
    adaptation,
    bigram,
    confidence,
    descents,
    estimators,
    federated,
    imports,
    kde,
    kmm,
    monitor,
    monitor_coverage,
    office,
    poison,
    random_problems,
    reviews,
    sandbox,
    scale,
    site_privacy,
    solvers,
    tables,
)

# Ten SLSQP starts on 200 problems take hours; `benchmarks.random_problems` alone runs them all.
SMALL = {random_problems, descents}
ALL = (
    imports,
    solvers,
    descents,
    random_problems,
    kde,
    bigram,
    kmm,
    confidence,
    estimators,
    tables,
    scale,
    office,
    reviews,
    monitor,
    monitor_coverage,
    adaptation,
    sandbox,
    site_privacy,
    federated,
    poison,
)


def main(quick: bool = False) -> None:
    """Run every benchmark; the random problems in their small version, which takes seconds."""
    for module in ALL:
        print(f"\n=== {module.__name__.removeprefix('benchmarks.')} ===", flush=True)
        module.main(quick=quick or module in SMALL)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
