"""Nothing leaves the machine, nothing is left on it, and no code of the working folder runs."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

from sklearn.linear_model import Ridge

import anymix
from anymix import Source
from anymix.densities import GaussianKDE
from anymix.exchange import pack_source


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("world") / "north"
    X = np.random.default_rng(0).normal(size=(100, 2))
    pack_source(Source("north", Ridge().fit(X, X[:, 0]), GaussianKDE(0.5).fit(X)), place)
    return place


def run(home, *words, **more):
    places = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    library = os.path.dirname(os.path.dirname(anymix.__file__))
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **places, "PYTHONPATH": library},
        capture_output=True,
        text=True,
        check=False,
        **more,
    )


CODE = """
import sys, numpy as np
from anymix.exchange import read_sources
(one,) = read_sources([sys.argv[1]], in_process=sys.argv[2] == "here")
print(one.source.predict(np.ones((3, 2))).shape, "onnxruntime" in sys.modules)
"""


@pytest.mark.parametrize(("where", "loaded"), [("here", True), ("apart", False)])
def test_onnxruntime_writes_and_sends_nothing(folder, tmp_path, where, loaded):
    said = run(tmp_path, "-c", CODE, str(folder), where)
    assert said.stdout.strip() == f"(3,) {loaded}", said.stderr
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("module", ["anymix", "anymix.cli"])
def test_modules_of_the_working_folder_are_not_loaded(folder, tmp_path, module):
    received = tmp_path / "received"
    received.mkdir()
    for name in ("numpy", "safetensors", "onnx", "argparse", "sklearn"):
        (received / f"{name}.py").write_text("print('owned')\n")
    said = run(tmp_path, "-m", module, "source", "check", str(folder), cwd=received)
    assert "owned" not in said.stdout + said.stderr
    assert said.returncode == 0, said.stderr
