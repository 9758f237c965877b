"""The third column of docs/paper_map.md: which function carries which item of the paper.

A docstring that ends in a line such as ``Paper: Eq. 1, Prop. 5.`` claims these items for its
function, class or module.  The words of the page are written by hand and kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "src" / "anymix", ROOT / "experiments")
PAGE = ROOT / "docs" / "paper_map.md"
CLAIM = re.compile(r"(?:\A|\n)\s*Paper:\s(.+?)\.\s*\Z", re.DOTALL)
NO_CODE = "to come"


def claimed(docstring: str) -> list[str]:
    r"""Return the items that the last line of a docstring names.

    >>> claimed("Do it.\n\nPaper: Eq. 1, Thm 3.")
    ['Eq. 1', 'Thm 3']
    """
    found = CLAIM.search(docstring)
    return [" ".join(item.split()) for item in found[1].split(",")] if found else []


def documented(path: Path, package: Path) -> Iterator[tuple[str, str]]:
    """Yield the dotted name, without "anymix.", and the docstring of everything in a file."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    module = ".".join(parts[1:] if parts[0] == "anymix" else parts)

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield name, ast.get_docstring(node) or ""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                yield from walk(child, f"{name}.{child.name}")

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), module)


def carriers() -> dict[str, list[tuple[str, Path]]]:
    """Return for each item the names that claim it, each with its file, in order."""
    found: dict[str, list[tuple[str, Path]]] = {}
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            for name, docstring in documented(path, package):
                for item in claimed(docstring):
                    found.setdefault(item, []).append((name, path))
    return found


def render(page: str) -> str:
    """Return the page with the third cell of every row of three written anew."""
    known = carriers()
    lines = [_row(line, known) for line in page.splitlines()]
    return "\n".join(lines) + "\n"


def _row(line: str, known: dict[str, list[tuple[str, Path]]]) -> str:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if not line.startswith("| ") or len(cells) != 3 or cells[0] == "item":
        return line
    names = known.get(cells[0], [])
    # An item without code keeps the words that say why, unless its code has gone.
    code = ", ".join(_link(*name) for name in names) if names else _words(cells[2])
    return f"| {cells[0]} | {cells[1]} | {code} |"


def _words(cell: str) -> str:
    return cell if cell and ".py)" not in cell else NO_CODE


def _link(name: str, path: Path) -> str:
    return f"[`{name}`](../{path.relative_to(ROOT).as_posix()})"
