"""Questions to sites and their answers in Flower's records; the one door to them.

a round      "ask": how many questions; "0", "1", ...: the arrays of each
a reply      "answer": the name of the site; "0", "1", ...: the arrays of each answer
or           "refused": one sentence that says why
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from anymix.engines.wire import Arrays
from anymix.exceptions import InputError, not_installed, one_line

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
