"""Tables in and out: what is written is read, and a fault is named with file, row and column."""

import copy
import tracemalloc
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anymix.exceptions import InputError
from anymix.storage import replacing
from anymix.tables import TableColumns, TableWriter, read_chunks, read_rows

AB = TableColumns(("a", "b"), "y")
finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@settings(max_examples=20, deadline=None)
@given(arrays(float, st.tuples(st.integers(1, 12), st.just(3)), elements=finite), st.integers(1, 5))
def test_numbers_come_back_whole_whatever_the_chunks(tmp_path_factory, suffix, table, size):
    path = tmp_path_factory.mktemp("t") / f"t{suffix}"
    with closing(TableWriter(path)) as out:
        for start in range(0, len(table), 2):
            part = table[start : start + 2]
            out.write({"y": part[:, 2], "a": part[:, 0], "b": part[:, 1]})
    chunks = list(read_chunks(path, AB, size))
    np.testing.assert_array_equal(np.concatenate([c.X for c in chunks]), table[:, :2])
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), table[:, 2])
    assert chunks[-1].share == pytest.approx(1)
    assert all(len(c.X) == size for c in chunks[:-1])


def test_npz(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array(["u", "v", "u"])
    np.savez(tmp_path / "t.npz", X=X, y=y)
    found, labels = read_rows(
        tmp_path / "t.npz", TableColumns(("a", "b"), "y", numeric_target=False)
    )
    np.testing.assert_array_equal(found, X)
    assert labels.tolist() == ["u", "v", "u"]
    with closing(TableWriter(tmp_path / "out.npz")) as out:
        out.write({"p": X[:, 0]})
        out.write({"p": X[:, 1]})
    with np.load(tmp_path / "out.npz") as stored:
        assert stored["p"].tolist() == [0, 2, 4, 1, 3, 5]


def test_quotes_and_a_mark_of_byte_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"a","b",y\r\n"1.5",2,"x, or y"\r\n'.encode())
    X, y = read_rows(path, TableColumns(("b", "a"), "y", numeric_target=False))
    assert X.tolist() == [[2.0, 1.5]]
    assert y.tolist() == ["x, or y"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,y\n1,2,3\n1,oops,3\n", "row 2: column 'b' holds 'oops', which is not a number"),
        ("a,b,y\n1,2,3\n1,2\n", "row 2: 2 fields where the header has 3"),
        ("a,b,y\n1,2,3\n\n1,2,3\n", "row 2: 0 fields where the header has 3"),
        ("a,b,y\n1,,3\n", "row 1: column 'b' has no number; fill it in or leave the row out"),
        ("a,b,y\n1,2,3\n1,2,\n", "row 2: column 'y' has no label; fill it in or leave the row out"),
        (
            "a,b\n1,2\n",
            "has no column 'y'; it has 'a', 'b'; name the label column with --target",
        ),
        ("a,b,y\n1,2,3\n1,nan,3\n", "row 2: column 'b' has no number"),
        ("a,b,y\n1,2,3\n1,2,high\n", "row 2: column 'y' holds 'high', which is not a number"),
        ("a,y\n1,2\n", "has no column 'b'; it has 'a', 'y'"),
        ("a,b,y\n", "has no rows"),
        ("", "has no header; its first line must name the columns"),
        ("a,b,y\n1,2,\x81\n", "not UTF-8"),
    ],
)
def test_faults_of_csv(tmp_path, text, words):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=words) as caught:
        read_rows(path, AB)
    assert str(path) in str(caught.value)


def test_a_row_cut_short_is_refused_even_where_its_missing_columns_are_not_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,note\n1,2,"x, y"\n1,2.')
    with pytest.raises(ValueError, match="row 2: 2 fields where the header has 3"):
        read_rows(path, TableColumns(("a", "b")))
    path.write_text('a,b,note\n1,2,"x, y"\n')
    assert read_rows(path, TableColumns(("a", "b")))[0].tolist() == [[1.0, 2.0]]


def test_rows_are_counted_over_chunks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 10 + "1,x\n")
    with pytest.raises(ValueError, match="row 11: column 'b'"):
        list(read_chunks(path, TableColumns(("a", "b")), 3))


def test_faults_of_other_tables(tmp_path):
    pq.write_table(pa.table({"a": ["x"], "b": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'a' holds 'x', which is not a number"):
        read_rows(tmp_path / "t.parquet", TableColumns(("a", "b")))
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(ValueError, match="not a Parquet file"):
        read_rows(tmp_path / "bad.parquet", AB)
    np.savez(tmp_path / "t.npz", X=np.array([None, {}], dtype=object))
    with pytest.raises(ValueError, match="must hold a plain array X"):
        read_rows(tmp_path / "t.npz", TableColumns(("a", "b")))
    np.savez(tmp_path / "u.npz", X=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"shape \(2, 3\); \(2, 2\) is expected"):
        read_rows(tmp_path / "u.npz", TableColumns(("a", "b")))
    with pytest.raises(ValueError, match=r"give .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .npz or"):
        read_rows(tmp_path / "t.xls", AB)
    with pytest.raises(ValueError, match="does not exist"):
        read_rows(tmp_path / "t.csv", AB)


def test_a_failed_write_leaves_the_old_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as new, closing(TableWriter(new)) as out:
        out.write({"a": np.ones(3) / (1 // 0)})
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_of_tables_say_where_and_why(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n3,old\n")
    with pytest.raises(InputError) as refused:
        read_rows(table, TableColumns(("a", "b")))
    assert refused.value.where == f"{table}, row 2: column 'b'"
    assert refused.value.cause.startswith("holds 'old', which is not a number; name")
    again = copy.copy(refused.value)
    assert str(again) == str(refused.value) == f"{again.where} {again.cause}."


@pytest.mark.parametrize("suffix", [".CSV", ".Parquet", ".NPZ"])
def test_suffixes_may_be_written_large(tmp_path, suffix):
    with closing(TableWriter(tmp_path / f"t{suffix}")) as out:
        out.write({"X": np.ones((3, 1))} if suffix == ".NPZ" else {"a": np.ones(3)})
    assert [path.name for path in tmp_path.iterdir()] == [f"t{suffix}"]
    assert read_rows(tmp_path / f"t{suffix}", TableColumns(("a",)))[0].tolist() == [[1.0]] * 3


def test_blanks_around_a_name_are_shown(tmp_path):
    (tmp_path / "t.csv").write_text("a, b\n1,2\n")
    with pytest.raises(InputError, match=r"it has 'a', ' b'; write its name .* without blanks"):
        read_rows(tmp_path / "t.csv", TableColumns(("a", "b")))


def test_an_empty_line_in_a_table_of_one_column_is_no_end(tmp_path):
    (tmp_path / "t.csv").write_text("a\nword\n\n")
    with pytest.raises(InputError, match="row 2: 0 fields"):
        read_rows(tmp_path / "t.csv", TableColumns(("a",), text=True))


def test_faults_of_a_temporary_file_name_the_file_that_was_asked_for(tmp_path):
    for error in (OSError(28, "No space left on device"), None):
        with pytest.raises(OSError) as failed, replacing(tmp_path / "t.csv") as temporary:  # noqa: PT011
            raise error or PermissionError(13, "Permission denied", str(temporary))
        assert failed.value.filename == str(tmp_path / "t.csv")


def test_parquet_that_was_read_does_not_stay_in_memory(tmp_path):
    path, names = tmp_path / "t.parquet", [f"x{i}" for i in range(8)]
    block = pa.table({name: np.random.default_rng(0).normal(size=20_000) for name in names})
    with pq.ParquetWriter(path, block.schema, compression="none") as out:
        for _ in range(40):
            out.write_table(block)
    tracemalloc.start()
    try:
        for _ in read_chunks(path, TableColumns(tuple(names)), 10_000):
            pass
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of it are 51 MB.
    assert most < 10e6
