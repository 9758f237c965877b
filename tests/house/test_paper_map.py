"""The map of the paper and the `Paper:` lines of the docstrings say the same, both ways."""

import ast
import re

import pytest

from tests.house.source_tree import EXPERIMENTS, MODULES, ROOT
from tools import paper_map

ITEMS = [
    *(f"Eq. {n}" for n in range(1, 7)),
    *("Thm 1", "Cor. 2", "Thm 3", "Lemma 4", "Prop. 5", "Prop. 6", "Lemma 7", "Lemma 8"),
    *("Thm 9", "Cor. 10", "Cor. 11", "Thm 12", "Thm 13"),
    *("Sec. 5.1", "Sec. 5.2"),
    *("App. A", "App. B", "App. C", "App. D", "App. E.1", "App. E.2", "App. E.3", "App. F"),
    *(f"Table {n}" for n in range(1, 8)),
    *(f"Fig. {n}" for n in range(1, 4)),
]
PAGE = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-Z][a-z]+\.? [A-Z0-9.]+) \| (.+) \| (.*) \|$", PAGE, flags=re.MULTILINE)


def _claims() -> dict[str, set[str]]:
    """Name and items of everything with a `Paper:` line, read apart from the generator."""
    found: dict[str, set[str]] = {}
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    for module in [*MODULES, *EXPERIMENTS]:
        stack = [(module.tree, module.name.removeprefix("anymix."))]
        while stack:
            node, name = stack.pop()
            text = (isinstance(node, documented) and ast.get_docstring(node)) or ""
            for line in text.splitlines():
                if line.startswith("Paper:"):
                    items = line.removeprefix("Paper:").strip().removesuffix(".").split(", ")
                    found[name] = set(items)
            children = [c for c in ast.iter_child_nodes(node) if isinstance(c, documented)]
            stack += [(child, f"{name}.{child.name}") for child in children]
    return found


CLAIMS = _claims()


def test_every_item_of_the_paper_has_one_row():
    assert [item for item, _, _ in ROWS] == ITEMS


def wrong_rows(rows: list[tuple[str, str, str]], claims: dict[str, set[str]]) -> list[str]:
    """Rows that do not list exactly the functions that claim them, or say nothing."""
    wrong = []
    for item, words, code in rows:
        listed = sorted(re.findall(r"`([\w.]+)`", code))
        claimed = sorted(name for name, items in claims.items() if item in items)
        if listed != claimed or not words.strip() or not code.strip():
            wrong.append(f"{item}: the page lists {listed}, the docstrings claim {claimed}")
    return wrong


def test_each_row_lists_exactly_the_functions_that_claim_it():
    wrong = wrong_rows(ROWS, CLAIMS)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "row",
    [
        ("Eq. 1", "words", "`core.a`"),
        ("Eq. 1", "words", "`core.a`, `core.b`, `core.c`"),
        ("Eq. 1", "words", "`core.a`, `core.b`, `core.b`"),
        ("Eq. 1", " ", "`core.a`, `core.b`"),
        ("Eq. 2", "words", " "),
    ],
)
def test_a_wrong_row_is_found(row):
    claims = {"core.a": {"Eq. 1"}, "core.b": {"Eq. 1", "Eq. 3"}}
    assert wrong_rows([("Eq. 1", "words", "`core.b`, `core.a`")], claims) == []
    assert wrong_rows([row], claims)


def test_each_function_names_items_that_exist():
    wrong = {name: items - set(ITEMS) for name, items in CLAIMS.items() if items - set(ITEMS)}
    assert not wrong, f"no such items in the paper: {wrong}"


def test_the_core_of_the_paper_has_code():
    without = {item for item, _, code in ROWS if "`" not in code}
    proofs = {"Thm 9", "App. B"}
    assert without - proofs <= {item for item in ITEMS if item.startswith(("Table", "Fig. 1"))}


def test_the_generator_agrees_with_the_page():
    assert paper_map.render(PAGE) == PAGE, "run `make docs`"


def test_the_generator_rewrites_names_and_keeps_words():
    row = "| Lemma 4 | a fixed point | [`old.name`](../src/anymix/old.py) |"
    new = paper_map.render(row)
    assert "brouwer_map" in new
    assert "old.name" not in new
    assert "| a fixed point |" in new
    row = "| Lemma 99 | unknown | [`old.name`](../src/anymix/old.py) |"
    assert paper_map.render(row) == "| Lemma 99 | unknown | to come |\n"
    row = "| Thm 9 | Brouwer | existence only |"
    assert paper_map.render(row) == row + "\n"
