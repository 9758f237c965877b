"""--engine dask: the same tables by the workers of a cluster."""

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from tests.cli.organisations import NAMES, draw, label, write_csv
from tests.engines.cluster_cases import killing_one


@pytest.fixture(scope="module")
def address():
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(processes=False, **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("options", [(), ("--weights", "--novelty", "--set", "0.9")])
def test_predictions_are_the_same(world, run, address, tmp_path, options):
    X = np.random.default_rng(1).normal(size=(300, 2)) * 3
    table = write_csv(tmp_path / "new.csv", X)
    for name, engine in (("here", "chunks"), ("there", f"dask={address}")):
        out, rows = tmp_path / f"{name}.csv", ("--chunk-rows", 40)
        said = run("predict", world.model, table, "--out", out, *rows, *options, "--engine", engine)
        assert (said.status, said.err) == (0, "")
    assert (tmp_path / "there.csv").read_text() == (tmp_path / "here.csv").read_text()


def test_a_folder_of_parquet_files_is_one_table(world, run, address, tmp_path):
    X = np.random.default_rng(1).normal(size=(300, 2)) * 3
    (tmp_path / "rows").mkdir()
    for i in range(3):
        part = X[100 * i : 100 * i + 100]
        pq.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"rows/{i}.parquet")
    engine = ("--engine", f"dask={address}")
    said = run("predict", world.model, tmp_path / "rows", "--out", tmp_path / "p.npz", *engine)
    assert (said.status, said.err) == (0, "")
    run("predict", world.model, write_csv(tmp_path / "x.csv", X), "--out", tmp_path / "q.npz")
    found, due = np.load(tmp_path / "p.npz"), np.load(tmp_path / "q.npz")
    np.testing.assert_allclose(found["p(yes)"], due["p(yes)"], rtol=1e-9)


def test_what_is_wrong_with_a_row_is_said_as_ever(world, run, address, tmp_path):
    X = np.full((3, 2), np.nan)
    table = write_csv(tmp_path / "new.csv", X)
    engines = ("chunks", f"dask={address}")
    said = [
        run("predict", world.model, table, "--out", tmp_path / "p.csv", "--engine", engine)
        for engine in engines
    ]
    assert said[0] == said[1]
    assert said[0].status == 3
    assert not (tmp_path / "p.csv").exists()


def test_fit_learns_the_same_model(world, run, address, tmp_path):
    given = ("fit", *world.sources, "--held-out", *world.held, "--json", "--out")
    here = run(*given, tmp_path / "here")
    there = run(*given, tmp_path / "there", "--engine", f"dask={address}")
    assert (there.status, there.err) == (0, "")
    learned = [json.loads(said.out) for said in (here, there)]
    for part in ("combination", "certificate"):
        assert learned[0][part] == learned[1][part]
    X = write_csv(tmp_path / "new.csv", np.random.default_rng(1).normal(size=(50, 2)))
    for name in ("here", "there"):
        assert run("predict", tmp_path / name, X, "--out", tmp_path / f"{name}.csv").status == 0
    assert (tmp_path / "here.csv").read_text() == (tmp_path / "there.csv").read_text()


def test_chunks_of_many_rows_are_asked_by_workers_as_well(
    world, run, address, tmp_path, monkeypatch
):
    """Held-out rows in folders of Parquet files, more than are held in memory."""
    rng, held = np.random.default_rng(5), []
    for name in NAMES:
        (tmp_path / name).mkdir()
        for i in range(3):
            X, y = draw(name, 120, rng)
            columns = {"a": X[:, 0], "b": X[:, 1], "y": label(y)}
            pq.write_table(pa.table(columns), tmp_path / name / f"{i}.parquet")
        held.append(f"{name}={tmp_path / name}")
    monkeypatch.setattr("anymix.cli.held_out.rows_that_fit", lambda p, c: 500)
    monkeypatch.setattr("anymix.cli.held_out.CHUNK_ROWS", 50)
    given = ("fit", *world.sources, "--held-out", *held, "--json", "--out")
    learned = []
    for engine in ("auto", f"dask={address}"):
        said = run(*given, tmp_path / engine[:4], "--engine", engine)
        assert (said.status, said.err) == (0, "")
        learned.append(json.loads(said.out))
    assert learned[0]["taught"] > 500
    assert learned[0]["combination"] == learned[1]["combination"]
    assert learned[0]["certificate"] == learned[1]["certificate"]


@pytest.mark.slow
def test_a_killed_worker_changes_neither_rows_nor_the_exit_code(world, run, tmp_path):
    """One of three workers goes while the command is at work."""
    X = np.random.default_rng(1).normal(size=(600, 2)) * 3
    table, rows = write_csv(tmp_path / "new.csv", X), ("--chunk-rows", 20)
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        engine = ("--engine", f"dask={cluster.scheduler_address}", *rows)
        out = tmp_path / "there.csv"
        work = partial(run, "predict", world.model, table, "--out", out, *engine)
        said, killed = killing_one(client, work)
    assert (said.status, len(killed)) == (0, 1)
    run("predict", world.model, table, "--out", tmp_path / "here.csv", *rows)
    assert out.read_text() == (tmp_path / "here.csv").read_text()


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ("spark", "it must be chunks or dask, but is 'spark'"),
        ("chunks=8", "an address names a scheduler, as in dask=HOST:8786"),
        ("dask=", "an address names a scheduler, as in dask=HOST:8786"),
    ],
)
def test_an_engine_that_is_none_is_refused(world, run, tmp_path, engine, sentence):
    out = ("--out", tmp_path / "p.csv", "--engine", engine)
    said = run("predict", world.model, "new.csv", *out)
    assert said.status == 2
    assert sentence in said.err


def test_a_folder_without_tables_is_none(world, run, tmp_path):
    (tmp_path / "rows").mkdir()
    said = run("predict", world.model, tmp_path / "rows", "--out", tmp_path / "p.csv")
    assert said.status == 3
    assert "is a folder without .parquet files; give a table" in said.err


def test_a_scheduler_that_is_not_there_is_named(world, run, tmp_path, monkeypatch):
    monkeypatch.setattr("anymix.engines.cluster.SECONDS", 0.5)
    table = write_csv(tmp_path / "new.csv", np.zeros((3, 2)))
    out = ("--out", tmp_path / "p.csv", "--engine", "dask=tcp://127.0.0.1:1")
    said = run("predict", world.model, table, *out)
    assert said.status == 3
    assert said.err == (
        "anymix: 'tcp://127.0.0.1:1' is not the address of a Dask scheduler that answers; start "
        "one with: dask scheduler.\n"
    )
