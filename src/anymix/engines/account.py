"""A site's account of the numbers that left it: a file that a server cannot change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anymix.engines.wire import Refusal
from anymix.sources import Arrays, Query, numbers_in
from anymix.storage import locked, plain_json, replacing

# A fit needs a few hundred at most; an honest one ends with the first refusal.
MOST_ANSWERS = 20_000
MOST_REFUSALS = 100
# Queries of which a fit needs but a few: what they tell of single rows adds up.
MOST_OF_A_VERB = {
    **{"step": 150, "sketch": 10, "scales": 10, "losses": 20},
    **{"beside": 20, "count": 100, "cross": 100, "exact_upper": 400, "quantiles": 20},
}
CAUSES = "refusals.log"
# Seconds that a response waits for another one to be counted.
WAIT = 60.0
# Of each query, how many responses have left a site and how many numbers were in them.
Counts = dict[str, list[int]]


def add_counts(left: Counts, queries: Sequence[Query], responses: Sequence[Arrays]) -> Counts:
    """Add responses, and the numbers in them, to what has left a site."""
    for query, response in zip(queries, responses, strict=True):
        counts = left.setdefault(query.name, [0, 0])
        counts[0] += 1
        counts[1] += numbers_in(response)
    return left


def total(counts: Counts) -> int:
    """Return the count of numbers over all queries."""
    return sum(numbers for _, numbers in counts.values())


def record_left(
    path: Path, run: str, queries: Sequence[Query], responses: Sequence[Arrays]
) -> tuple[int, int, int]:
    """Add a round to a site's account, a file; return its number, numbers of the run and ever.

    A round that exceeds the limit of its run is refused.
    """
    with _account(path) as account:
        entry = account.setdefault(run, {"rounds": 0, "left": {}})
        entry["rounds"] += 1
        left = add_counts(entry["left"], queries, responses)
        if sum(n for n, _ in left.values()) > MOST_ANSWERS:
            raise Refusal("budget")
        if any(left.get(verb, [0])[0] > most for verb, most in MOST_OF_A_VERB.items()):
            raise Refusal("budget")
        ever = sum(total(each["left"]) for each in account.values())
        return entry["rounds"], total(entry["left"]), ever


def check_refusals(path: Path) -> None:
    """Refuse everything once a site has refused too often: each refusal reveals a little."""
    account = plain_json(path.read_bytes()) if path.exists() else {}
    if sum(sum(each.get("refused", {}).values()) for each in account.values()) >= MOST_REFUSALS:
        cause = f"more than {MOST_REFUSALS} refusals; remove {path} to answer again"
        raise Refusal("budget", cause)


def record_refusal(path: Path, run: str, refusal: Refusal) -> None:
    """Add a refusal, which leaves the site as a response does, to its account.

    Its cause goes into a separate file, because others may see the log of a process, for example an
    NVFlare server.
    """
    with _account(path) as account:
        refused = account.setdefault(run, {"rounds": 0, "left": {}}).setdefault("refused", {})
        refused[refusal.kind] = refused.get(refusal.kind, 0) + 1
    with open(path.with_name(CAUSES), "a", encoding="utf-8") as file:
        file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {refusal.kind}: {refusal.cause}\n")


@contextmanager
def _account(path: Path) -> Iterator[dict[str, Any]]:
    """Read, change and write a site's account under a lock."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent, wait=WAIT):
        account = plain_json(path.read_bytes()) if path.exists() else {}
        yield account
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(account, indent=1), "utf-8")
