"""Comparisons in the words of results/*.md: only records may say who is better.

A word that compares stands in a line that is made from records (``{claim ...}`` and the like), or
in a phrase that is listed here with the reason why it claims nothing that a table could refute.
"""

from __future__ import annotations

import re

COMPARES = re.compile(
    r"\b(better|best|worse|worst|below|above|under|beat\w*|lower|higher|less|poorer|weaker|stronger"
    r"|outperform\w*|win|wins|won|lose|loses|losing|lost|level|gain\w*|superior|inferior|ahead"
    r"|behind|as good as|as well as|fails?|holds?|exceed\w*|hurts?|helps?|mends?|improv\w*"
    r"|surpass\w*|equal to|on par|tight|loose\w*|faster|slower|far from)\b",
    re.IGNORECASE,
)

# File -> phrase -> why it may stand there.
MARKS = "says what a mark, a word or a column means"
LOOKED = "reports what was seen of test rows, as that list must"
PAPER = "quotes the paper; the sentences around it say what the records bear"
NAME = "the name of a row or of a bound"
ALLOWED: dict[str, dict[str, str]] = {
    "theory": {
        "the paper's lower bounds are": NAME,
        "the best of all averages": NAME,
        "the worst mixture": NAME,
    },
    "sentiment": {
        "The paper says that DW outperforms all baselines in every column": PAPER,
    },
    "digits": {
        "Here the paper says that DW is better than each single source": PAPER,
    },
    "evidence": {
        "**best pooled\\*** is the same": NAME,
        "14 % above joint\\* on this split, 17 % below on the second and 5 % above": (
            "measured apart from the records"
        ),
        "Two methods within two standard errors are *level*": MARKS,
        "▼ is below joint\\*, ▲ above it, by more than two standard errors": MARKS,
        "without a mark the two are level": MARKS,
        "whether or not others are level with it": MARKS,
        "*worst domain* is the largest loss": MARKS,
        "*worst regret* the largest difference": MARKS,
        "airline was above joint\\* there, and consulting hurt heart": LOOKED,
        "a pool must beat the own model by 2.5 standard errors": "a rule of the method",
    },
}


def stray(name: str, text: str) -> list[str]:
    """Name each comparison of a file that is neither made from records nor listed.

    >>> stray("x", "DW is better than K. {claim DW; clean; better; K; clean; all}")
    ["x.md compares in its own words: '...DW is better than K...'"]
    """
    plain = " ".join(re.sub(r"\{[^}]*\}", " ", text).split())
    covered = set()
    for phrase in ALLOWED.get(name, {}):
        for found in re.finditer(re.escape(phrase), plain):
            covered |= set(range(*found.span()))
    return [
        f"{name}.md compares in its own words: "
        f"'...{plain[max(0, m.start() - 40) : m.end() + 40].strip(' .')}...'"
        for m in COMPARES.finditer(plain)
        if not set(range(*m.span())) <= covered
    ]


def unused(name: str, text: str) -> list[str]:
    """Name the listed phrases that a file no longer has."""
    plain = " ".join(text.split())
    return [phrase for phrase in ALLOWED.get(name, {}) if phrase not in plain]


def check(name: str, text: str) -> None:
    """Refuse words that compare on their own."""
    found = stray(name, text)
    if found:
        raise ValueError(
            "\n".join([*found, "Write a {claim ...} line, or list the phrase in tools/words.py."])
        )
