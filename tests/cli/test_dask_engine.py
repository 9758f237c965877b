"""--engine dask: the same tables by the workers of a cluster."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from tests.cli.organisations import write_csv


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


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ("spark", "it must be chunks or dask, but is 'spark'"),
        ("chunks=8", "an address is that of a scheduler, as in dask=HOST:8786"),
        ("dask=", "an address is that of a scheduler, as in dask=HOST:8786"),
    ],
)
def test_an_engine_that_is_none_is_refused(world, run, tmp_path, engine, sentence):
    out = ("--out", tmp_path / "p.csv", "--engine", engine)
    said = run("predict", world.model, "new.csv", *out)
    assert said.status == 2
    assert sentence in said.err


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
