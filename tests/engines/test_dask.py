"""Rows on a Dask cluster: the answers are the local ones, lazy, and nothing is shuffled."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.densities import GaussianMixtureDensity
from anymix.engines.dask import predict
from tests.engines import counted
from tests.estimators.several_sources import classification, regression


@pytest.fixture(scope="module")
def cluster():
    """A cluster in this process, with one thread: warnings are caught for all threads at once."""
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(processes=False, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def labels():
    X, y, d = classification()
    return DistributionWeightedClassifier(density=GaussianMixtureDensity(1), random_state=0).fit(
        X, y, d
    ), X


@pytest.fixture(scope="module")
def numbers():
    X, y, d = regression()
    return DistributionWeightedRegressor(density=GaussianMixtureDensity(1), random_state=0).fit(
        X, y, d
    ), X


def test_arrays_are_answered_lazily(labels):
    model, X = labels
    rows = da.from_array(X, chunks=(25, 1))
    answer, proba = predict(model, rows), predict(model, rows, proba=True)
    assert (answer.dtype, answer.shape, answer.chunks[0]) == (
        model.classes_.dtype,
        (120,),
        (25,) * 4 + (20,),
    )
    assert (proba.dtype, proba.shape, proba.numblocks) == (np.dtype(float), (120, 2), (5, 1))
    np.testing.assert_array_equal(answer.compute(), model.predict(X))
    np.testing.assert_allclose(proba.compute(), model.predict_proba(X), rtol=1e-12)


def test_sizes_of_chunks_may_be_unknown(numbers):
    model, X = numbers
    rows = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    answer = predict(model, rows)
    assert np.isnan(answer.shape[0])
    np.testing.assert_allclose(answer.compute(), model.predict(X), rtol=1e-12)


def test_frames_keep_their_index_and_say_what_they_hold(cluster, labels):
    model, X = labels
    frame = pd.DataFrame(X, index=np.arange(len(X)) * 2 + 7)
    rows = dd.from_pandas(frame, npartitions=4)
    answer, proba = predict(model, rows), predict(model, rows, proba=True)
    assert list(proba.columns) == ["p(far)", "p(near)"]
    assert answer.npartitions == 4
    assert answer.divisions == rows.divisions
    for lazy in (answer, proba):
        found = lazy.compute()
        pd.testing.assert_index_equal(found.index, frame.index)
        assert np.all(found.dtypes == lazy.dtypes)
    np.testing.assert_array_equal(answer.compute(), model.predict(X))
    np.testing.assert_allclose(proba.compute(), model.predict_proba(X), rtol=1e-12)
    assert answer.name == "label"


def test_a_partition_may_be_empty(numbers):
    model, X = numbers
    rows = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)
    some = rows[rows.a > 1]
    found = predict(model, some.to_dask_array()).compute()
    np.testing.assert_allclose(found, model.predict(X[X[:, 0] > 1]), rtol=1e-12)


def reached(lazy):
    """Return, for each task of an answer, all tasks that it needs."""
    (plain,) = dask.optimize(lazy)
    below, found = dask.core.get_deps(dict(plain.__dask_graph__()))[0], []
    for key in dask.core.flatten(plain.__dask_keys__()):
        known, new = set(), {key}
        while new:
            known |= new
            new = {k for one in new for k in below[one]} - known
        found.append(known)
    return found


@pytest.mark.parametrize("proba", [False, True])
def test_answers_share_nothing_but_the_model(labels, proba):
    """No shuffle: no two partitions of the answer need the same partition of the rows."""
    model, X = labels
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=6)
    for rows in (frame, frame.to_dask_array()):
        found = reached(predict(model, rows, proba=proba))
        shared = set.intersection(*found)
        assert len(found) == 6
        assert len(shared) <= 1  # where there is a cluster, the model is already there
        assert sum(len(one - shared) for one in found) == len(set.union(*found) - shared)


def test_the_model_is_written_once_and_sent_once(cluster, numbers):
    model, X = numbers
    counting = counted.Counted(model)
    before = counted.WRITTEN[0]
    answer = predict(counting, da.from_array(X, chunks=(5, 2)))
    assert counted.WRITTEN[0] == before + 1
    for _ in range(2):
        np.testing.assert_allclose(answer.compute(), model.predict(X), rtol=1e-12)
    assert counted.WRITTEN[0] == before + 1


def test_parquet_folders_are_read_by_the_columns_of_the_model(tmp_path, cluster):
    X, y, d = classification()
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 1, "up", "down")})
    model = DistributionWeightedClassifier(random_state=0).fit(frame, y, d)
    for i in range(3):
        part = frame.assign(y=y)[["y", "kind", "a"]][40 * i : 40 * i + 40]
        part.to_parquet(tmp_path / f"{i}.parquet")
    answer = predict(model, tmp_path)
    assert answer.npartitions == 3
    found = answer.compute()
    np.testing.assert_array_equal(found, model.predict(frame))


def test_rows_in_memory_are_sent_back(numbers):
    model, X = numbers
    with pytest.raises(
        TypeError,
        match="ndarray is no collection of dask; give a dask DataFrame or array, or the path",
    ):
        predict(model, X)


@pytest.fixture(scope="module")
def processes():
    """Three workers, each a process that can be killed and is then replaced."""
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def killing_one(client, work):
    """Do some work; when it has begun everywhere, kill one of the workers."""
    pids, ended = client.run(os.getpid), threading.Event()

    def kill():
        while not ended.wait(0.02):
            begun = client.run_on_scheduler(
                lambda dask_scheduler: sum(
                    1 for task in dask_scheduler.tasks.values() if task.state == "memory"
                )
            )
            if begun > 4:
                os.kill(min(pids.values()), signal.SIGKILL)
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        return work(), set(client.run(os.getpid).values()) != set(pids.values())
    finally:
        ended.set()
        thread.join()


def test_a_killed_worker_changes_no_prediction(processes, numbers):
    model, X = numbers
    rows = da.from_array(X, chunks=(2, 2))
    answer = predict(counted.Slow(model), rows, client=processes)
    found, killed = killing_one(processes, lambda: processes.compute(answer).result())
    assert killed
    np.testing.assert_array_equal(found, processes.compute(answer).result())
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-12)


def test_without_dask_a_sentence_says_how_to_get_it(numbers):
    code = (
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('dask', 'distributed'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Wall())\n"
        "import anymix, anymix.engines, anymix.cli, anymix.engines.dask\n"
        "for verb in (anymix.engines.dask.fit, anymix.engines.dask.predict):\n"
        "    try: verb(anymix.DistributionWeightedRegressor(sources=[]), 'rows', 'y', 'd')\n"
        "    except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    due = "dask is not installed; install it with: pip install 'anymix[dask]'.\n"
    assert (done.stdout, done.returncode) == (due * 2, 0), done.stderr
