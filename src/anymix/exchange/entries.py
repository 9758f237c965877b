"""Entries of a manifest that a stranger wrote: one sentence for each that is not as it must be."""

from __future__ import annotations

import math
import re
from typing import Any

from anymix.exceptions import AuditError

MANIFEST = "manifest.json"
MOST_SAID = 500  # characters of what a density says of itself
HARMLESS = re.compile(r"[\w .,%/+=<>@-]*")


def check(condition: Any, complaint: str) -> None:
    """Refuse a manifest with one sentence."""
    if not condition:
        raise AuditError(MANIFEST, complaint)


def shown(value: Any) -> str:
    """Quote a foreign value, but not all of it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def exact(data: Any, record: type) -> dict[str, Any]:
    """Return the fields if they are those of the record, no more and no fewer."""
    names = set(record.__dataclass_fields__)  # type: ignore[attr-defined]
    check(
        isinstance(data, dict), f"has {shown(data)} where an object of {sorted(names)} is expected"
    )
    if data.keys() == names:
        return dict(data)
    check(not names - set(data), f"lacks {sorted(names - set(data))}")
    unknown = sorted(set(data) - names)
    check(not unknown, f"has the unknown entries {shown(unknown)}")
    return dict(data)


def is_text(value: Any, longest: int = 200) -> bool:
    """Whether a name or a label may stand in a manifest: printable, not empty, not too long."""
    return isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()


def is_label(value: Any) -> bool:
    """Whether a text may be a label: one that a spreadsheet would run as a formula may not.

    Signs before words and numbers are harmless; it takes brackets, bars or quotes to do more.

    Examples
    --------
    >>> is_label("+ve"), is_label("-1.5"), is_label("="), is_label('=HYPERLINK("http://x")')
    (True, True, True, False)
    """
    return is_text(value) and (value[0] not in "=+-@" or bool(HARMLESS.fullmatch(value)))


def is_count(value: Any) -> bool:
    """Whether a value is a whole number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**62


def is_number(value: Any) -> bool:
    """Whether a value is a number of a usual size."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and abs(value) < 1e100


def shortened(text: str, most: int = MOST_SAID) -> str:
    """Keep the first sentences of a text: a manifest has room for 1000 characters in all.

    Examples
    --------
    >>> shortened("One. Two. Three.", 10)
    'One. Two. And so on.'
    """
    if len(text) <= most:
        return text
    return f"{text[:most].rpartition('. ')[0] or text[:most]}. And so on."
