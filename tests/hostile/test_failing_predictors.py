"""A predictor that fails at one row: it is named with its source and the row, and others go on."""

import csv
import os
import signal

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import anymix
from anymix import Source
from anymix.cli import main
from anymix.densities import GaussianKDE
from anymix.exceptions import PredictorError
from anymix.exchange import pack_source, read_source
from anymix.sandbox import limited_process

MAGIC = np.float32(42.4242)


def graph():
    """x @ w; where x0 is MAGIC, an entry is taken that is not there."""
    arrays = {
        "zero": np.array([0]),
        "magic": np.array([[MAGIC]]),
        "far": np.array(1000),
        "table": np.zeros(2, np.float32),
        "W": np.array([[1.0], [0.0]], np.float32),
    }
    steps = [
        ("Gather", ["X", "zero"], "first", {"axis": 1}),
        ("Equal", ["first", "magic"], "hit", {}),
        ("Cast", ["hit"], "number", {"to": TensorProto.INT64}),
        ("Mul", ["number", "far"], "index", {}),
        ("Gather", ["table", "index"], "nothing", {"axis": 0}),
        ("MatMul", ["X", "W"], "linear", {}),
        ("Add", ["linear", "nothing"], "Y", {}),
    ]
    nodes = [helper.make_node(op, ins, [out], **more) for op, ins, out, more in steps]
    given = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 2])
    out = helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 1])
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    whole = helper.make_graph(nodes, "g", [given], [out], weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    place, rng, held = tmp_path_factory.mktemp("failing"), np.random.default_rng(0), []
    for name, centre in (("north", -1.0), ("evil", 1.0)):
        X = rng.normal(centre, size=(80, 2))
        pack_source(Source(name, graph(), GaussianKDE(0.7).fit(X)), place / name)
        np.savez(place / f"{name}.npz", X=X, y=X[:, 0])
        held.append(f"{name}={place / name}.npz")
    words = ["fit", str(place / "north"), str(place / "evil"), "--held-out", *held]
    assert main([*words, "--out", str(place / "m"), "--quiet"]) == 0
    return place / "m"


def table(path, magic=()):
    X = np.random.default_rng(1).normal(size=(500, 2))
    X[list(magic), 0] = MAGIC
    np.savez(path, X=X)
    return X


def test_the_source_and_the_row_are_named(model, tmp_path):
    X = table(tmp_path / "t.npz", [377])
    loaded = anymix.load(model)
    with pytest.raises(PredictorError, match="the predictor of north cannot be used") as caught:
        loaded.predict(X)
    assert caught.value.row == 377
    assert loaded.predict(X[:377]).shape == (377,)


def test_the_command_stops_or_leaves_the_row_empty(model, tmp_path, capsys):
    table(tmp_path / "t.npz", [3, 377])
    out = tmp_path / "p.csv"
    words = ["predict", str(model), str(tmp_path / "t.npz"), "--out", str(out)]
    assert main([*words, "--chunk-rows", "100"]) == 4
    assert "the predictor of north" in (said := capsys.readouterr().err)
    assert "at row 4." in said
    assert not out.exists()
    assert main([*words, "--chunk-rows", "100", "--on-error", "skip", "--weights"]) == 0
    said = capsys.readouterr()
    assert "at row 378." in said.err
    assert "2 of them left empty" in said.out
    with open(out) as file:
        answers = [row["prediction"] for row in csv.DictReader(file)]
    empty = [i for i, answer in enumerate(answers) if answer in ("", "nan")]
    assert (len(answers), empty) == (500, [3, 377])


def test_a_process_killed_from_outside_is_asked_once_more(model):
    loaded = anymix.load(model)
    X = np.random.default_rng(1).normal(size=(50, 2))
    due = loaded.predict(X)
    source = read_source(next((model / "sources").glob("north-*")))
    process = limited_process()
    exchange = process._exchange

    def struck(child, message, content):
        os.kill(child.pid, signal.SIGKILL)
        process._exchange = exchange
        return exchange(child, message, content)

    process._exchange = struck
    np.testing.assert_allclose(source.predict(X), due, atol=1e-5)


def test_a_number_that_no_library_holds_is_refused(model, tmp_path, capsys):
    table(tmp_path / "t.npz")
    words = ["predict", str(model), str(tmp_path / "t.npz"), "--out", str(tmp_path / "p.csv")]
    assert main([*words, "--chunk-rows", str(10**20)]) == 2
    assert "2147483647 at most" in capsys.readouterr().err
