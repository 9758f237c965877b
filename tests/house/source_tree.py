"""The library as the tests of the house see it: files, trees, functions."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "anymix"
FILES = sorted(LIBRARY.rglob("*.py"))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The room that a module of ours is in; "door" for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and not parts[1].startswith("_") else "door"


def imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def code_lines(node: ast.AST, text: list[str]) -> int:
    """Lines of a definition without docstrings, blank lines and comments."""
    documented = (ast.FunctionDef, ast.ClassDef)
    prose: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, documented) and ast.get_docstring(part) is not None:
            prose |= set(range(part.body[0].lineno, part.body[0].end_lineno + 1))
    body = node.body[1:] if node.body[0].lineno in prose else node.body
    if not body:
        return 0
    numbers = range(body[0].lineno, node.end_lineno + 1)
    lines = [text[i - 1].strip() for i in numbers if i not in prose]
    return sum(bool(line) and not line.startswith("#") for line in lines)
