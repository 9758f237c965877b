"""Import arrows go only downward: a room may enter the rooms listed for it and no other."""

import subprocess
import sys

import pytest

from tests.house.source_tree import FILES, imports, module_name, parse, room

MAY_ENTER = {
    "core": set(),
    "densities": set(),
    "sources": {"core", "densities"},
    "exchange": {"core", "densities", "sources"},
    "estimators": {"core", "densities", "sources"},
    "monitor": {"core", "sources"},
    "models": {"core", "densities", "sources", "exchange", "estimators", "monitor"},
    "studies": {"core", "densities", "sources", "estimators", "monitor"},
    "report": {"core"},
    "cli": {
        *("core", "densities", "sources", "exchange", "estimators", "monitor"),
        *("models", "studies", "report"),
    },
    "door": set(),
}

HEAVY = {"onnx", "onnxruntime", "safetensors", "dask", "flwr", "torch", "matplotlib", "pandas"}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_arrows_go_down(path):
    here = room(module_name(path))
    entered = {room(name) for name in imports(parse(path)) if name.split(".")[0] == "anymix"}
    assert entered - {here, "door"} <= MAY_ENTER[here]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_pickle(path):
    names = {name.split(".")[0] for name in imports(parse(path))}
    assert not names & {"pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_needs_numpy_and_scipy_alone():
    _run(
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('sklearn', 'pandas', 'joblib', 'threadpoolctl'):\n"
        "            raise ImportError(f'the core asked for {name}')\n"
        "sys.meta_path.insert(0, Wall())\n"
        "import anymix.core as c\n"
        "p = c.Problem([[.9, .1], [.2, .8]], [[0., .5], [.5, 1.]], [0., 1.])\n"
        "assert c.solve(p).status == 'converged'\n"
    )


def test_import_anymix_loads_nothing_heavy():
    loaded = set(_run("import sys, anymix; print(*sys.modules)").split())
    assert not {name.split(".")[0] for name in loaded} & (HEAVY | {"sklearn", "scipy", "numpy"})


def test_every_public_name_can_be_reached():
    _run("import anymix\nfor name in anymix.__all__: getattr(anymix, name)")
