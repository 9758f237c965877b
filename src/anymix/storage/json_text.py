"""Untrusted JSON, measured before anything is built from it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Every list, object, entry, key and string of a JSON text needs one of these, so their number
# bounds what the text can grow to.  Those inside strings count too: that errs on the safe side.
MARKS = (b"[", b"{", b",", b":", b'"')
MOST_MARKS = 2_000_000  # well below 200 MB, whatever they are
DEEPEST = 50
# Digits that a sound whole number or fraction never needs; to read more of them takes ever longer.
LONGEST_INTEGER, LONGEST_FRACTION = 30, 100
# Possessive, and content with a string that has no end: so it never goes back over what it read.
STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
BRACKETS = re.compile(rb"[\[{]+|[\]}]+")
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def plain_json(content: bytes, most_marks: int = MOST_MARKS) -> Any:
    """Read JSON without NaN, infinities, repeated keys, half characters or bottomless nesting.

    `most_marks` bounds the signs that separate, quote and open; it is counted before the text is
    parsed, and so before a short text can become a large object.  A ValueError says what is wrong,
    in words that can follow the name of a file.

    Examples
    --------
    >>> plain_json(b'{"a": [1]}')
    {'a': [1]}
    >>> plain_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: is not plain JSON: NaN is not a number
    >>> plain_json(b"[[], [], []]", most_marks=4)
    Traceback (most recent call last):
    ...
    ValueError: is not plain JSON: it has more than the 4 entries and signs that are allowed
    """
    try:
        if sum(map(content.count, MARKS)) > most_marks:
            raise ValueError(
                f"it has more than the {most_marks} entries and signs that are allowed"
            )
        depth = 0
        for run in BRACKETS.finditer(STRINGS.sub(b"", content)):
            depth += len(run[0]) if run[0][0] in b"[{" else -len(run[0])
            if depth > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} deep")
        value = json.loads(
            content.decode("utf-8"),
            parse_constant=_no_constant,
            parse_int=_number,
            parse_float=_number,
            object_pairs_hook=_no_repeats,
        )
        if HALF_CHARACTER.search(content):
            # It cannot be written to any file or terminal.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except UnicodeEncodeError as error:
        raise ValueError("is not plain JSON: a text holds half of a character") from error
    except (ValueError, RecursionError) as error:
        cause = str(error).split("\n")[0][:200].rstrip(".")
        raise ValueError(f"is not plain JSON: {cause}") from error


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _number(digits: str) -> int | float:
    """Read a whole number or a fraction; parsing more digits than either needs takes too long."""
    whole = digits.lstrip("-").isdigit()
    longest = LONGEST_INTEGER if whole else LONGEST_FRACTION
    if len(digits.lstrip("-") if whole else digits) > longest:
        raise ValueError(f"a {'whole ' * whole}number has more than {longest} digits")
    if whole:
        return int(digits)
    if math.isinf(number := float(digits)):
        raise ValueError(f"{digits[:30]} is too large for a number")
    return number


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key occurs twice")
    return entries
