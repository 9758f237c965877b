"""How often does a default certificate fail, and how far above the truth is it?

    python -m benchmarks.certificates [--quick] [--seconds 600] [--cells overlap+p=10,]
    python -m benchmarks.certificates --show
    python -m benchmarks.certificates --page

In every cell sources are given, rows are drawn, a combination is learned and certified by the same
rows (`fit`), and by 200 new rows of each source (`new`).  Every statement that is claimed is held
against what the combination loses in truth: the loss, the regret, and the share of rows above the
clip; in some cells also the loss of any fifth of any mixture.  5 % of certificates may fail in any
of them.  Parts of a few seconds are added to the record until the time is over, to the cell first
that has had the fewest runs and the least time: a record can be continued on another night.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from anymix import __version__
from anymix.core import Certificate
from anymix.sources import (
    Grounds,
    LearningSettings,
    certify_learned,
    certify_tables,
    learn,
    usual_cut,
)
from benchmarks.certificate_worlds import (
    PLANE,
    WITH_GENERALIST,
    WORLDS,
    Case,
    Truth,
    make_case,
)

RECORD = Path(__file__).parents[1] / "results" / "certificates.ndjson"
PAGE = Path(__file__).parents[1] / "docs" / "certificate.md"
# Worlds of a kind; new rows of each source, and where subpopulations of a share are bounded, too.
N_WORLDS, N_NEW, N_NEW_OF_PARTS, SHARE = 8, 200, 1000, 0.2
# A statement, and how a certificate names it.
HALVES = {"regret": "regret_upper", "loss": "loss_upper", "above": "share_above"}
PART = {"part": "subpopulation_upper"}
HOWS = ("fit", "new")
FEWEST_RUNS = 40
# Of the cross-entropy of probabilities that are at least 1e-6.
MOST_LOSS = 14.0
# Of more sources, and where densities say nothing, z alone is learned: no pools or temperatures.
MOST_CONSULTING = 5


class Cell(NamedTuple):
    """A world, how many sources there are, and rows of each: "200/5000" of the first, of others.

    share is that of subpopulations, where they are asked about.
    """

    world: str
    p: int
    n: str
    share: float | None = None

    @property
    def sizes(self) -> list[int]:
        """Rows (of copies: groups of them) of each source."""
        first, *others = (int(n) for n in self.n.split("/"))
        return [first, *[others[0] if others else first] * (self.p - 1)]

    @property
    def learns(self) -> str:
        """What is learned: all that `fit` learns from given sources, or z alone."""
        return "all" if self.p <= MOST_CONSULTING and self.world != "overlap" else "z"

    def __str__(self) -> str:
        share = "" if self.share is None else f",share={self.share}"
        return f"{self.world},p={self.p},n={self.n}{share}"


def cells() -> list[Cell]:
    """Name all cells, small ones first."""
    found = [
        *product(WORLDS, (2, 5), ("200", "1000", "200/5000")),
        *product(WORLDS, (2,), ("5000",)),
        *product(WORLDS, (10,), ("200", "1000")),
        *product(("overlap", "routing"), (10,), ("5000",)),
        *product(WORLDS, (30,), ("200",)),
        *product(("Gaussian", "overlap"), (30,), ("1000",)),
        *product(("Gaussian", "t2.1", "labels", "routing", "overlap"), (2, 5), ("1000",), (SHARE,)),
        *product(WITH_GENERALIST, (5,), ("200", "1000")),
        *product(PLANE[:4], (3,), ("200",)),
    ]
    return sorted((Cell(*one) for one in found), key=lambda cell: sum(cell.sizes) * cell.p)


class Outcome(NamedTuple):
    """Of one certificate: bound less truth of each statement, NaN where it is not claimed."""

    slack: dict[str, float]
    truth: dict[str, float]
    ground: str

    @classmethod
    def of(cls, certificate: Certificate, truth: Truth, part: float | None = None) -> Outcome:
        """Hold a certificate against the truth; part is that of subpopulations."""
        halves = HALVES if part is None else HALVES | PART
        bounds = {half: getattr(certificate, name) for half, name in halves.items()}
        true = {half: part if half == "part" else truth.worst(half) for half in halves}
        known = {h: np.nan if b is None else b - true[h] for h, b in bounds.items()}
        return cls(known, true, certificate.regret_ground)

    @property
    def failed(self) -> bool:
        """Whether anything that was claimed is false."""
        return any(slack < 0 for slack in self.slack.values())


@lru_cache(maxsize=N_WORLDS)
def case_of(cell: Cell, seed: int) -> Case:
    """One of a few worlds, each with its points of truth."""
    return make_case(cell.world, cell.p, seed, cell.sizes[0])


def run(cell: Cell, seed: int) -> dict[str, Outcome]:
    """Draw rows, learn, certify by them and by new ones, and hold both against the truth."""
    case, rng = case_of(cell, seed % N_WORLDS), np.random.default_rng([seed, cell.p, *cell.sizes])
    n_new = N_NEW if cell.share is None else N_NEW_OF_PARTS
    rows, new = case.draw(cell.sizes, rng), case.draw([n_new] * cell.p, rng)
    everything = cell.learns == "all"
    settings = LearningSettings(loss=case.loss, consult=everything, calibrate=everything)
    found = learn(rows, settings)
    used, held_out = found.combination, found.evidence.held_out
    cut = usual_cut(rows, held_out, case.loss, None, new, cell.share)
    both = found.evidence.certificate, certify_tables(new, used, case.loss, grounds=Grounds(**cut))
    if cell.share is not None:
        again = certify_learned(rows, used, held_out, case.loss, Grounds(share=cell.share))
        both = again, both[1]
    outcomes = {}
    for how, one in zip(HOWS, both, strict=True):
        part = None if cell.share is None else true_part(case, used, one.clip, cell.share)
        outcomes[how] = Outcome.of(one, case.truth(used, one.clip), part)
    return outcomes


def true_part(case: Case, used: Any, clip: float | None, share: float) -> float:
    """min_t max_k [t + E (min(ℓ, c) − t)₊/β]; the excess is min(ℓ, c) − min(ℓ, t)."""
    whole = case.truth(used, clip)["loss"]

    def bound(t: float) -> float:
        return t + float(np.max(whole - case.truth(used, t)["loss"])) / share

    most = MOST_LOSS if clip is None else clip
    return float(minimize_scalar(bound, bounds=(0.0, most), method="bounded").fun)


def summarise(outcomes: list[Outcome]) -> dict[str, Any]:
    """Count claims and failures; the median slack and truth of each statement."""
    row: dict[str, Any] = {
        "failed": sum(one.failed for one in outcomes),
        "grounds": dict(Counter(one.ground for one in outcomes)),
    }
    for half in outcomes[0].slack:
        slack = np.array([one.slack[half] for one in outcomes])
        claimed = slack[~np.isnan(slack)]
        row[half] = {
            "claimed": claimed.size,
            "failed": int((claimed < 0).sum()),
            "slack": float(f"{np.median(claimed):.4g}") if claimed.size else None,
            "truth": float(f"{np.median([one.truth[half] for one in outcomes]):.4g}"),
        }
    return row


def measure(cell: Cell, first: int, seconds: float, least: int = 4) -> dict[str, Any]:
    """Run a part of a cell, from a seed on and for so long: one line of the record."""
    outcomes: list[dict[str, Outcome]] = []
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(outcomes) < least or time.process_time() - start < seconds:
            outcomes.append(run(cell, first + len(outcomes)))
    return {
        **cell._asdict(),
        "learns": cell.learns,
        "seeds": [first, first + len(outcomes)],
        "version": __version__,
        "seconds": round(time.process_time() - start, 2),
        **{how: summarise([one[how] for one in outcomes]) for how in HOWS},
    }


def read(path: Path = RECORD) -> list[dict[str, Any]]:
    """All lines of the record."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def joined(lines: list[dict[str, Any]]) -> dict[Cell, dict[str, Any]]:
    """Add up the parts of each cell; medians are averaged by how many claims they are of."""
    parts: dict[Cell, list[dict[str, Any]]] = {}
    for line in lines:
        cell = Cell(line["world"], line["p"], line["n"], line.get("share"))
        parts.setdefault(cell, []).append(line)
    found = {}
    for cell, of in parts.items():
        row: dict[str, Any] = {"runs": sum(one["seeds"][1] - one["seeds"][0] for one in of)}
        row["seconds"] = sum(one["seconds"] for one in of)
        row["earlier"] = any("commit" in one for one in of)
        for how in HOWS:
            row[how] = {"failed": sum(one[how]["failed"] for one in of)}
            halves = [half for half in HALVES | PART if half in of[0][how]]
            row[how] |= {half: _joined([one[how][half] for one in of]) for half in halves}
        found[cell] = row
    return found


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {name: sum(one[name] for one in parts) for name in ("claimed", "failed")}
    claimed = [one for one in parts if one["claimed"]]
    for name in ("slack", "truth"):
        values = [one[name] for one in claimed], [one["claimed"] for one in claimed]
        row[name] = float(np.average(values[0], weights=values[1])) if claimed else None
    return row


def too_often(failed: int, runs: int) -> bool:
    """Whether more than 5 % and two standard errors have failed."""
    return failed > 0.05 * runs + 2 * np.sqrt(0.05 * 0.95 * runs)


# Mean slack of regret and loss of version 0.3.0, `fit`, where it was measured.
BEFORE = {
    Cell("Gaussian", 3, "200"): (0.028, 0.102),
    Cell("t2.1", 3, "200"): (0.032, 0.139),
    Cell("rare +8", 3, "200"): (0.0287, 0.108),
    Cell("labels", 3, "200"): (0.02, 0.0794),
    Cell("Gaussian", 10, "200"): (0.0466, 0.109),
}


def lines(path: Path = RECORD) -> Iterator[str]:
    """The table: a line for each cell that was run."""
    found = joined(read(path))
    yield "| world | p | n | runs | `fit` fails, % | new rows fail, % | regret slack | loss slack |"
    yield "|---|--:|--:|--:|--:|--:|---|---|"
    for cell in sorted(found, key=place):
        row, before = found[cell], BEFORE.get(cell, (None, None))
        rates = [_rate(row[how], row["runs"]) for how in HOWS]
        slack = [_pair(row, *pair) for pair in zip(("regret", "loss"), before, strict=True)]
        world = cell.world + ", fifths of mixtures too" * (cell.share is not None)
        # Of an earlier tree, whose pools were learned by another rule.
        world += "°" * row["earlier"]
        shown = [world, cell.p, cell.n, row["runs"], *rates, *slack]
        yield "| " + " | ".join(map(str, shown)) + " |"


def verdict(path: Path = RECORD) -> str:
    """Count the runs, and the cells in which certificates fail more often than they may."""
    found = joined(read(path)).values()
    counts = [(row[how], row["runs"]) for row in found for how in HOWS]
    claimed = [(of, runs) for of, runs in counts if any(of[half]["claimed"] for half in HALVES)]
    failed, runs = sum(of["failed"] for of, _ in claimed), sum(runs for _, runs in claimed)
    above = sum(too_often(of["failed"], runs) for of, runs in claimed)
    share = 100 * failed / max(runs, 1)
    return (
        f"{sum(row['runs'] for row in found)} runs in {len(found)} cells: of {runs} certificates "
        f"{failed} were wrong ({share:.1f} %). Of {len(claimed)} cases (a cell, by `fit` or by new "
        f"rows) {above} had more than 5 % and two standard errors."
    )


START, END = "<!-- benchmark of certificates -->", "<!-- end of the benchmark -->"


def write_page(page: Path = PAGE, path: Path = RECORD) -> None:
    """Put the verdict and the table between the marks of the page."""
    before, rest = page.read_text("utf-8").split(START)
    after = rest.split(END)[1]
    table = "\n".join([START, verdict(path), "", *lines(path), END])
    page.write_text(before + table + after, "utf-8")


def place(cell: Cell) -> Any:
    """Where a cell stands in a table."""
    return cell.share or 0.0, (*WORLDS, *WITH_GENERALIST).index(cell.world), cell.p, cell.sizes


def _rate(of: dict[str, Any], runs: int) -> str:
    """Failures in per cent; a dash where nothing is claimed in any run."""
    if not any(of[half]["claimed"] for half in HALVES):
        return "–"
    return f"{100 * of['failed'] / runs:.1f}" + (" (!)" if too_often(of["failed"], runs) else "")


def _pair(row: dict[str, Any], half: str, before: float | None) -> str:
    slacks = [row[how][half]["slack"] for how in HOWS]
    shown = ", ".join("–" if one is None else f"{one:.2g}" for one in slacks)
    return shown if before is None else f"{shown} (0.3.0: {before:.2g})"


def main(
    quick: bool = False,
    seconds: float = 600.0,
    chosen: str = "",
    part: float = 8.0,
    record: Path = RECORD,
) -> None:
    """Add parts to the record until the time is over."""
    some = [cell for cell in cells() if all(word in f"{cell}," for word in chosen.split("+"))]
    if quick:
        print(json.dumps(measure(Cell("Gaussian", 2, "200"), 0, 0.0)))
        return
    end = time.monotonic() + seconds
    record.parent.mkdir(exist_ok=True)
    while time.monotonic() < end:
        known = joined(read(record))
        nothing = {"seconds": 0.0, "runs": 0}
        spent = {cell: known.get(cell, nothing) for cell in some}
        # Each cell has some runs first; then between as many runs, and as much time, for each.
        few = [cell for cell in some if spent[cell]["runs"] < FEWEST_RUNS]
        cell = min(few or some, key=lambda cell: spent[cell]["seconds"] * spent[cell]["runs"])
        line = measure(cell, spent[cell]["runs"], part)
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cells", dest="chosen", default="", help="words joined by +")
    parser.add_argument("--part", type=float, default=8.0, help="seconds of a part")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the table of the page")
    given = vars(parser.parse_args())
    if given.pop("page"):
        write_page()
    elif given.pop("show"):
        print("\n".join([verdict(), *lines()]))
    else:
        main(**given)
