"""What goes to standard output or to a descriptor is the output alone, and arrives."""

import os

import pytest

from tests.cli.descriptors import APPEND, WRITE, descriptor


@pytest.mark.parametrize(
    ("way", "json"), [("/dev/stdout", []), ("/dev/fd/1", ["--json"]), ("/dev/fd/99", [])]
)
def test_nothing_is_added_to_an_output_on_standard_output(world, run, tmp_path, way, json):
    file = tmp_path / "g.onnx"
    with descriptor(1, file, WRITE), descriptor(99, file, APPEND):
        said = run("export", world.model, way, *json)
    assert (said.status, said.out) == (0, ""), said.err
    assert way in said.err
    assert run("export", world.model, tmp_path / "plain.onnx", "--quiet").status == 0
    assert file.read_bytes() == (tmp_path / "plain.onnx").read_bytes()


def test_a_table_ends_with_its_last_row(world, run, tmp_path):
    table = world.test[0].split("=")[1]
    with descriptor(1, tmp_path / "p", WRITE):
        said = run("predict", world.model, table, "--out", "/dev/stdout")
    lines = (tmp_path / "p").read_text().splitlines()
    assert {line.count(",") for line in lines} == {2}
    assert len(lines) == 101
    assert lines[0].startswith("label,p(")
    assert "predicted 100 rows" in said.err


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
