"""What do the defaults cost on real tables, beside the same trees weighed by kernels?

    python -m benchmarks.tables [--quick] [DATA]

Seconds of the processor in one thread, in one run: only their ratios mean something.
"""

import argparse
import os
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from anymix.sources import SecondRound
from experiments.evidence_methods import learner, paper_density, weighted
from experiments.evidence_sets import LOADERS, EvidenceSet
from experiments.made_up import made_up_evidence

SETS = ("heart", "cars")
N_ASKED = 100_000


def seconds(action: Any) -> tuple[float, Any]:
    """Return the processor's seconds of an action, and its answer."""
    start = process_time()
    found = action()
    return process_time() - start, found


def parts_of(model: Any) -> list[Any]:
    """Every model that a prediction asks, once, however many sources hear it."""
    found: dict[int, Any] = {}
    for source in model.sources_:
        asked = source.predictor
        each = (*asked.others, asked.rest) if isinstance(asked, SecondRound) else (asked,)
        found |= {id(one): one for one in each}
    return list(found.values())


def measure(rows: EvidenceSet, n_asked: int) -> dict[str, float]:
    """Fit and ask the default, and fit the same learner with kernels and no consulting."""
    given = {"X": rows.X, "y": rows.y, "sample_domain": rows.domain}
    density = paper_density(rows, 0)
    plain = weighted(rows, 0, estimator=learner(rows), density=density, consult=False)
    model = weighted(rows, 0)
    fitted = {"kernels": seconds(lambda: plain.fit(**given))[0]}
    fitted["default"] = seconds(lambda: model.fit(**given))[0]
    some = np.resize(np.arange(len(rows.y)), n_asked)
    X = rows.take(some).X
    whole, _ = seconds(lambda: model.predict(X))
    encoded = model.columns_.encode(X)

    def ask_parts() -> None:
        for one in parts_of(model):
            one.predict_proba(encoded) if rows.classification else one.predict(encoded)
        if model.router_ is not None:
            model.router_.log_responsibilities(encoded)
        else:
            for source in model.sources_:
                source.log_density(encoded)

    return {
        "fit": fitted["default"],
        "fit / same trees with kernels": fitted["default"] / fitted["kernels"],
        "predict": whole,
        "predict / parts alone": whole / seconds(ask_parts)[0],
    }


def main(quick: bool = False, data: str | None = None) -> None:
    """Print a line for each set."""
    folder = Path(data or os.environ.get("ANYMIX_DATA", "../shared/data"))
    sets = made_up_evidence()[:1]
    if not quick and folder.exists():
        sets = [LOADERS[name](folder) for name in SETS]
    with threadpool_limits(limits=1):
        for rows in sets:
            found = measure(rows, 2000 if quick else N_ASKED)
            told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
            print(f"{rows.name} ({len(rows.y)} rows): {told}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("data", nargs="?")
    main(**vars(parser.parse_args()))
