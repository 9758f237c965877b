"""Check the subject of a commit: `python tools/commit_message.py FILE`, as pre-commit calls it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
# First words that are no imperatives, though they look like verbs.
FORMS = re.compile(r"\w+(?:ed|ing)\b|(?:adds|fixes|makes|uses|wip)\b", re.IGNORECASE)
# Verbs whose imperative ends like another form.
IMPERATIVES = {"embed", "feed", "need", "speed", "bring", "string", "ping", "shed", "seed"}


def faults(message: str) -> list[str]:
    """Say what is wrong with the first line of a message.

    Examples
    --------
    >>> faults("Bound the loss of every subpopulation")
    []
    >>> faults("Fix typo.")
    ['ends with "."']
    """
    subject = message.splitlines()[0] if message.strip() else ""
    first = subject.split(" ", 1)[0]
    found = []
    if not first:
        found.append("is empty")
    if FORMS.fullmatch(first) and first.lower() not in IMPERATIVES:
        found.append(f'starts with "{first}"; use the imperative, as in "Add"')
    if first[:1].islower():
        found.append("starts in lower case")
    if subject.endswith("."):
        found.append('ends with "."')
    if len(subject) > LONGEST:
        found.append(f"has {len(subject)} characters; {LONGEST} is the most")
    return found


if __name__ == "__main__":
    problems = faults(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if problems:
        sys.exit(f"The subject of the commit {', and '.join(problems)}.")
