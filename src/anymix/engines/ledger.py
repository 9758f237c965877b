"""What left a site, in numbers: for each verb how many answers, and of how many numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anymix.sources import Query, numbers_in
from anymix.storage import plain_json, replacing

Counts = dict[str, list[int]]


def counted(questions: Sequence[Query], answers: Sequence[Any]) -> Counts:
    """Count the answers, and the numbers in them, by verb."""
    found: Counts = {}
    for question, answer in zip(questions, answers, strict=True):
        answered = found.setdefault(question.name, [0, 0])
        answered[0] += 1
        answered[1] += numbers_in(answer) if isinstance(answer, Mapping) else 0
    return found


def added(old: Counts, new: Counts) -> Counts:
    """Add up two counts."""
    verbs = sorted({*old, *new})
    none = [0, 0]
    return {
        v: [a + b for a, b in zip(old.get(v, none), new.get(v, none), strict=True)] for v in verbs
    }


def total(counts: Counts) -> int:
    """Return how many numbers that is, of all verbs."""
    return sum(numbers for _, numbers in counts.values())


class Ledger:
    """A site's own account, by run, in a file that outlives the processes of its messages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """Return the account: for each run its rounds, and what left by verb."""
        if not self.path.exists():
            return {}
        found = plain_json(self.path.read_bytes())
        return dict(found)

    def add(self, run: int, left: Counts) -> tuple[int, int, int]:
        """Write down one round; return its number in this run, and numbers of the run and ever."""
        account = self.read()
        old = account.get(str(run), {"rounds": 0, "left": {}})
        account[str(run)] = {"rounds": old["rounds"] + 1, "left": added(old["left"], left)}
        with replacing(self.path) as temporary:
            temporary.write_text(json.dumps(account, indent=1), "utf-8")
        ever = sum(total(entry["left"]) for entry in account.values())
        return old["rounds"] + 1, total(account[str(run)]["left"]), ever
