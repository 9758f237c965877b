"""What is public is typed, described, listed, sorted, and is what its name says."""

import ast
import pkgutil
import types
from importlib import import_module

import pytest

import anymix
from tests.house.source_tree import FUNCTION, LIBRARY, Module, check, made_up

ROOMS = sorted(path.parent.name for path in LIBRARY.glob("*/__init__.py"))
PACKAGES = sorted(
    ".".join(path.parent.relative_to(LIBRARY.parent).parts) for path in LIBRARY.rglob("__init__.py")
)


def public(module: Module) -> list[tuple[str, ast.AST]]:
    """Definitions that a user can reach: no part of the name is private, none is in a function."""
    inside = {id(n) for _, f in module.functions() for n in ast.walk(f) if n is not f}
    return [
        (name, node)
        for name, node in module.definitions()
        if id(node) not in inside and not any(p.startswith("_") for p in name.split("."))
    ]


def without_types(module: Module) -> list[str]:
    found = []
    for name, node in public(module):
        if isinstance(node, FUNCTION):
            a = node.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            bare = [g.arg for g in given if g.annotation is None and g.arg not in ("self", "cls")]
            bare += ["return"] if node.returns is None else []
            found += [f"{name}: no type for {', '.join(bare)}"] if bare else []
    return found


def without_docstrings(module: Module) -> list[str]:
    bare = [name for name, node in public(module) if ast.get_docstring(node) is None]
    return bare if ast.get_docstring(module.tree) else [module.name, *bare]


@pytest.mark.parametrize("rule", [without_types, without_docstrings])
def test_public_things_have_types_and_docstrings(rule):
    check(rule)


@pytest.mark.parametrize(
    ("rule", "text", "offence"),
    [
        (without_types, "def f(x): ...", "made_up.f: no type for x, return"),
        (without_types, "def f(x: int): ...", "made_up.f: no type for return"),
        (without_types, "def f(x) -> int: ...", "made_up.f: no type for x"),
        (without_types, "def f(*, x=1) -> int: ...", "made_up.f: no type for x"),
        (without_types, "def f(*x, **y) -> int: ...", "made_up.f: no type for x, y"),
        (without_types, "class C:\n def f(self, x) -> int: ...", "made_up.C.f: no type for x"),
        (without_types, "if 1:\n def f(x) -> int: ...", "made_up.f: no type for x"),
        (without_docstrings, "'''Why.'''\ndef f(): ...", "made_up.f"),
        (without_docstrings, "'''Why.'''\nclass C: ...", "made_up.C"),
        (without_docstrings, "x = 1", "made_up"),
    ],
)
def test_what_is_bare_is_refused(rule, text, offence):
    assert rule(made_up(text)) == [f"anymix.sources.{offence}"]


def test_what_is_private_may_be_bare():
    text = "'''Why.'''\ndef _f(x): ...\nclass _C:\n def f(self, x): ..."
    inner = "\ndef f(x: int) -> int:\n '''Why.'''\n def g(y): ..."
    assert without_types(made_up(text + inner)) == without_docstrings(made_up(text + inner)) == []


def shadowed(package: types.ModuleType) -> list[str]:
    """Submodules x of a package whose attribute x is something else."""
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("__")]
    modules = {name: import_module(f"{package.__name__}.{name}") for name in names}
    return [f"{package.__name__}.{n}" for n in names if getattr(package, n) is not modules[n]]


def test_no_module_is_shadowed():
    """`import anymix.core.x` must give the module, not a function of the same name."""
    assert [name for package in PACKAGES for name in shadowed(import_module(package))] == []


def test_a_shadowed_module_is_found(tmp_path, monkeypatch):
    folder = tmp_path / "made_up_package"
    folder.mkdir()
    (folder / "solve.py").write_text("def solve(): ...\n")
    (folder / "other.py").write_text("def help(): ...\n")
    (folder / "__init__.py").write_text(
        "from made_up_package.other import help\nfrom made_up_package.solve import solve\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert shadowed(import_module("made_up_package")) == ["made_up_package.solve"]


def misplaced(door: types.ModuleType) -> list[str]:
    """Names of `__all__` that cannot be reached, are private, come twice or out of order."""
    names = door.__all__
    wrong = [n for n in names if not hasattr(door, n) or n.startswith("_") or names.count(n) > 1]
    # as ruff sorts: CONSTANTS, Classes, functions
    order = sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    wrong += [n for n, expected in zip(names, order, strict=True) if n != expected]
    return [f"{door.__name__}.{n}" for n in wrong]


@pytest.mark.parametrize("room", [r for r in ROOMS if r != "cli"])
def test_every_room_lists_its_names_in_order(room):
    assert misplaced(import_module(f"anymix.{room}")) == []


def test_every_name_of_the_front_door_can_be_reached():
    assert [name for name in anymix.__all__ if not hasattr(anymix, name)] == []
    assert len(set(anymix.__all__)) == len(anymix.__all__)


@pytest.mark.parametrize("names", [["b", "a"], ["a", "gone"], ["a", "a"], ["a", "B"], ["_a"]])
def test_a_careless_list_is_found(names):
    door = types.ModuleType("made_up")
    door.a, door.b, door.B, door._a = range(4)
    door.__all__ = names
    assert misplaced(door)


def losses() -> set[str]:
    from anymix.core import Loss
    from anymix.core import losses as room

    things = {name: getattr(room, name) for name in room.__all__}
    return {n for n, thing in things.items() if isinstance(thing, type) and issubclass(thing, Loss)}


def asks_which_loss(module: Module) -> list[str]:
    """isinstance, issubclass, `type(x) is` or `case` with a loss class, outside core/losses.

    A loss says what it takes; whoever asks for its class forgets the losses of users.
    """
    if module.name.startswith("anymix.core.losses"):
        return []
    known, found = losses(), []
    for node in ast.walk(module.tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked = node.args[1:2] if node.func.id in ("isinstance", "issubclass") else []
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            asked = [node]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        names = {n.id for a in asked for n in ast.walk(a) if isinstance(n, ast.Name)}
        names |= {n.attr for a in asked for n in ast.walk(a) if isinstance(n, ast.Attribute)}
        found += [f"{module.name}:{node.lineno} {name}" for name in sorted(names & known)]
    return found


def test_nobody_asks_which_loss_it_is():
    check(asks_which_loss)


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(loss, CrossEntropy)",
        "isinstance(loss, Brier | CrossEntropy)",
        "isinstance(loss, (Brier, Squared))",
        "isinstance(loss, losses.CrossEntropy)",
        "issubclass(kind, Huber)",
        "type(loss) is CrossEntropy",
        "type(loss) in (CrossEntropy, Brier)",
        "match loss:\n case CrossEntropy(): ...",
    ],
)
def test_asking_for_the_class_of_a_loss_is_refused(text):
    assert asks_which_loss(made_up(text))
    assert asks_which_loss(Module("anymix.core.losses.names", text)) == []


def test_asking_for_other_classes_is_accepted():
    assert asks_which_loss(made_up("isinstance(loss, str)\nCrossEntropy()\ntype(x) is int")) == []


def test_every_definition_is_seen():
    """The rules above see methods, and functions inside functions and conditions."""
    text = "def f():\n def g(): ...\nclass C:\n def h(self): ...\nif 1:\n def i(): ..."
    names = [name for name, _ in made_up(text).definitions()]
    assert set(names) == {f"anymix.sources.made_up.{x}" for x in ("f", "f.g", "C", "C.h", "i")}
    assert len(names) == 5
