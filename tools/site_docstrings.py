"""Docstrings for the site: what is an index stays one, and the paper's places lead to the map."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class PlainText(Extension):
    """Undo what Markdown would make of a docstring that is written for the terminal."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    r"""Keep `rows[j][k]` from becoming a link, and put the paper's place into a line of its own.

    Examples
    --------
    >>> plain("rows[j][k]\n>>> rows[0][1]")
    'rows[j]\\[k]\n>>> rows[0][1]'
    >>> plain("Find z.\n\nPaper: Prop. 6.").splitlines()
    ['Find z.', '', 'Notes', '-----', 'Paper: Prop. 6.']
    """
    text = re.sub(r"^(?!\s*(?:>>>|\.\.\.)).*\]\[.*$", _escaped, text, flags=re.MULTILINE)
    # At the end of a section of parameters the line would be taken for one of them.
    return re.sub(r"\n+(?=Paper: )", "\n\nNotes\n-----\n", text)


def _escaped(line: re.Match[str]) -> str:
    return line.group().replace("][", r"]\[")
