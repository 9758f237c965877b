"""Rows on a Dask cluster: the answers are the local ones, lazy, and nothing is shuffled."""

import subprocess
import sys
from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source, evaluate
from anymix.densities import GaussianMixtureDensity
from anymix.engines.dask import ask, fit, predict
from anymix.exceptions import InputError
from anymix.sources import Blocks, LearningSettings, learn
from benchmarks import dask_overhead
from tests.engines.cluster_cases import WRITTEN, Counted, Slow, killing_one
from tests.estimators.several_sources import classification, regression


@pytest.fixture(scope="module")
def cluster():
    """A cluster in this process, with one thread: warnings are caught for all threads at once."""
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(processes=False, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def current(cluster):
    """The same cluster, as the one that dask itself uses."""
    with cluster.as_current():
        yield cluster


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


def test_frames_keep_their_index_and_say_what_they_hold(current, labels):
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
        assert len(shared) == 1
        assert sum(len(one - shared) for one in found) == len(set.union(*found) - shared)


def test_the_model_is_written_once_and_sent_once(current, numbers):
    model, X = numbers
    counting = Counted(model)
    before = WRITTEN[0]
    answer = predict(counting, da.from_array(X, chunks=(5, 2)))
    assert WRITTEN[0] == before + 1
    for _ in range(2):
        np.testing.assert_allclose(answer.compute(), model.predict(X), rtol=1e-12)
    assert WRITTEN[0] == before + 1


def test_parquet_folders_are_read_by_the_columns_of_the_model(tmp_path, current):
    X, y, d = classification()
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 1, "up", "down")})
    model = DistributionWeightedClassifier(cv=2, consult=False, random_state=0)
    model.fit(frame, y, d)
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
        match="ndarray is not a Dask collection; give a dask DataFrame or array, or the path",
    ):
        predict(model, X)


# --- fit


def trained(X, y, d, kind):
    """A source of each domain: a model, and a density."""
    found = []
    for name in np.unique(d):
        own = X[d == name], y[d == name]
        density = GaussianMixtureDensity(1).fit(own[0])
        found.append(Source(str(name), kind().fit(*own), density))
    return found


@pytest.fixture(scope="module")
def sources():
    """Three classifiers with densities, and fresh rows of each source."""
    return trained(*classification(), LogisticRegression), classification(300, seed=1)


def same(found, due):
    """The same model: what it has learned, what it certifies, what it says of new rows."""
    np.testing.assert_allclose(found.combination_.z, due.combination_.z, atol=1e-10)
    for part, other in zip(found.combination_.parts, due.combination_.parts, strict=True):
        np.testing.assert_allclose(part.z, other.z, atol=1e-10)
    assert found.certificate_.sentence == due.certificate_.sentence


@pytest.fixture(scope="module")
def due(sources):
    known, (X, y, d) = sources
    codes = np.searchsorted(["a", "b", "c"], d)
    model = DistributionWeightedClassifier.from_sources(known)
    return model.fit_tables(evaluate(known, X, ["far", "near"]).labelled(y, codes))


def test_fit_learns_what_one_process_learns(cluster, sources, due):
    known, (X, y, d) = sources
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(y=y, d=d)
    rows = dd.from_pandas(frame, npartitions=7)
    same(fit(known, rows, "y", "d", client=cluster), due)
    model = DistributionWeightedClassifier.from_sources(known)
    chunks = [da.from_array(one, chunks=one.shape if one.ndim > 1 else 900) for one in (X, y, d)]
    chunks = [one.rechunk({0: 250}) for one in chunks]
    assert fit(model, *chunks, client=cluster) is model
    same(model, due)


def test_fit_reads_the_parquet_folders_of_the_sources(cluster, sources, tmp_path):
    X, y, d = classification()
    known = trained(pd.DataFrame(X, columns=["u", "v"]), y, d, LogisticRegression)
    X, y, d = sources[1]
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(y=y)
    for source in known:
        (tmp_path / source.name).mkdir()
        own = frame[d == source.name]
        for i in range(2):
            own[150 * i : 150 * i + 150].to_parquet(tmp_path / source.name / f"{i}.parquet")
    rows = {source.name: tmp_path / source.name for source in known}
    found = fit(known, rows, "y", client=cluster)
    tables = evaluate(known, frame[["u", "v"]], ["far", "near"])
    model = DistributionWeightedClassifier.from_sources(known)
    same(found, model.fit_tables(tables.labelled(y, np.searchsorted(["a", "b", "c"], d))))


def test_fit_takes_words_where_the_sources_do(cluster):
    X, y, d = classification(200)
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 1, "up", "down")})
    trained = DistributionWeightedClassifier(cv=2, random_state=0, consult=False)
    trained.fit(frame, y, d)
    known = [replace(source, columns=trained.columns_) for source in trained.sources_]
    rows = dd.from_pandas(frame.assign(y=y, d=d), npartitions=3)
    found = fit(known, rows, "y", "d", client=cluster)
    codes = np.searchsorted(["a", "b", "c"], d)
    tables = evaluate(known, frame, ["far", "near"]).labelled(y, codes)
    due = DistributionWeightedClassifier.from_sources(known).fit_tables(tables)
    np.testing.assert_allclose(found.combination_.z, due.combination_.z, atol=1e-10)


def test_weights_and_empty_partitions(cluster):
    known = trained(*regression(200), Ridge)
    X, y, d = regression(300, seed=1)
    w = np.random.default_rng(0).random(len(y))
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(y=y, d=d, w=w)
    rows = dd.from_pandas(frame, npartitions=5)
    found = fit(known, rows[rows.y > 1.5], "y", "d", "w", client=cluster)
    some = y > 1.5
    tables = evaluate(known, X[some]).labelled(y[some], (d[some] == "south").astype(int), w[some])
    due = DistributionWeightedRegressor.from_sources(known).fit_tables(tables)
    np.testing.assert_allclose(found.z_, due.z_, atol=1e-10)
    assert found.certificate_.sentence == due.certificate_.sentence


def test_what_stays_on_the_workers_teaches_the_same(current, sources):
    """Questions go to the parts, and sums come back: no other z than by Python's own map."""
    known, (X, y, d) = sources
    goal = LearningSettings("cross_entropy", consult=True, names=("a", "b", "c"))
    frame = pd.DataFrame(X).assign(y=y, d=d)
    found = learn(ask(known, dd.from_pandas(frame, npartitions=4), "y", "d"), goal)
    parts = []
    for part in dd.from_pandas(frame, npartitions=4).partitions:
        rows = part.compute()
        codes = np.searchsorted(["a", "b", "c"], rows.pop("d"))
        y = rows.pop("y")
        parts.append(evaluate(known, rows.to_numpy(), ["far", "near"]).labelled(y, codes))
    due = learn(Blocks(parts), goal)
    for part, other in zip(found.combination.parts, due.combination.parts, strict=True):
        np.testing.assert_allclose(part.z, other.z, atol=1e-10)
    assert found.evidence.certificate.sentence == due.evidence.certificate.sentence


def test_of_very_many_rows_some_judge_and_all_others_teach(cluster, sources, due, monkeypatch):
    known, (X, y, d) = sources
    monkeypatch.setattr("anymix.engines.dask.rows_that_fit", lambda p, c: 600)
    frame = pd.DataFrame(X).assign(y=y, d=d)
    models = [
        fit(known, dd.from_pandas(frame, npartitions=n), "y", "d", client=cluster) for n in (2, 5)
    ]
    for model in models:
        assert model.taught_ + model.tables_.n_points == 900
        assert 100 < model.tables_.n_points < 260
        assert np.abs(model.combination_.z - due.combination_.z).max() < 0.2
        new = evaluate(known, classification(90, seed=2)[0], ["far", "near"])
        labels, domains = classification(90, seed=2)[1:]
        codes = np.searchsorted(["a", "b", "c"], domains)
        assert model.seen_among(new.labelled(labels, codes)) == []
        old = evaluate(known, X, ["far", "near"])
        codes = np.searchsorted(["a", "b", "c"], d)
        assert model.seen_among(old.labelled(y, codes)) == ["a", "b", "c"]
    # Which rows judge does not depend on how they are cut.
    said = [np.sort(model.tables_.outcomes(), axis=1) for model in models]
    np.testing.assert_allclose(*said, rtol=1e-9)


def test_the_benchmark_finds_the_z_of_threads(cluster):
    row = dask_overhead.compare(4000, cluster, 1.0)
    assert row["z apart"] < 1e-10
    assert row["pass"] > 0


def test_parts_need_a_cluster_that_stays_open(sources):
    with pytest.raises(InputError, match="ask needs a cluster that stays open"):
        ask(sources[0], "rows", "y", "d")


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"y": "gone"}, KeyError, "gone"),
        ({"sample_domain": None}, ValueError, "sample_domain is needed"),
        ({"model": DistributionWeightedRegressor()}, InputError, "has no sources; train one on"),
        ({"y": da.zeros(900, chunks=90)}, InputError, "cut them alike, or name columns of X"),
        ({"y": da.full(900, "x", chunks=300)}, ValueError, "which is not one of the classes"),
        ({"sample_domain": "y"}, ValueError, "but the sources are"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(cluster, sources, change, error, sentence):
    known, (X, y, d) = sources
    rows = dd.from_pandas(pd.DataFrame(X, columns=["u", "v"]).assign(y=y, d=d), npartitions=3)
    given = {"model": known, "X": rows, "y": "y", "sample_domain": "d", "client": cluster} | change
    if not isinstance(given["y"], str):
        given["X"] = rows.drop(columns="y")
    with pytest.raises(error, match=sentence):
        fit(**given)


@pytest.fixture(scope="module")
def processes():
    """Three workers, each a process that can be killed and is then replaced."""
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.mark.slow
def test_a_killed_worker_changes_no_prediction(processes, numbers):
    model, X = numbers
    rows = da.from_array(X, chunks=(2, 2))
    answer = predict(Slow(model), rows, client=processes)
    found, killed = killing_one(processes, lambda: processes.compute(answer).result())
    assert killed
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-12)


def test_a_killed_worker_changes_nothing_that_is_learned(processes, sources, due):
    known, (X, y, d) = sources
    slow = [replace(source, predictor=Slow(source.predictor)) for source in known]
    X, y, d = (da.from_array(one, chunks=(30, *one.shape[1:])) for one in (X, y, d))
    found, killed = killing_one(processes, lambda: fit(slow, X, y, d, client=processes))
    assert killed
    same(found, due)


def test_without_dask_a_sentence_says_how_to_get_it(numbers):
    code = (
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('dask', 'distributed'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Wall())\n"
        "import anymix, anymix.engines, anymix.cli, anymix.engines.dask\n"
        "for verb, *y in ((anymix.engines.dask.fit, 'y', 'd'), (anymix.engines.dask.predict,)):\n"
        "    try: verb(anymix.DistributionWeightedRegressor(sources=[]), 'rows', *y)\n"
        "    except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    due = (
        "dask is not installed; it comes with anymix's extra 'dask': "
        "pip install '.[dask]' in a checkout.\n"
    )
    assert (done.stdout, done.returncode) == (due * 2, 0), done.stderr
