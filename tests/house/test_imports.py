"""Import arrows go only downward and through doors, and `import anymix` loads little."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest

from tests.house.source_tree import LIBRARY, MODULES, Module, check, made_up, room

BELOW = {"storage", "tables", "core", "densities", "sources"}
MAY_ENTER = {
    "storage": set(),
    "tables": {"storage"},
    "core": {"storage"},
    "densities": {"storage", "tables"},
    "sources": {"storage", "tables", "core", "densities"},
    "sandbox": {"storage"},
    "exchange": BELOW | {"sandbox"},
    "estimators": BELOW,
    "model_selection": {"estimators"},
    "monitor": {"storage", "core", "sources"},
    "models": BELOW | {"exchange", "estimators", "monitor"},
    "engines": BELOW | {"exchange", "estimators", "models"},
    "report": {"storage", "core"},
    "cli": BELOW | {"exchange", "sandbox", "estimators", "monitor", "models", "engines", "report"},
    "door": set(),
}
PICKLES = {"pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
HEAVY = {"onnx", "onnxruntime", "safetensors", "dask", "flwr", "nvflare"}
HEAVY |= {"torch", "matplotlib", "pandas"}
# Libraries that one room alone may ask for.
AT_ONE_DOOR = {
    "dask": "engines",
    "distributed": "engines",
    "flwr": "engines",
    "nvflare": "engines",
    "onnxruntime": "sandbox",
    "safetensors": "exchange",
    "skl2onnx": "exchange",
}


def ours(module: Module) -> list[tuple[str, str]]:
    return sorted((m, n) for m, n in module.imports() if m.split(".")[0] == "anymix")


def upward(module: Module) -> list[str]:
    """Rooms that a module enters though they are not below its own."""
    # `import anymix`, and names of the front door, would reach every room
    entered = {room(f"{m}.{n or m}" if m == "anymix" else m) for m, n in ours(module)}
    wrong = entered - {module.room, "door"} - MAY_ENTER.get(module.room, set())
    return [f"{module.name} enters {name}" for name in sorted(wrong)]


def past_the_door(module: Module) -> list[str]:
    """Imports from another room that do not take a name which its `__init__` gives."""
    found = []
    for source, name in ours(module):
        other = room(source)
        if other in (module.room, "door"):
            continue
        if source != f"anymix.{other}" or not name or name not in given(other):
            found.append(f"{module.name} takes {source}{'.' if name else ''}{name}")
    return found


def given(name: str) -> set[str]:
    """Return the names that a room's `__init__` binds, and those that it looks up when asked."""
    (door,) = [m for m in MODULES if m.name == f"anymix.{name}" and m.is_package] or [None]
    if door is None:
        return set()
    names = set()
    for node in ast.walk(door.tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.ClassDef):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names |= {t.id for t in targets if isinstance(t, ast.Name)}
            names |= {getattr(node, "name", "")}
    lazy = "__getattr__" in names
    return names | (set(import_module(door.name).__all__) if lazy else set())


def pickles(module: Module) -> list[str]:
    names = {m.split(".")[0] for m, _ in module.imports()} & PICKLES
    return [f"{module.name} imports {name}" for name in sorted(names)]


def at_another_door(module: Module) -> list[str]:
    names = {m.split(".")[0] for m, _ in module.imports()}
    wrong = {n for n in names & set(AT_ONE_DOOR) if AT_ONE_DOOR[n] != module.room}
    return [f"{module.name} imports {name}" for name in sorted(wrong)]


@pytest.mark.parametrize("rule", [upward, past_the_door, pickles, at_another_door])
def test_imports_keep_to_the_house(rule):
    check(rule)


def test_the_table_lists_the_rooms_that_exist():
    rooms = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    folders = {p.name for p in LIBRARY.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert rooms == folders == set(MAY_ENTER) - {"door"}


def test_the_table_has_no_cycle():
    done: set[str] = set()
    while open_rooms := [r for r in MAY_ENTER if r not in done]:
        free = [r for r in open_rooms if MAY_ENTER[r] <= done]
        assert free, f"a cycle among {open_rooms}"
        done |= set(free)


@pytest.mark.parametrize(
    ("rule", "text", "offence"),
    [
        (upward, "from anymix.cli import main", "enters cli"),
        (upward, "from anymix.estimators.reweighting import x", "enters estimators"),
        (upward, "import anymix.monitor", "enters monitor"),
        (upward, "def f():\n from anymix.report import render", "enters report"),
        (upward, "from ..estimators import compare", "enters estimators"),
        (upward, "from anymix import Source", "enters Source"),
        (upward, "import anymix", "enters anymix"),
        (past_the_door, "from anymix.core.problem import Problem", "takes anymix.core.problem"),
        (
            past_the_door,
            "from anymix.core.losses.base import Loss",
            "takes anymix.core.losses.base",
        ),
        (past_the_door, "import anymix.core.problem", "takes anymix.core.problem"),
        (past_the_door, "import anymix.core", "takes anymix.core"),
        (past_the_door, "from anymix.core import problem", "takes anymix.core.problem"),
        (past_the_door, "from ..core.problem import Problem", "takes anymix.core.problem"),
        (past_the_door, "from ..core import problem", "takes anymix.core.problem"),
        (past_the_door, "from anymix.core import *", "takes anymix.core.*"),
        (pickles, "import pickle", "imports pickle"),
        (pickles, "def f():\n from joblib import load", "imports joblib"),
        (at_another_door, "import dask.bag", "imports dask"),
    ],
)
def test_what_is_not_allowed_is_refused(rule, text, offence):
    (found,) = rule(made_up(text))
    assert offence in found


@pytest.mark.parametrize(
    "text",
    [
        "from anymix.core import Problem, simplex",
        "from anymix.sources.tables import Tables",
        "from .tables import Tables",
        "from ..core import Problem",
        "from anymix._arrays import FloatArray",
        "from anymix import _arrays",
        "import numpy",
    ],
)
def test_what_is_allowed_is_accepted(text):
    for rule in (upward, past_the_door, pickles, at_another_door):
        assert rule(made_up(text)) == []


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_needs_numpy_and_scipy_alone():
    run(
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('sklearn', 'pandas', 'joblib', 'threadpoolctl'):\n"
        "            raise ImportError(f'the core asked for {name}')\n"
        "sys.meta_path.insert(0, Wall())\n"
        "import anymix.core as c\n"
        "p = c.Problem([[.9, .1], [.2, .8]], [[0., .5], [.5, 1.]], [0., 1.])\n"
        "assert c.solve(p).status == 'stationary'\n"
    )


def test_import_anymix_loads_itself_alone():
    """No clock is needed: beside two small modules of its own, all is Python's own and small."""
    code = "import sys, importlib, typing; old = set(sys.modules); import anymix; "
    assert set(run(code + "print(*set(sys.modules) - old)").split()) == {
        "anymix",
        "anymix._version",
    }


def test_import_of_every_room_loads_nothing_heavy():
    rooms = [name for name in MAY_ENTER if name != "door"]
    loaded = run(f"import sys\nfor r in {rooms}: __import__('anymix.' + r)\nprint(*sys.modules)")
    # scikit-learn itself loads pandas where it is installed.
    assert not {name.split(".")[0] for name in loaded.split()} & (HEAVY - {"pandas"})
