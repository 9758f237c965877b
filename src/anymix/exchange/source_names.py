"""Names of sources: in any script, safe in files and tables, and no two that look alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category, is_normalized, normalize

from anymix.exceptions import InputError, quoted

# With the twelve digits of a digest and a hyphen, a folder of a name has at most 213 bytes.
MOST_LETTERS, MOST_BYTES = 64, 200
MOST_MARKS = 3  # on one letter: more would paint over the lines around
# Letters and marks that cannot be seen: fillers of Hangul, selectors of variants, joiners.
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Letters and digits, and marks, by the category of Unicode.
KINDS = dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), "l") | {"Mn": "m", "Mc": "m", "Nd": "d"}
# Names of rows and columns next to those of the sources in comparisons and reports.
RESERVED = ("all", "anymix", "likeliest source", "uniform", "worst")


def is_name(name: object) -> bool:
    r"""Whether a text is a valid source name.

    Its characters are letters, marks, digits, spaces, dots, underscores and hyphens; the first
    is a letter or a digit.  So there are no separators of paths, no control characters and none
    that turn the direction of text.  It is in the form NFC, that one name is one text.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MOST_LETTERS or UNSEEN.search(name):
        return False
    kinds = "".join("." if c in " ._-" else KINDS.get(category(c), "x") for c in name)
    sound = re.fullmatch(rf"[ld](?:[ld.]|m{{1,{MOST_MARKS}}}(?!m))*", kinds)
    # Halves of characters have no kind of their own, so that all that is left can be encoded.
    return sound is not None and len(name.encode()) <= MOST_BYTES and is_normalized("NFC", name)


def check_name(name: str) -> None:
    """Refuse a name for a source that no manifest may hold."""
    if not is_name(name):
        if is_name(normalize("NFC", str(name))):
            raise InputError(
                quoted(name), "names a source in another form than NFC; normalise it to NFC first"
            )
        raise InputError(
            quoted(name),
            "cannot name a source; use 1 to 64 letters, digits, spaces, dots, underscores or "
            "hyphens, and begin with a letter or digit",
        )
    if alike(name) in RESERVED:
        raise InputError(
            quoted(name), "cannot name a source: it has a special meaning in tables; use another"
        )


def alike(name: str) -> str:
    """Return a key that is equal for names that look alike: no capitals, no wide letters."""
    return " ".join(normalize("NFKC", normalize("NFKC", name).casefold()).split())


def check_different(names: Sequence[str], what: str, remedy: str) -> None:
    """Refuse names that look alike."""
    known: dict[str, str] = {}
    for name in names:
        if alike(name) in known:
            raise InputError(
                f"two of the {what}",
                f"have the same name, or names that look alike ({quoted(known[alike(name)])} and "
                f"{quoted(name)}); {remedy}",
            )
        known[alike(name)] = name
