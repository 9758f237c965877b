"""The map of the paper and the `Paper:` lines of the docstrings say the same, both ways."""

import ast
import re

import pytest

from tests.house.source_tree import FILES, ROOT, module_name, parse
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
    for path in FILES:
        stack = [(parse(path), module_name(path).removeprefix("anymix."))]
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


@pytest.mark.parametrize(("item", "words", "code"), ROWS, ids=[row[0] for row in ROWS])
def test_each_row_lists_exactly_the_functions_that_claim_it(item, words, code):
    listed = re.findall(r"`([\w.]+)`", code)
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name, items in CLAIMS.items() if item in items}
    assert words.strip()
    assert code.strip()


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_each_function_names_items_that_exist(name):
    assert CLAIMS[name] <= set(ITEMS)


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
