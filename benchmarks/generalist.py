"""What does the generalist bring, with rows in one place and with rows at their sites?

    python -m benchmarks.generalist [--quick] [--data ../shared/data] [--sets heart cars] [--rows N]

Only training rows of the evidence are used: 70 % of each set, of which 70 % train and the others
judge.  *joint* is one model of the sources' learner on all rows.  A loss is the mean over domains
of the cross-entropy or squared error; differences to joint are paired, row by row, with their
standard errors.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.core import losses_at
from experiments.evidence_sets import LOADERS, EvidenceSet

SETS = ("heart", "housing", "cars", "airline", "office", "surf")
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "no generalist": {"generalist": None},
    "rows at sites": {"share_rows": False},
}


class Line(NamedTuple):
    """What a method loses on held-out rows, and its difference to joint."""

    method: str
    loss: float
    difference: float
    error: float
    seconds: float


def parted(rows: EvidenceSet, share: float, seed: int) -> tuple[EvidenceSet, EvidenceSet]:
    """Split rows by chance, copies of a row on one side."""
    groups = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    first = np.isin(rows.groups, groups[: int(share * groups.size)])
    return rows.take(np.flatnonzero(first)), rows.take(np.flatnonzero(~first))


def few_of(rows: EvidenceSet, most: int) -> EvidenceSet:
    """Keep so many rows of each domain, by chance."""
    rng = np.random.default_rng(0)
    kept = [rng.permutation(np.flatnonzero(rows.domain == name))[:most] for name in rows.domains]
    return rows.take(np.sort(np.concatenate(kept)))


def losses_of(model: Any, rows: EvidenceSet, joint: bool = False) -> np.ndarray:
    """Losses of a model, or of its generalist alone, (n,)."""
    if not rows.classification:
        h = (model.generalist_ if joint else model).predict(rows.X)
        return losses_at(np.asarray(h), rows.y, "squared")
    known = model.classes_
    h = model.generalist_.predict_proba(rows.X, known) if joint else model.predict_proba(rows.X)
    return losses_at(h, np.searchsorted(known, rows.y), "cross_entropy")


def by_domain(values: np.ndarray, rows: EvidenceSet) -> tuple[float, float]:
    """Mean over domains of the mean in each, and its standard error."""
    each = [values[rows.domain == name] for name in rows.domains]
    errors = [np.var(one, ddof=1) / one.size for one in each]
    return float(np.mean([one.mean() for one in each])), float(np.sqrt(np.sum(errors))) / len(each)


def measure(rows: EvidenceSet, seed: int = 0) -> list[Line]:
    """Fit with each setting, and compare with joint."""
    train, judge = parted(rows, 0.7, seed)
    if rows.classification:
        judge = judge.take(np.flatnonzero(np.isin(judge.y, train.y)))
    kind = DistributionWeightedClassifier if rows.classification else DistributionWeightedRegressor
    found, joint, lines = {}, np.zeros(0), []
    for name, settings in SETTINGS.items():
        start = process_time()
        model = kind(random_state=0, **settings).fit(train.X, train.y, sample_domain=train.domain)
        found[name] = losses_of(model, judge), process_time() - start
        if not settings:
            joint = losses_of(model, judge, joint=True)
    lines.append(Line("joint", by_domain(joint, judge)[0], 0.0, 0.0, 0.0))
    for name, (losses, seconds) in found.items():
        difference = by_domain(losses - joint, judge)
        lines.append(Line(name, by_domain(losses, judge)[0], *difference, seconds))
    return lines


def main(
    quick: bool = False,
    data: Path = Path("../shared/data"),
    sets: tuple[str, ...] = SETS,
    rows: int = 600,
) -> None:
    """Print a table."""
    print(f"{'set':10}{'method':16}{'loss':>9}{'less joint':>12}{'error':>9}{'seconds':>9}")
    for name in sets[:1] if quick else sets:
        # Rows that judge the evidence are left out before anything is looked at.
        training, _ = parted(LOADERS[name](data), 0.7, seed=99)
        for line in measure(few_of(training, 60 if quick else rows)):
            print(
                f"{name:10}{line.method:16}{line.loss:9.5f}{line.difference:12.5f}"
                f"{line.error:9.5f}{line.seconds:9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", type=int, default=600, help="of each domain, at most")
    given = parser.parse_args()
    main(given.quick, given.data, tuple(given.sets), given.rows)
