"""The library as the tests of the house see it: modules, their trees, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "anymix"
STUDIES = ROOT / "experiments"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (*FUNCTION, ast.ClassDef)


@dataclass(frozen=True)
class Module:
    """A module of ours, or one that was made up in order to be refused."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def room(self) -> str:
        return room(self.name)

    def definitions(self) -> Iterator[tuple[str, ast.AST]]:
        """Yield every function and class with its dotted name, also those inside functions."""
        stack: list[tuple[str, ast.AST]] = [(self.name, self.tree)]
        while stack:
            name, node = stack.pop()
            for child in ast.iter_child_nodes(node):
                inner = f"{name}.{child.name}" if isinstance(child, DEFINITION) else name
                stack.append((inner, child))
                if isinstance(child, DEFINITION):
                    yield inner, child

    def functions(self) -> list[tuple[str, ast.AST]]:
        return [(name, node) for name, node in self.definitions() if isinstance(node, FUNCTION)]

    def imports(self) -> set[tuple[str, str]]:
        """Each import as (module, name); the name is empty for `import module`."""
        found: set[tuple[str, str]] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {(alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {(self._absolute(node), alias.name) for alias in node.names}
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        up = self.name.split(".")
        up = up[: len(up) - node.level + self.is_package]
        return ".".join([*up, *([node.module] if node.module else [])])


def read_module(path: Path, root: Path = LIBRARY.parent) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name, path.read_text(encoding="utf-8"), is_package)


MODULES = [read_module(path) for path in sorted(LIBRARY.rglob("*.py"))]
EXPERIMENTS = [read_module(path, ROOT) for path in sorted(STUDIES.rglob("*.py"))]


def made_up(text: str, name: str = "anymix.sources.made_up") -> Module:
    return Module(name, text)


def offenders(rule: Callable[[Module], list[str]]) -> list[str]:
    """Collect what a rule finds in the whole library."""
    return [offence for module in MODULES for offence in rule(module)]


def check(rule: Callable[[Module], list[str]]) -> None:
    """Fail with the name of every offender, one a line."""
    found = offenders(rule)
    assert not found, "\n".join([f"{len(found)} offend:", *found])


def room(module: str) -> str:
    """The room that a module of ours is in; "door" for the package itself and what all share."""
    parts = module.split(".")
    shared = len(parts) < 2 or parts[1].startswith("_") or parts[1] == "exceptions"
    return "door" if shared else parts[1]


def code_lines(node: ast.AST, text: list[str]) -> int:
    """Lines of a definition without docstrings, blank lines and comments."""
    prose: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, DEFINITION) and ast.get_docstring(part) is not None:
            prose |= set(range(part.body[0].lineno, part.body[0].end_lineno + 1))
    body = node.body[1:] if node.body[0].lineno in prose else node.body
    if not body:
        return 0
    numbers = range(body[0].lineno, node.end_lineno + 1)
    lines = [text[i - 1].strip() for i in numbers if i not in prose]
    return sum(bool(line) and not line.startswith("#") for line in lines)
