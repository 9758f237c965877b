"""Docs, messages and docstrings use the terms of the field: no word of the private vocabulary.

`PRIVATE` lists the words and what to write in their place.  A justified use is listed in `ALLOWED`
with the line that holds it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source_tree import MODULES
from tools.commit_message import faults

ROOT = Path(__file__).parents[2]
PRIVATE = {
    r"hears?|heard": "consult, pool",
    r"told|tells of": "given, known, reveals",
    r"teach(?:es)?|taught": "train, fit, learn from",
    r"strangers?": "untrusted",
    r"beside": "next to, compared with, besides",
    r"gaps?": "missing values, difference",
    r"lest": "so that ... not",
    r"of its own accord|as it were|else all": "plain words",
}
WORDS = re.compile(rf"\b(?:{'|'.join(PRIVATE)})\b", re.IGNORECASE)
# Where the word is the right one: a fixed name, or the term of the field.
ALLOWED = (
    "told apart",
    "duality gap",
    "paper's gap",
    "`gaps`",
    "`taught`",
    "`heard`",
    "`told`",
    '"gaps"',
    "`beside`",
    ".beside`",
    "beside :",
    "gaps under the null",
    "Gaussian gaps",
    "largest gap between the distribution functions",
    "missing value | gap",
)
# Written by tools from records and docstrings, or a history.
GENERATED = {"api.md", "results.md", "paper_map.md"}


def pages() -> list[Path]:
    """README and the pages that are written by hand."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in docs if page.name not in GENERATED)]


def prose(page: Path) -> Iterator[str]:
    """Lines outside blocks of code."""
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield line


def sentences(tree: ast.AST) -> Iterator[str]:
    """Lines of docstrings and messages: strings with a blank in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from (line for line in node.value.splitlines() if ">>>" not in line)


def private(line: str) -> bool:
    """Whether a line has a word of the private vocabulary that is not allowed there."""
    for allowed in ALLOWED:
        line = line.replace(allowed, "")
    return WORDS.search(line) is not None


def test_pages_use_the_terms_of_the_field():
    found = [
        f"{p.relative_to(ROOT)}: {line[:120]}"
        for p in pages()
        for line in prose(p)
        if private(line)
    ]
    assert not found, "\n".join(found)


def test_messages_and_docstrings_use_the_terms_of_the_field():
    found = [
        f"{module.name}: {line.strip()[:120]}"
        for module in MODULES
        for line in sentences(ast.parse(module.text))
        if private(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line", ["The sources hear each other.", "rows that taught it", "folders from strangers"]
)
def test_a_private_word_is_found(line):
    assert private(line)


def test_a_term_of_the_field_is_left_alone():
    assert not private("The solver ends at a duality gap of 1e-9; `gaps` is an entry.")


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Adding a test", "imperative"),
        ("WIP", "imperative"),
        ("Add a test.", "ends with"),
        ("x" * 80, "80 characters"),
        ("", "empty"),
    ],
)
def test_a_commit_subject_is_checked(subject, fault):
    assert any(fault in found for found in faults(subject))
    assert not faults("Speed up the search")
