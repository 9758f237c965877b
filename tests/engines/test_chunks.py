"""Rows in chunks on disk: the same z as in memory, nothing left behind, little held at a time."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from anymix import Source, evaluate
from anymix.core import solve
from anymix.engines import chunks
from anymix.engines.chunks import (
    ThreadMap,
    ask_in_chunks,
    parquet_tables,
    problem_in_chunks,
)
from anymix.engines.store import Store, StoredTables
from anymix.exceptions import InputError

# So few that no search begins on some of them, which chunks draw in another way.
P, M = 3, 1500
CENTRES = np.array([-1.5, 0.0, 1.5])


def gaussian(k):
    def predict(X):
        return np.abs(X[:, 0]) + 0.3 * (X[:, 0] - CENTRES[k])

    return Source(f"s{k}", predict, lambda X: -((X[:, 0] - CENTRES[k]) ** 2) / 2)


SOURCES = [gaussian(k) for k in range(P)]


def draw(m):
    rng = np.random.default_rng(0)
    domain = rng.integers(P, size=m)
    X = (CENTRES[domain] + rng.normal(size=m))[:, None]
    return X, np.abs(X[:, 0]) + 0.1 * rng.normal(size=m), domain


@pytest.fixture(scope="module")
def rows():
    return draw(M)


@pytest.fixture(scope="module")
def whole(rows):
    X, y, domain = rows
    return evaluate(SOURCES, X).labelled(y, domain)


def batches(rows, size):
    return (tuple(a[i : i + size] for a in rows) for i in range(0, len(rows[0]), size))


def labels(tables):
    """The same rows as a classification of two classes."""
    p = np.clip(np.exp(-np.abs(tables.predictions)), 0.01, 0.99)
    y = (np.asarray(tables.targets) > 1).astype(np.intp)
    return replace(tables, predictions=np.stack([p, 1 - p], axis=2), targets=y, classes=[0, 1])


def parts_of(tables, size):
    return (tables.taken(np.arange(i, min(i + size, M))) for i in range(0, M, size))


@pytest.mark.parametrize("objective", ["regret", "robust", "gamma"])
@pytest.mark.parametrize("size", [1500, 400, 130])
def test_chunks_of_any_size_give_the_z_of_all_rows(rows, whole, size, objective):
    wanted = solve(whole.problem("squared", 1e-3), objective)
    for dtype, tolerance in (("float64", 1e-10), ("float32", 1e-5)):
        with Store(dtype) as store:
            tables = ask_in_chunks(SOURCES, batches(rows, size))
            problem = problem_in_chunks(tables, store, map=ThreadMap(2))
            found = solve(problem, objective)
            z = np.eye(P)[1]
            np.testing.assert_allclose(
                problem.source_losses(z),
                whole.problem("squared", 1e-3).source_losses(z),
                rtol=1e-12 if dtype == "float64" else 1e-6,
            )
        np.testing.assert_allclose(found.z, wanted.z, atol=tolerance)
        assert found.status == wanted.status


@pytest.mark.parametrize("objective", ["regret", "robust", "gamma"])
def test_a_search_that_begins_on_some_points_ends_as_low(objective):
    rows = draw(50_000)
    X, y, domain = rows
    whole = evaluate(SOURCES, X).labelled(y, domain).problem("squared", 1e-3)
    wanted = solve(whole, objective)
    with Store("float64") as store:
        problem = problem_in_chunks(ask_in_chunks(SOURCES, batches(rows, 9000)), store)
        found = solve(problem, objective)
    np.testing.assert_allclose(found.z, wanted.z, atol=1e-4)
    assert abs(found.regret - wanted.regret) <= 1e-7
    assert abs(found.robust_loss - wanted.robust_loss) <= 1e-7


@pytest.mark.parametrize("loss", ["cross_entropy", "brier"])
def test_labels_weights_and_the_normalised_rule(whole, loss):
    tables = replace(labels(whole), sample_weight=np.linspace(0.5, 2, M))
    rule = "normalised" if loss == "cross_entropy" else "marginal"
    wanted = tables.problem(loss, 1e-3, rule)
    with Store("float64") as store:
        problem = problem_in_chunks(parts_of(tables, 700), store, loss, rule=rule)
        z = np.array([0.2, 0.5, 0.3])
        np.testing.assert_allclose(problem.own_losses, wanted.own_losses, rtol=1e-12)
        np.testing.assert_allclose(problem.source_losses(z), wanted.source_losses(z), rtol=1e-12)
        np.testing.assert_allclose(problem.paired_moments(z), wanted.paired_moments(z), rtol=1e-9)


def test_a_kinked_loss_is_smoothed_in_chunks_as_in_memory(whole):
    wanted = whole.problem("absolute", 1e-3).smoothed(0.1)
    with Store("float64") as store:
        problem = problem_in_chunks(parts_of(whole, 999), store, "absolute").smoothed(0.1)
        z = np.full(P, 1 / P)
        np.testing.assert_allclose(problem.source_losses(z), wanted.source_losses(z), rtol=1e-12)


def test_parts_of_one_source_each_and_far_from_the_others(whole):
    # As tables of each source come: a part has rows of one source, and others have no mass there.
    order = np.argsort(whole.sample_domain, kind="stable")
    far = replace(whole, log_masses=whole.log_masses * 2000.0).taken(order)
    wanted = far.problem("squared", 1e-3)
    with Store("float64") as store:
        problem = problem_in_chunks(parts_of(far, 500), store)
        z = np.full(P, 1 / P)
        np.testing.assert_allclose(problem.source_losses(z), wanted.source_losses(z), rtol=1e-12)


def test_some_points_are_taken_into_memory_with_every_sources_share(whole, monkeypatch):
    with Store() as store:
        problem = problem_in_chunks(parts_of(whole, 500), store, map=ThreadMap(2))
        monkeypatch.setattr(chunks, "FEWEST_POINTS", 10)
        few = problem.thin(600, np.random.default_rng(0))
        assert 500 < few.n_points < 700
        np.testing.assert_allclose(few.own_losses, problem.own_losses, rtol=0.3)
        sums = np.add.reduceat(few.measure.weights, few.measure.bounds[:-1])
        np.testing.assert_allclose(sums, 1.0)


def test_tables_come_back_as_they_went_but_for_float32(whole):
    heavy = replace(whole, sample_weight=np.linspace(0.5, 2, M))
    # A large number that all share costs no digits of what the sources differ in.
    shifted = replace(
        heavy,
        predictions=heavy.predictions + 1e9,
        targets=np.asarray(heavy.targets) + 1e9,
        log_masses=heavy.log_masses - 1e5,
    )
    with Store() as store:
        part = StoredTables.keep(shifted, store)
        found = part.tables()
    np.testing.assert_allclose(found.outcomes(), heavy.outcomes(), atol=1e-6)
    np.testing.assert_allclose(
        found.log_responsibilities(), heavy.log_responsibilities(), atol=1e-6, rtol=1e-6
    )
    np.testing.assert_array_equal(found.targets, shifted.targets)
    np.testing.assert_array_equal(found.sample_domain, heavy.sample_domain)
    np.testing.assert_array_equal(found.sample_weight, heavy.sample_weight)


def test_tables_of_labels_come_back(whole):
    known = labels(whole)
    with Store() as store:
        found = StoredTables.keep(known, store).tables()
    np.testing.assert_array_equal(found.targets, known.targets)
    np.testing.assert_allclose(found.predictions, known.predictions, rtol=1e-6)


def test_tables_in_parquet_serve_in_place_of_rows(whole, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {f"d{k}": whole.log_masses[k] for k in range(P)}
    columns |= {f"h{k}": whole.predictions[k] for k in range(P)}
    table = pa.table(columns | {"target": whole.targets, "domain": whole.sample_domain})
    parquet.write_table(table, tmp_path / "tables.parquet", row_group_size=700)
    names = [[f"{letter}{k}" for k in range(P)] for letter in "dh"]
    with Store("float64") as store:
        tables = parquet_tables(tmp_path / "tables.parquet", *names, chunk_rows=200)
        problem = problem_in_chunks(tables, store)
        assert len(problem.parts) >= 6
        wanted = solve(whole.problem("squared", 1e-3))
        np.testing.assert_allclose(solve(problem).z, wanted.z, atol=1e-10)
    with pytest.raises(InputError, match="has no column 'd9'"):
        next(parquet_tables(tmp_path / "tables.parquet", [*names[0][:2], "d9"], names[1]))


def test_batches_without_rows_are_refused(rows):
    with Store() as store, pytest.raises(InputError, match="the batches have none"):
        problem_in_chunks([], store)
    X, y, domain = rows
    some = domain < 2
    two = ask_in_chunks(SOURCES, [(X[some], y[some], domain[some])])
    with Store() as store, pytest.raises(InputError, match="source 2 has no rows"):
        problem_in_chunks(two, store)


def test_threads_keep_the_order_tell_progress_and_pass_errors_on():
    told = []
    threads = ThreadMap(2, progress=lambda n, share: told.append((n, share)))
    assert list(threads(lambda i: i * i, list(range(7)))) == [i * i for i in range(7)]
    assert told[-1] == (1, 1.0)
    assert len(told) == 7
    assert [share for _, share in told] == sorted(share for _, share in told)
    with pytest.raises(ZeroDivisionError):
        list(threads(lambda i: 1 // i, [1, 0, 2]))
    assert threads.passes == 2


def test_threads_do_not_read_far_ahead():
    begun = []

    def numbers():
        for i in range(100):
            begun.append(i)
            yield i

    found = iter(ThreadMap(2)(lambda i: i, numbers()))
    next(found)
    assert len(begun) < 8


def test_nothing_is_left_of_a_store_whatever_ends_it(tmp_path):
    def fail(store):
        assert store.keep(x=np.ones(10**6)).read()["x"].sum() == 10**6
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Store(folder=tmp_path) as store:
        fail(store)
    assert os.listdir(tmp_path) == []
    code = f"""
        import os, numpy as np
        from anymix.engines.store import Store
        with Store(folder={str(tmp_path)!r}) as store:
            kept = store.keep(x=np.ones(10**6))
            assert kept.read()["x"].sum() == 10**6
            os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_said_in_a_sentence(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with Store() as store:
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(InputError, match="set TMPDIR to a folder on a larger disk"):
            store.keep(x=np.ones(3))


def test_memory_does_not_grow_with_the_rows():
    code = """
        import resource
        import numpy as np
        from anymix import Tables
        from anymix.engines.chunks import problem_in_chunks
        from anymix.engines.store import Store
        from anymix.engines.chunks import ThreadMap

        def part(seed, p=10, n=20_000):
            rng = np.random.default_rng(seed)
            domain = rng.integers(p, size=n)
            x = domain + rng.normal(size=n)
            log_d = -((x - np.arange(p)[:, None]) ** 2) / 2
            return Tables(log_d, x + 0.1 * np.arange(p)[:, None], x, domain)

        for n in (100_000, 800_000):
            with Store() as store:
                parts = (part(i) for i in range(n // 20_000))
                problem = problem_in_chunks(parts, store, map=ThreadMap(2))
                problem.evaluate_many(np.full((1, 10), 0.1), np.full((1, 10), 0.1))
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    peaks = [int(line) for line in done.stdout.split()]
    # All of it would take 8 times as much: 128 MB of float64 for the two tables alone.
    assert peaks[1] < peaks[0] + 60
