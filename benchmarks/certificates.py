"""How often does a default certificate fail, and how far above the truth is it?

    python -m benchmarks.certificates [--quick] [--seconds 600] [--cells overlap+p=10,]
    python -m benchmarks.certificates --show

In every cell sources are given, rows are drawn, a combination is learned and certified by the same
rows (`fit`), and by 200 new rows of each source (`new`).  Every statement that is claimed is held
against what the combination loses in truth: the loss, the regret, and the share of rows above the
clip.  5 % of certificates may fail in any of them.  Parts of a few seconds are
added to the record until the time is over, to the cell first that has had the fewest runs and the
least time, so that the record can be continued on another night.
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

from anymix import __version__
from anymix.core import Certificate
from anymix.sources import Grounds, LearningSettings, certify_tables, learn, usual_clip
from benchmarks.certificate_worlds import WORLDS, Case, Truth, make_case

RECORD = Path(__file__).parent / "records" / "certificates.jsonl"
N_WORLDS, N_NEW = 8, 200
# A statement, and how a certificate names it.
HALVES = {"regret": "regret_upper", "loss": "loss_upper", "above": "share_above"}
HOWS = ("fit", "new")
# Of more sources, and where densities say nothing, z alone is learned: no pools or temperatures.
MOST_CONSULTING = 5


class Cell(NamedTuple):
    """A world, how many sources there are, and rows of each: "200/5000" of the first, of others."""

    world: str
    p: int
    n: str

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
        return f"{self.world},p={self.p},n={self.n}"


def cells() -> list[Cell]:
    """Name all cells, small ones first."""
    found = [
        *product(WORLDS, (2, 5), ("200", "1000", "200/5000")),
        *product(WORLDS, (2,), ("5000",)),
        *product(WORLDS, (10,), ("200", "1000")),
        *product(("overlap", "routing"), (10,), ("5000",)),
        *product(WORLDS, (30,), ("200",)),
        *product(("Gaussian", "overlap"), (30,), ("1000",)),
    ]
    return sorted((Cell(*one) for one in found), key=lambda cell: sum(cell.sizes) * cell.p)


class Outcome(NamedTuple):
    """Of one certificate: bound less truth of each statement, NaN where it is not claimed."""

    slack: dict[str, float]
    truth: dict[str, float]
    ground: str

    @classmethod
    def of(cls, certificate: Certificate, truth: Truth) -> Outcome:
        """Hold a certificate against the truth."""
        bounds = {half: getattr(certificate, name) for half, name in HALVES.items()}
        true = {half: truth.worst(half) for half in HALVES}
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
    rows, new = case.draw(cell.sizes, rng), case.draw([N_NEW] * cell.p, rng)
    everything = cell.learns == "all"
    settings = LearningSettings(loss=case.loss, consult=everything, calibrate=everything)
    found = learn(rows, settings)
    used, held_out = found.combination, found.evidence.held_out
    clip = usual_clip(rows, held_out, case.loss, None, new)
    fresh = certify_tables(new, used, case.loss, grounds=Grounds(clip=clip))
    both = found.evidence.certificate, fresh
    return {
        how: Outcome.of(one, case.truth(used, one.clip))
        for how, one in zip(HOWS, both, strict=True)
    }


def summarise(outcomes: list[Outcome]) -> dict[str, Any]:
    """Count claims and failures; the median slack and truth of each statement."""
    row: dict[str, Any] = {
        "failed": sum(one.failed for one in outcomes),
        "grounds": dict(Counter(one.ground for one in outcomes)),
    }
    for half in HALVES:
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
        parts.setdefault(Cell(line["world"], line["p"], line["n"]), []).append(line)
    found = {}
    for cell, of in parts.items():
        row: dict[str, Any] = {"runs": sum(one["seeds"][1] - one["seeds"][0] for one in of)}
        row["seconds"] = sum(one["seconds"] for one in of)
        for how in HOWS:
            row[how] = {"failed": sum(one[how]["failed"] for one in of)}
            row[how] |= {half: _joined([one[how][half] for one in of]) for half in HALVES}
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


def lines() -> Iterator[str]:
    """The table: a line for each cell."""
    found = joined(read())
    yield "| world | p | n | runs | `fit` fails, % | new rows fail, % | regret slack | loss slack |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for cell in sorted(found, key=lambda cell: (WORLDS.index(cell.world), cell.p, cell.sizes)):
        row = found[cell]
        rates = [_rate(row[how], row["runs"]) for how in HOWS]
        slack = [_pair(row, half) for half in ("regret", "loss")]
        yield "| " + " | ".join(map(str, [*cell, row["runs"], *rates, *slack])) + " |"


def _rate(of: dict[str, Any], runs: int) -> str:
    """Failures in per cent; a dash where nothing is claimed in any run."""
    if not any(of[half]["claimed"] for half in HALVES):
        return "–"
    return f"{100 * of['failed'] / runs:.1f}" + (" (!)" if too_often(of["failed"], runs) else "")


def _pair(row: dict[str, Any], half: str) -> str:
    slacks = [row[how][half]["slack"] for how in HOWS]
    return ", ".join("–" if one is None else f"{one:.2g}" for one in slacks)


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
        # Between as many runs, and as much time, for each cell.
        cell = min(some, key=lambda cell: spent[cell]["seconds"] * spent[cell]["runs"])
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
    given = vars(parser.parse_args())
    if given.pop("show"):
        print("\n".join(lines()))
    else:
        main(**given)
