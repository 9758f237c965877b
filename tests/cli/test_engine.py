"""fit --engine chunks: rows on disk give a model like that of rows in memory, which can be read."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anymix.cli import console, held_out
from anymix.models import read_model
from tests.cli.organisations import NAMES, draw, label, write_csv


def tables(folder, n, kind, regression):
    """Held-out rows of each organisation, in CSV or Parquet."""
    rng, given = np.random.default_rng(7), []
    for name in NAMES:
        X, y = draw(name, n, rng)
        y = y if regression else label(y)
        path = folder / f"{name}-held.{kind}"
        if kind == "csv":
            write_csv(path, X, y)
        else:
            pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path)
        given.append(f"{name}={path}")
    return given


def fitted(run, world, given, out, *options):
    said = run("fit", *world.sources, "--held-out", *given, "--out", out, "--json", *options)
    assert said.status == 0, said.err
    return json.loads(said.out), read_model(out).model


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_chunks_give_a_model_like_that_of_memory(world, run, tmp_path, kind, monkeypatch):
    given = tables(tmp_path, 1500, kind, regression=False)
    monkeypatch.setattr(held_out, "CHUNK_ROWS", 400)
    plain = "--no-consulting"
    record, model = fitted(run, world, given, tmp_path / "m", plain, "--engine", "chunks")
    _, other = fitted(run, world, given, tmp_path / "other", plain, "--engine", "memory")
    assert record["taught"] + model.tables_.n_points == 4500
    assert 0.15 < model.tables_.n_points / 4500 < 0.25
    assert other.taught_ is None
    assert model.certificate_.confidence == 0.95
    assert model.certificate_.loss_upper < 2.0 * other.certificate_.loss_upper
    X = np.random.default_rng(1).normal(size=(200, 2)) * 2
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=0.1)


def test_numbers_and_what_is_done_with_the_model(numbers, run, tmp_path):
    given = tables(tmp_path, 1500, "csv", regression=True)
    out = str(tmp_path / "m")
    _, model = fitted(run, numbers, given, out, "--engine", "chunks")
    assert model.certificate_.confidence == 0.95
    new = write_csv(tmp_path / "new.csv", np.zeros((3, 2)))
    # The rows have taught it: nothing can be claimed by them.
    again = run("certify", out, "--held-out", *given, "--json")
    assert again.status == 0, again.err
    assert json.loads(again.out)["confidence"] is None
    for command in (
        ("certify", out),
        ("report", out, "--out", tmp_path / "r.html"),
        ("compare", out, "--held-out", *given),
        ("predict", out, new, "--out", tmp_path / "p.csv", "--interval", "0.9"),
    ):
        said = run(*command)
        assert said.status == 0, said.err


def test_rows_that_are_drawn_certify_where_there_are_many(numbers, run, tmp_path, monkeypatch):
    given = tables(tmp_path, 1200, "csv", regression=True)
    monkeypatch.setattr(held_out, "CHUNK_ROWS", 500)
    command = ["certify", numbers.model, "--held-out", *given]
    found = [
        json.loads(run(*command, "--json", "--engine", choice).out)
        for choice in ("chunks", "memory")
    ]
    for name in ("source_losses", "own_losses", "loss_upper"):
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=0.3)
    assert found[0]["loss_ground"] == found[1]["loss_ground"]
    assert found[0]["confidence"] == found[1]["confidence"] == 0.95
    assert "random rows." in run(*command, "--engine", "chunks").out
    assert "random rows" not in run(*command).out


def test_the_size_of_chunks_decides_nothing(numbers, run, tmp_path, monkeypatch):
    given = tables(tmp_path, 700, "csv", regression=True)
    found = []
    for size in (113, 5000):
        monkeypatch.setattr(held_out, "CHUNK_ROWS", size)
        out = tmp_path / f"m{size}"
        found.append(fitted(run, numbers, given, out, "--engine", "chunks")[1])
    np.testing.assert_allclose(found[0].combination_.z, found[1].combination_.z, atol=1e-6)
    one, two = (model.certificate_.robust_loss for model in found)
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_many_rows_go_to_disk_by_themselves(numbers, run, tmp_path, monkeypatch):
    given = tables(tmp_path, 300, "csv", regression=True)
    record, _ = fitted(run, numbers, given, tmp_path / "few")
    assert "taught" not in record
    monkeypatch.setattr(held_out, "rows_that_fit", lambda *_: 500)
    record, model = fitted(run, numbers, given, tmp_path / "many")
    assert record["taught"] + model.tables_.n_points == 900


def test_progress_tells_of_the_passes(numbers, run, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(console, "LINE_SECONDS", 0.0)
    given = tables(tmp_path, 300, "csv", regression=True)
    command = ["fit", *numbers.sources, "--held-out", *given, "--engine", "chunks"]
    said = run(*command, "--out", tmp_path / "m")
    assert "evaluating the sources: 33 %" in said.err
    assert "learning z, pass 2 over the rows: 100 %, 0 s left" in said.err
    said = run(*command, "--out", tmp_path / "n", "--quiet")
    assert said.err == ""


def test_too_few_rows_and_missing_ones_are_refused_in_a_sentence(numbers, run, tmp_path):
    given = tables(tmp_path, 50, "csv", regression=True)
    command = ["fit", *numbers.sources, "--engine", "chunks", "--out", tmp_path / "m"]
    said = run(*command, "--held-out", *given)
    assert said.status == 3
    assert "hold them in memory with --engine memory" in said.err
    said = run(*command, "--held-out", *given[:2])
    assert said.status == 3
    assert "are needed, each once; got north, south" in said.err
