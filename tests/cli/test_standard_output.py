"""What goes to standard output or to a descriptor is the output alone, and arrives."""

import os
import subprocess
import sys

import pytest

PYTHON = [sys.executable, "-m", "anymix"]


@pytest.mark.parametrize(
    ("way", "json"), [("/dev/stdout", []), ("/dev/fd/1", ["--json"]), ("/dev/fd/9", [])]
)
def test_nothing_is_added_to_an_output_on_standard_output(world, run, tmp_path, way, json):
    words = [*PYTHON, "export", world.model, way, *json]
    line = f"{' '.join(words)} 9>&1 > g.onnx" if way != "/dev/fd/9" else f"{' '.join(words)} 9>&1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = (tmp_path / "g.onnx").read_bytes() if way != "/dev/fd/9" else done.stdout
    assert run("export", world.model, tmp_path / "plain.onnx", "--quiet").status == 0
    assert found == (tmp_path / "plain.onnx").read_bytes()
    assert way.encode() in done.stderr


def test_a_table_ends_with_its_last_row(world, tmp_path):
    table = world.test[0].split("=")[1]
    words = [*PYTHON, "predict", world.model, table, "--out", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert {line.count(",") for line in done.stdout.splitlines()} == {2}
    assert "predicted 100 rows" in done.stderr


def test_the_result_is_said_on_standard_output_otherwise(world, run, tmp_path):
    said = run("export", world.model, tmp_path / "g.onnx")
    assert "wrote" in said.out
    assert said.err == ""


@pytest.mark.parametrize("form", ["{}", "--out={}"])
def test_a_descriptor_that_is_not_open_is_refused(world, run, form):
    number = os.dup(0)
    os.close(number)
    table = world.test[0].split("=")[1]
    out = form.format(f"/dev/fd/{number}")
    given = ["--out", out] if form == "{}" else [out]
    said = run("predict", world.model, table, *given)
    assert said.status == 3
    assert f"/dev/fd/{number} is not open" in said.err
