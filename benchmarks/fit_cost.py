"""What does a default `fit` cost, next to the trainings that no cross-fitted method can avoid?

    python -m benchmarks.fit_cost [--quick] [--data ../shared/data] [--sets heart cars]

The floor is K + 1 trainings of each source's learner, the one that fit has chosen, on its own rows:
one without each fold, and one on all rows.  Fit and floor run in processes of their own, one after
the other, in one thread; seconds are those of the processor.  Memory is what each adds to its
process at its peak.
"""

import argparse
import multiprocessing
import os
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.tables import Columns
from experiments.evidence_sets import LOADERS, EvidenceSet, made

N_FOLDS, TARGET = 5, 3.0
SETS = ("heart", "cars", "airline", "digits", "texts")


def made_up_texts(n_domains: int = 12, n: int = 700, seed: int = 0) -> EvidenceSet:
    """Documents of about 80 words, half of them from 3000 words of the domain, and a rating."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, size)) for size in rng.integers(3, 9, 40_000)])
    texts, ratings, domain = [], [], []
    for k in range(n_domains):
        own = 4000 + 3000 * k + np.arange(3000)
        for _ in range(n):
            size = rng.integers(40, 120)
            ranks = np.minimum(rng.zipf(1.2, size) - 1, 2999)
            ids = np.where(rng.random(size) < 0.5, ranks, own[ranks])
            texts.append(" ".join(words[ids]))
            ratings.append(np.mean(ids % 7) + 0.3 * rng.normal())
        domain += [f"domain {k:02}"] * n
    return made("texts", "texts", texts, np.array(ratings), np.array(domain))


def load(name: str, data: Path, quick: bool) -> EvidenceSet:
    """Return a set; a quick run takes every third row."""
    rows = made_up_texts(*((3, 100) if quick else ())) if name == "texts" else LOADERS[name](data)
    return rows.take(np.arange(0, len(rows.y), 3)) if quick and name != "texts" else rows


def fit(rows: EvidenceSet) -> Any:
    """Fit with all settings as they are by default."""
    kind = DistributionWeightedClassifier if rows.classification else DistributionWeightedRegressor
    return kind(random_state=0).fit(rows.X, rows.y, sample_domain=rows.domain)


def floor(rows: EvidenceSet, learner: Any) -> None:
    """Train the learner of each source without each fold, and on all of its rows."""
    columns = Columns.of(rows.X, least=5) if rows.kind == "table" else None
    X = rows.X if columns is None else columns.encode(rows.X)
    fold = np.random.default_rng(0).permutation(len(rows.y)) % N_FOLDS
    for t in range(N_FOLDS + 1):
        for name in rows.domains:
            own = np.flatnonzero((rows.domain == name) & (fold != t))
            here = _safe_indexing(X, own)
            if columns is not None:
                here = np.where(np.isnan(here).all(axis=0), 0.0, here)
            clone(learner).fit(here, rows.y[own])


def measure(work: Callable[..., Any], *given: Any) -> tuple[float, float, str, Any]:
    """Seconds, megabytes, the choices and the learner of some work, in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measured, args=(work, given, sender))
    child.start()
    found: tuple[float, float, str, Any] = receiver.recv()
    child.join()
    return found


def _measured(work: Callable[..., Any], given: tuple[Any, ...], sender: Any) -> None:
    with threadpool_limits(limits=1):
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
        model = work(*given)
        seconds = process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    choices = (getattr(model, f"{name}_choice_", None) for name in ("learner", "density"))
    said = " ".join(str(choice) for choice in choices if choice)
    sender.send((seconds, peak, said, getattr(model, "estimator_", None)))


def main(quick: bool = False, data: str | None = None, sets: Sequence[str] = SETS) -> None:
    folder = Path(data or os.environ.get("ANYMIX_DATA", "../shared/data"))
    print(f"{'':10}{'floor s':>10}{'fit s':>10}{'ratio':>8}{'floor MB':>10}{'fit MB':>8}")
    for name in sets:
        if name != "texts" and not folder.exists():
            print(f"{name:10} is not in {folder}: pass the data folder, or set ANYMIX_DATA to it")
            continue
        rows = load(name, folder, quick)
        whole = measure(fit, rows)
        least = measure(floor, rows, whole[3])
        ratio = whole[0] / least[0]
        verdict = "" if ratio <= TARGET else f"  above {TARGET:g}"
        print(
            f"{name:10}{least[0]:10.2f}{whole[0]:10.2f}{ratio:8.1f}{least[1]:10.0f}{whole[1]:8.0f}"
            f"{verdict}\n  {whole[2]}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    main(**vars(parser.parse_args()))
