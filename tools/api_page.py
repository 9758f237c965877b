"""docs/api.md: every public name, from its docstring.

Examples are printed with the imports that they need, so that the page runs as a doctest.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, is_typeddict

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
ROOMS = (
    "anymix.estimators",
    "anymix.model_selection",
    "anymix.sources",
    "anymix.exchange",
    "anymix.sandbox",
    "anymix.densities",
    "anymix.core",
    "anymix.core.losses",
    "anymix.monitor",
    "anymix.models",
    "anymix.engines",
    "anymix.report",
    "anymix.tables",
    "anymix.storage",
)
LISTED = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
HEAD = """# API reference

Written from the docstrings by `make docs`; do not edit it here. How the pieces fit is in
[choosing density, objective and loss](choosing.md), and where each formula comes from in the
[map of the paper](paper_map.md).

"""


def render() -> str:
    """Return the whole page."""
    rooms = [import_module(name) for name in ROOMS]
    parts = [HEAD, _front_door(import_module("anymix"))]
    described: dict[Any, str] = {}
    parts += [_room(room, described) for room in rooms]
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def public(room: ModuleType) -> list[str]:
    """Return the public names of a room that are described there and in no room before it."""
    described: set[str] = set()
    for name in ROOMS[: ROOMS.index(room.__name__)]:
        described |= set(import_module(name).__all__)
    return [name for name in room.__all__ if name not in described]


def _front_door(door: ModuleType) -> str:
    names = [name for name in door.__all__ if not name.startswith("_")]
    links = ", ".join(f"[`{name}`](#{name.lower()})" for name in names)
    return f"`from anymix import ...` gives {links}.\n\n"


def _room(room: ModuleType, described: dict[Any, str]) -> str:
    head = f"## {room.__name__}\n\n{_prose(inspect.getdoc(room) or '')}"
    return head + "".join(_entry(room, name, described) for name in public(room))


def _entry(room: ModuleType, name: str, described: dict[Any, str]) -> str:
    thing = getattr(room, name)
    head = f"### {name}\n\n"
    if is_constant(thing):
        return head + constant(thing)
    body = "".join(_sections(inspect.getdoc(thing) or "", room, name))
    methods = _methods(thing, described) if inspect.isclass(thing) else ""
    return f"{head}```python\n{name}{_signature(thing)}\n```\n\n{body}{methods}"


def is_constant(thing: Any) -> bool:
    """Return whether a public name is neither a class nor a function: it has no docstring."""
    return not inspect.isclass(thing) and not inspect.isroutine(thing)


def constant(thing: Any) -> str:
    """Return what a constant holds: the keys of a dictionary, or its value if that is short."""
    if isinstance(thing, ModuleType):
        return f"A module: {_prose(inspect.getdoc(thing) or '')}"
    if isinstance(thing, dict):
        return f"By name: {', '.join(f'`{key}`' for key in thing)}.\n\n"
    # the order of a set, and addresses of objects, differ from run to run
    value = str(sorted(thing)) if isinstance(thing, set | frozenset) else repr(thing)
    told = len(value) <= 80 and " at 0x" not in value
    return f"A constant: `{value}`.\n\n" if told else "A constant.\n\n"


def _signature(thing: Any) -> str:
    """Names and defaults; the types are in the text below."""
    if is_typeddict(thing):
        return ""
    if inspect.isclass(thing) and issubclass(thing, Warning):
        return ""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return str(inspect.Signature(parameters))


def _sections(docstring: str, room: ModuleType, name: str) -> Iterator[str]:
    """Yield the summary, then each numpydoc section."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}$", docstring, flags=re.MULTILINE)
    imports = _imports(docstring, room, name)
    yield _prose(pieces[0], imports)
    for title, text in zip(pieces[1::2], pieces[2::2], strict=True):
        text, _, paper = text.partition("\nPaper: ")
        if title in LISTED:
            yield f"**{title}**\n\n{_list(text)}"
        else:
            yield f"**{title}**\n\n{_prose(text, imports)}"
        if paper:
            yield _prose(f"Paper: {paper}")


def _prose(text: str, imports: str = "") -> str:
    """Paragraphs as they are, doctests fenced; imports open the first of them."""
    out = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.lstrip().startswith(">>>"):
            # A doctest takes the closing fence for output unless a blank line parts them.
            out.append(f"```python\n{_opened(inspect.cleandoc(paragraph), imports)}\n\n```")
            imports = ""
        else:
            out.append(re.sub(r"\APaper: ", "[Paper](paper_map.md): ", paragraph))
    return "\n\n".join(out) + "\n\n"


def _opened(code: str, imports: str) -> str:
    """Put the missing imports behind those that are there."""
    lines = code.splitlines(keepends=True)
    there = [line for line in lines if line.startswith((">>> import ", ">>> from "))]
    first = len(there) if lines[: len(there)] == there else 0
    return "".join([*lines[:first], *imports.splitlines(keepends=True), *lines[first:]])


def _imports(docstring: str, room: ModuleType, name: str) -> str:
    """Return the import lines that the examples of a docstring take for granted."""
    code = "\n".join(re.findall(r"^\s*(?:>>>|\.\.\.) ?(.*)$", docstring, flags=re.MULTILINE))
    there = " ".join(re.findall(r"import (.*)", code))
    words = _loaded(docstring)
    wanted = words - set(re.findall(r"\b\w+\b", there))
    lines = []
    if "np" in words and "numpy" not in there:
        lines.append(">>> import numpy as np\n")
    # the module of an example has names of other rooms, and names that no room lists
    module = vars(import_module(getattr(room, name).__module__))
    wanted = {n for n in wanted - {"np"} if n in module or n in room.__all__}
    for other in dict.fromkeys([room.__name__, *ROOMS]):
        names = wanted & {
            *import_module(other).__all__,
            *([name] if other == room.__name__ else []),
        }
        if names:
            lines.append(f">>> from {other} import {', '.join(sorted(names))}\n")
        wanted -= names
    lines += [_import(n, module[n]) for n in sorted(wanted)]
    return "".join(lines)


def _import(name: str, thing: Any) -> str:
    """Return the line that imports a name which no room lists."""
    if inspect.ismodule(thing):
        return f">>> import {thing.__name__}\n"
    # an alias of a type is at home in `_arrays`
    home = thing.__module__ if thing.__name__ == name else "anymix._arrays"
    return f">>> from {home} import {name}\n"


def _loaded(docstring: str) -> set[str]:
    """Return the names that the examples of a docstring use and do not define."""
    examples = doctest.DocTestParser().get_examples(docstring)
    nodes = [node for e in examples for node in ast.walk(ast.parse(e.source))]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    defined |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    defined |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return {n.id for n in names} - defined


def _list(text: str) -> str:
    """Turn "name : type" and its indented description into one bullet."""
    bullets: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        if line and not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            bullets.append(f"- `{head}`" + (f" ({kind})" if kind else ""))
        elif line.strip():
            joint = ": " if bullets[-1].count("\n") == 0 and ": " not in bullets[-1] else " "
            bullets[-1] += joint + line.strip()
    return "\n".join(bullets) + "\n\n"


def _methods(thing: type, described: dict[Any, str]) -> str:
    """One line for each public method of ours; one that an entry above describes is only named."""
    lines: list[str] = []
    elsewhere: dict[str, list[str]] = {}
    for name, member in inspect.getmembers_static(thing):
        function = _function(member)
        ours = inspect.isfunction(function) and function.__module__.startswith("anymix")
        if name.startswith("_") or not ours:
            continue
        first = described.setdefault(function, thing.__name__)
        if first == thing.__name__:
            lines.append(_method(name, member))
        else:
            elsewhere.setdefault(first, []).append(f"`{name}`")
    for first, names in elsewhere.items():
        lines.append(f"- as in [`{first}`](#{first.lower()}): {', '.join(names)}")
    return "**Methods**\n\n" + "\n".join(lines) + "\n\n" if lines else ""


def _method(name: str, member: Any) -> str:
    function = _function(member)
    summary = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    call = "" if isinstance(member, property | cached_property) else _signature(function)
    # `available_if` of scikit-learn hides these where there are no classes.
    only = " Classification only." if hasattr(member, "check") else ""
    return f"- `{name}{call}`: {summary}{only}"


def _function(member: Any) -> Any:
    """Return what a method, property, or method that is not always there wraps."""
    for wrapped in ("__func__", "fget", "func", "fn"):
        if hasattr(member, wrapped):
            return getattr(member, wrapped)
    return member
