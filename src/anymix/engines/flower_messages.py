"""Queries to sites and their responses in Flower's records.

a round      "ask": how many queries; "0", "1", ...: each query as arrays
a reply      "answer": the name of the site; "0", "1", ...: the arrays of each response
or           "refused": of which kind the refusal is; the cause stays in the site's own log
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.core import loss_from_dict, loss_to_dict
from anymix.exceptions import InputError, not_installed, one_line
from anymix.sources import Arrays, Query, numbers_in
from anymix.storage import locked, plain_json, replacing

# Of the form of messages: sites and server must have the same.
FORM = 3
MOST_QUESTIONS = 1000
# All that a server learns of a refusal: of which kind it is.
REFUSALS = {
    "setup": "its configuration or its folder of sources cannot be used",
    "table": "its table cannot be used, or has too few rows",
    "query": "it does not answer such a query",
    "rows": "the query cannot be computed on its rows",
    "budget": "it has answered or refused as much as it allows",
    "fault": "it failed",
}
WHERE = "; the log of that site says more"
# A fit needs a few hundred at most; an honest one ends with the first refusal.
MOST_ANSWERS = 20_000
MOST_REFUSALS = 100
# Queries of which a fit needs but a few: what they tell of single rows adds up.
MOST_OF_A_VERB = {"beside": 20, "below": 400, "count": 100, "cross": 100, "exact_upper": 400}
# Seconds that an answer waits for another one to be counted.
WAIT = 60.0
# Flower's own logger, which the processes of its apps show.
LOG = logging.getLogger("flwr")
# Types of arrays that travel: numbers and truth values.
KINDS = "biuf"
NO_TRAVEL = "may not travel between a server and sites"
# The array that holds the name and the options of a query, as JSON.
HEAD = "query"


class Refusal(Exception):
    """A site does not respond; `kind` is one of `REFUSALS`, and all that the server learns."""

    def __init__(self, kind: str):
        self.kind = kind if kind in REFUSALS else "fault"
        super().__init__(REFUSALS[self.kind] + WHERE)


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Refuse whatever fails in the block: what an error says may be of rows."""
    try:
        yield
    except Refusal:
        raise
    # Flower would send the text of any other error to the server.
    except Exception as error:
        LOG.error("refused (%s): %s", kind, one_line(f"{type(error).__name__}: {error}"))
        raise Refusal(kind) from error


def need_flower() -> Any:
    """Import Flower, or say how to install it."""
    try:
        with warnings.catch_warnings():
            # Users of anymix can do nothing about warnings of Flower's own imports.
            warnings.simplefilter("ignore")
            import flwr.app
            import flwr.clientapp
            import flwr.serverapp
    except ImportError as error:
        raise not_installed("flwr", "flower") from error
    return flwr.app


def ask_records(questions: Sequence[Query]) -> Any:
    """Write queries as the content of a message."""
    return _records("ask", {"form": FORM, "n": len(questions)}, [pack(q) for q in questions])


def read_questions(content: Any) -> list[Query]:
    """Read what `ask_records` wrote; messages are untrusted, so everything is checked."""
    n = _head(content, "ask").get("n")
    if not isinstance(n, int) or not 0 < n <= MOST_QUESTIONS:
        raise InputError("a message", f"asks {n!r:.20} questions; 1 to {MOST_QUESTIONS} can be")
    return [unpack(arrays) for arrays in _arrays(content, n)]


def reply_records(site: str, answers: Sequence[Arrays]) -> Any:
    """Write a site's responses as the content of its reply."""
    return _records("answer", {"form": FORM, "site": site}, answers)


def refusal_records(kind: str) -> Any:
    """Write that a site does not respond, and of which kind the refusal is."""
    return _records("refused", {"form": FORM, "kind": kind}, ())


def read_reply(content: Any, n: int) -> tuple[str, list[Arrays]]:
    """Read the name of a site and its n responses, or raise the `Refusal` that it sent."""
    if "refused" in content:
        raise Refusal(str(_head(content, "refused").get("kind", "")))
    return str(_head(content, "answer").get("site", "")), _arrays(content, n)


def _records(name: str, head: dict[str, Any], given: Sequence[Arrays]) -> Any:
    app = need_flower()
    content = app.RecordDict({name: app.ConfigRecord(head)})
    for i, arrays in enumerate(given):
        found = {key: app.Array(np.asarray(array)) for key, array in arrays.items()}
        content[str(i)] = app.ArrayRecord(found)
    return content


def _head(content: Any, name: str) -> Any:
    if name not in content.config_records:
        raise InputError("a message", f"lacks its part {name!r}; both ends need the same anymix")
    head = content.config_records[name]
    if head.get("form") != FORM:
        raise InputError(
            "a message", f"has form {head.get('form')!r:.20}, this anymix speaks {FORM}; update"
        )
    return head


def _arrays(content: Any, n: int) -> list[Arrays]:
    """Read n sets of arrays, "0" to "n − 1"."""
    found: list[Arrays] = []
    for i in range(n):
        if str(i) not in content.array_records:
            raise InputError("a message", f"has {i} sets of arrays where {n} are expected")
        record = content.array_records[str(i)]
        found.append(_plain({str(key): one.numpy() for key, one in record.items()}))
    return found


def _plain(arrays: Mapping[str, Any]) -> Arrays:
    """Refuse arrays of other things than numbers and truth values."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    for array in found.values():
        if array.dtype.kind not in KINDS:
            raise InputError(f"an array of {array.dtype}", NO_TRAVEL)
    return found


def pack(query: Query) -> Arrays:
    """Write a query as arrays; losses of the library are written by their names."""
    options = {
        name: loss_to_dict(value) if hasattr(value, "dc_terms") else value
        for name, value in query.options.items()
    }
    for value in options.values():
        if not isinstance(value, str | dict):
            raise InputError(f"a {type(value).__name__}", NO_TRAVEL)
    head = json.dumps([query.name, options]).encode()
    return {HEAD: np.frombuffer(head, np.uint8), **_plain(query.arrays)}


def unpack(packed: Mapping[str, NDArray[Any]]) -> Query:
    """Return the query that `pack` wrote; anything else is refused."""
    arrays = dict(packed)
    head = arrays.pop(HEAD, None)
    if head is None or head.dtype != np.uint8 or head.ndim != 1:
        raise InputError("a message", "has no query; both ends need the same anymix")
    try:
        name, told = plain_json(head.tobytes())
        options = {
            str(key): value if isinstance(value, str) else loss_from_dict(value)
            for key, value in told.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("a message", f"cannot be understood: {error}") from error
    return Query(str(name), options, arrays)


# Of each query, how many responses have left a site and how many numbers were in them.
Counts = dict[str, list[int]]


def add_counts(left: Counts, questions: Sequence[Query], answers: Sequence[Arrays]) -> Counts:
    """Add responses, and the numbers in them, to what has left a site."""
    for question, answer in zip(questions, answers, strict=True):
        counts = left.setdefault(question.name, [0, 0])
        counts[0] += 1
        counts[1] += numbers_in(answer)
    return left


def total(counts: Counts) -> int:
    """Return how many numbers that is, of all queries."""
    return sum(numbers for _, numbers in counts.values())


def record_left(
    path: Path, run: int, questions: Sequence[Query], answers: Sequence[Arrays]
) -> tuple[int, int, int]:
    """Add a round to a site's account, a file; return its number, numbers of the run and ever.

    What would be more than a run may have is refused.
    """
    with _account(path) as account:
        entry = account.setdefault(str(run), {"rounds": 0, "left": {}})
        entry["rounds"] += 1
        left = add_counts(entry["left"], questions, answers)
        if sum(n for n, _ in left.values()) > MOST_ANSWERS:
            raise Refusal("budget")
        if any(left.get(verb, [0])[0] > most for verb, most in MOST_OF_A_VERB.items()):
            raise Refusal("budget")
        ever = sum(total(each["left"]) for each in account.values())
        return entry["rounds"], total(entry["left"]), ever


def check_refusals(path: Path) -> None:
    """Refuse everything once a site has refused too often: each refusal tells a little."""
    account = plain_json(path.read_bytes()) if path.exists() else {}
    if sum(sum(each.get("refused", {}).values()) for each in account.values()) >= MOST_REFUSALS:
        LOG.error("more than %d refusals; remove %s to answer again", MOST_REFUSALS, path)
        raise Refusal("budget")


def record_refusal(path: Path, run: int, kind: str) -> None:
    """Add a refusal, which leaves the site as an answer does, to its account."""
    with _account(path) as account:
        refused = account.setdefault(str(run), {"rounds": 0, "left": {}}).setdefault("refused", {})
        refused[kind] = refused.get(kind, 0) + 1


@contextmanager
def _account(path: Path) -> Iterator[dict[str, Any]]:
    """Read, change and write a site's account, while nobody else does."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent, wait=WAIT):
        account = plain_json(path.read_bytes()) if path.exists() else {}
        yield account
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(account, indent=1), "utf-8")
