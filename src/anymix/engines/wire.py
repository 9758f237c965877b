"""Queries to sites and their responses as bytes, for any transport.

A message is a safetensors file: "head", JSON as bytes, and arrays "0.name", "1.name", ...

a round      head {"form", "n"}; the arrays of n queries
a reply      head {"form", "site", "n"}; the arrays of each response, in order
or           head {"form", "refused"}: of which kind the refusal is; the cause stays in the site's
             own log
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.core import loss_from_dict, loss_to_dict
from anymix.exceptions import InputError, one_line
from anymix.exchange import dump_message, load_message
from anymix.sources import Arrays, Query
from anymix.storage import plain_json

# Of the form of messages: sites and server must have the same.
FORM = 5
MOST_QUERIES = 1000
# All that a server learns of a refusal: of which kind it is.
REFUSALS = {
    "setup": "its configuration or its folder of sources cannot be used",
    "table": "its table cannot be used, or has too few rows",
    "query": "it does not answer such a query",
    "rows": "the query cannot be computed on its rows",
    "budget": "it has answered or refused as much as it allows",
    "fault": "it failed",
}
WHERE = "; the logs of that site say more"
LOG = logging.getLogger("anymix")
# Types of arrays that travel: numbers and truth values.
KINDS = "biuf"
NO_TRAVEL = "may not travel between a server and sites"
# The array that holds the name and the options of a query, and what a message is, as JSON.
QUERY, HEAD = "query", "head"


class Refusal(Exception):
    """A site does not respond; `kind` is one of `REFUSALS`, and all that the server learns.

    The cause may reveal rows, and stays at the site.
    """

    def __init__(self, kind: str, cause: str = ""):
        self.kind, self.cause = kind if kind in REFUSALS else "fault", cause
        super().__init__(REFUSALS[self.kind] + WHERE)


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Refuse whatever fails in the block, as an error message may reveal rows."""
    try:
        yield
    except Refusal:
        raise
    # A transport would send the text of any other error to the server.
    except Exception as error:
        raise Refusal(kind, one_line(f"{type(error).__name__}: {error}")) from error


def dump_queries(queries: Sequence[Query]) -> bytes:
    """Write queries as a message."""
    return _dump({"n": len(queries)}, [pack(query) for query in queries])


def load_queries(message: bytes) -> list[Query]:
    """Read the output of `dump_queries`; messages are untrusted, so everything is checked."""
    head, arrays = _load(message)
    n = head.get("n")
    if type(n) is not int or not 0 < n <= MOST_QUERIES:
        raise InputError("a message", f"has {n!r:.20} queries; 1 to {MOST_QUERIES} are allowed")
    return [unpack(each) for each in _sets(arrays, n)]


def dump_reply(site: str, responses: Sequence[Arrays]) -> bytes:
    """Write a site's responses as its reply."""
    return _dump({"site": site, "n": len(responses)}, responses)


def dump_refusal(kind: str) -> bytes:
    """Write that a site does not respond, and the kind of the refusal."""
    return _dump({"refused": kind}, ())


def load_reply(message: bytes, n: int) -> tuple[str, list[Arrays]]:
    """Read the name of a site and its n responses, or raise the `Refusal` that it sent."""
    head, arrays = _load(message)
    if "refused" in head:
        raise Refusal(str(head["refused"]))
    if head.get("n") != n:
        raise InputError("a message", f"has {head.get('n')!r:.20} responses to {n} queries")
    return str(head.get("site", "")), _sets(arrays, n)


def _dump(head: Mapping[str, Any], sets: Sequence[Arrays]) -> bytes:
    text = json.dumps({"form": FORM, **head}).encode()
    named = {f"{i}.{name}": array for i, each in enumerate(sets) for name, array in each.items()}
    return dump_message({HEAD: np.frombuffer(text, np.uint8), **_plain(named)})


def _load(message: bytes) -> tuple[dict[str, Any], Arrays]:
    arrays = load_message(message, "a message")
    packed = arrays.pop(HEAD, None)
    if packed is None or packed.dtype != np.uint8 or packed.ndim != 1:
        raise InputError("a message", "has no head; both ends need the same anymix")
    head = plain_json(packed.tobytes())
    form = head.get("form") if isinstance(head, dict) else None
    if form != FORM:
        raise InputError("a message", f"has form {form!r:.20}, this version reads {FORM}; update")
    return head, _plain(arrays)


def _sets(arrays: Arrays, n: int) -> list[Arrays]:
    """Read n sets of arrays, "0" to "n − 1"."""
    found: list[Arrays] = [{} for _ in range(n)]
    for key, array in arrays.items():
        number, dot, name = key.partition(".")
        if not dot or not number.isdecimal() or int(number) >= n:
            raise InputError("a message", f"has {key!r:.40} where {n} sets of arrays are expected")
        found[int(number)][name] = array
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
    return {QUERY: np.frombuffer(head, np.uint8), **_plain(query.arrays)}


def unpack(packed: Mapping[str, NDArray[Any]]) -> Query:
    """Return the query that `pack` wrote; anything else is refused."""
    arrays = dict(packed)
    head = arrays.pop(QUERY, None)
    if head is None or head.dtype != np.uint8 or head.ndim != 1:
        raise InputError("a message", "has no query; both ends need the same anymix")
    try:
        name, given = plain_json(head.tobytes())
        options = {
            str(key): value if isinstance(value, str) else loss_from_dict(value)
            for key, value in given.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("a message", f"cannot be understood: {error}") from error
    return Query(str(name), options, arrays)
