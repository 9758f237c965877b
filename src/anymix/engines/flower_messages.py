"""Questions to sites and their answers in Flower's records; the one door to them.

a round      "ask": how many questions; "0", "1", ...: the arrays of each
a reply      "answer": the name of the site; "0", "1", ...: the arrays of each answer
or           "refused": one sentence that says why
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.core import loss_from_dict, loss_to_dict
from anymix.exceptions import InputError, not_installed, one_line
from anymix.sources import Query, numbers_in
from anymix.storage import plain_json, replacing

# Of the form of messages: sites and server of different forms must not talk past each other.
FORM = 2
MOST_QUESTIONS = 1000
LONGEST_REASON = 500


class Refusal(Exception):
    """A site does not answer; the sentence says why."""


def need_flower() -> Any:
    """Import Flower, or say how to install it."""
    try:
        with warnings.catch_warnings():
            # What Flower's own imports warn of, no user of anymix can mend.
            warnings.simplefilter("ignore")
            import flwr.app
            import flwr.clientapp
            import flwr.serverapp
    except ImportError as error:
        raise not_installed("flwr", "flower") from error
    return flwr.app


def ask_records(questions: Sequence[Arrays]) -> Any:
    """Write packed questions as the content of a message."""
    return _records("ask", {"form": FORM, "n": len(questions)}, questions)


def read_questions(content: Any) -> list[Arrays]:
    """Read what `ask_records` wrote; a site trusts nobody, so that everything is checked."""
    n = _head(content, "ask").get("n")
    if not isinstance(n, int) or not 0 < n <= MOST_QUESTIONS:
        raise InputError("a message", f"asks {n!r:.20} questions; 1 to {MOST_QUESTIONS} can be")
    return _arrays(content, n)


def reply_records(site: str, answers: Sequence[Arrays]) -> Any:
    """Write a site's answers as the content of its reply."""
    return _records("answer", {"form": FORM, "site": site}, answers)


def refusal_records(why: str) -> Any:
    """Write why a site does not answer."""
    return _records("refused", {"form": FORM, "why": one_line(why)[:LONGEST_REASON]}, ())


def read_reply(content: Any, n: int) -> tuple[str, list[Arrays]]:
    """Read the name of a site and its n answers; a `Refusal` carries the site's own sentence."""
    if "refused" in content:
        why = one_line(str(_head(content, "refused").get("why", "")))[:LONGEST_REASON]
        raise Refusal(why or "it refused without a reason.")
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
        found.append({str(key): one.numpy() for key, one in record.items()})
    return found


Arrays = Mapping[str, NDArray[Any]]
Records = Mapping[str, Callable[..., Any]]
SHAPE = "shape"
# Numbers and truth values, and labels that are words.
KINDS = "biufU"


def pack(value: Any, records: Records) -> dict[str, NDArray[Any]]:
    """Write a value as arrays; `records` are the classes that may occur in it, by name.

    Examples
    --------
    >>> packed = pack(("losses", np.arange(3.0), None, 0.5), {})
    >>> sorted(packed)
    ['a0', 'shape']
    >>> unpack(packed, {})
    ('losses', array([0., 1., 2.]), None, 0.5)
    """
    arrays: dict[str, NDArray[Any]] = {}
    shape = json.dumps(_shape(value, records, arrays), allow_nan=False)
    return {SHAPE: np.frombuffer(shape.encode(), np.uint8), **arrays}


def unpack(arrays: Arrays, records: Records) -> Any:
    """Return the value that `pack` wrote; whatever is not of its form is refused."""
    if SHAPE not in arrays or arrays[SHAPE].dtype != np.uint8 or arrays[SHAPE].ndim != 1:
        raise InputError("a message", "has no shape of its values; both ends need the same anymix")
    try:
        return _value(plain_json(arrays[SHAPE].tobytes()), records, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError("a message", f"cannot be understood: {error}") from error


def _shape(value: Any, records: Records, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return what JSON can say of a value; lists begin with a word that says what they are."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return ["float", str(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays[name := f"a{len(arrays)}"] = _plain(value)
        return ["array", name]
    # A loss of the library is written by its name; of others loss_to_dict says that they have none.
    if hasattr(value, "dc_terms"):
        return ["loss", loss_to_dict(value)]
    return _compound(value, records, arrays)


def _compound(value: Any, records: Records, arrays: dict[str, NDArray[Any]]) -> Any:
    def inner(item: Any) -> Any:
        return _shape(item, records, arrays)

    kind = type(value).__name__
    if records.get(kind) is type(value):
        fields = (
            {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            if dataclasses.is_dataclass(value)
            else value._asdict()
        )
        return ["record", kind, {name: inner(item) for name, item in fields.items()}]
    if type(value) in (tuple, list):
        return [kind, *map(inner, value)]
    if type(value) is dict:
        return ["dict", {str(name): inner(item) for name, item in value.items()}]
    raise InputError(f"a {kind}", "may not travel between a server and sites")


def _value(shape: Any, records: Records, arrays: Arrays) -> Any:
    if not isinstance(shape, list):
        if isinstance(shape, dict):
            raise ValueError("a bare object")
        return shape
    kind, *rest = shape
    if kind in ("tuple", "list"):
        found = [_value(item, records, arrays) for item in rest]
        return tuple(found) if kind == "tuple" else found
    if kind == "dict":
        return {name: _value(item, records, arrays) for name, item in rest[0].items()}
    if kind == "record":
        fields = {name: _value(item, records, arrays) for name, item in rest[1].items()}
        return records[rest[0]](**fields)
    if kind == "loss":
        return loss_from_dict(rest[0])
    return _plain(arrays[rest[0]]) if kind == "array" else _odd_float(kind, *rest)


def _odd_float(kind: Any, word: str) -> float:
    if kind != "float" or word not in ("inf", "-inf", "nan"):
        raise ValueError(f"an unknown kind {kind!r:.40}")
    return float(word)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in KINDS:
        raise InputError(f"an array of {array.dtype}", "may not travel between a server and sites")
    return array


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
