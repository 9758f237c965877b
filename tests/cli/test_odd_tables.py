"""Odd tables are read exactly or refused in one sentence, and no command changes data silently."""

import csv
import re

import numpy as np
import pytest

from anymix.tables import TableColumns, TableFormat, read_rows
from anymix.tables.table_files import check_swelling
from tests.cli.odd_tables import ask, commands, fault_of, odd_tables
from tests.cli.organisations import write_csv

TABLES = odd_tables()
WORDS = TableColumns(("a", "b"), "y", numeric_target=False)


def test_there_are_many():
    assert len(TABLES) >= 250


@pytest.mark.parametrize("group", range(20))
def test_each_is_read_exactly_or_refused(group, tmp_path):
    for i, table in enumerate(TABLES[group::20]):
        if table.dear:
            continue
        path = table.make(tmp_path / str(i))
        if table.rows is not None:
            np.testing.assert_array_equal(read_rows(path, WORDS)[0], table.rows, table.name)
            continue
        with pytest.raises((ValueError, OSError)) as refused:
            read_rows(path, WORDS)
        assert re.search(table.says, str(refused.value)), (table.name, str(refused.value))


@pytest.mark.parametrize("table", TABLES[::16], ids=lambda table: table.name)
def test_a_sample_meets_every_command(world, tmp_path, table):
    path, out = table.make(tmp_path / "in"), tmp_path / "out"
    out.mkdir()
    for arguments in commands(world, path, out):
        fault = fault_of(*ask(arguments), arguments[0])
        assert not fault, (arguments[:2], fault)
    assert not list(out.glob(".*")), "nothing half-made is left"


@pytest.mark.parametrize(
    ("words", "due"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["1", "-2", " 0"], [1, -2, 0]),
        (["1", "01", "1"], ["1", "01", "1"]),
        (["+1", "1", "2"], ["+1", "1", "2"]),
        (["1", "1_0", "2"], ["1", "1_0", "2"]),
        (["１", "1", "2"], ["１", "1", "2"]),
        (["-0", "0", "1"], ["-0", "0", "1"]),
        (["1.0", "2", "1"], ["1.0", "2", "1"]),
        (["9007199254740993", "9007199254740992", "1"],) * 2,
    ],
)
def test_labels_that_differ_stay_different(tmp_path, words, due):
    from anymix.cli.training_table import TrainingRequest

    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i},{word}\n" for i, word in enumerate(words)))
    request = TrainingRequest(str(path), "y", "classification", TableFormat())
    _, y = request.rows(["a"])
    assert y.tolist() == due


def test_codes_are_no_whole_numbers(tmp_path):
    path = tmp_path / "t.csv"
    columns = TableColumns(("a",), "y", whole_target=True)
    path.write_text("a,y\n1,1\n2,2.0\n3, 3\n")
    assert read_rows(path, columns)[1].tolist() == [1, 2, 3]
    for code in ("01", "+1", "-01", "007"):
        path.write_text(f"a,y\n1,1\n2,{code}\n")
        with pytest.raises(ValueError, match=r"row 2: column 'y' holds .* whole numbers"):
            read_rows(path, columns)


def test_what_unpacks_to_too_much_is_refused(tmp_path):
    check_swelling(tmp_path, 2**24, 10, 100)
    check_swelling(tmp_path, 2**40, 2**36, 200)
    with pytest.raises(ValueError, match="would unpack its 10 bytes to 8 GB or more"):
        check_swelling(tmp_path, 2**30, 10, 100)


def test_documents_must_be_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = TableColumns(("text",), text=True)
    np.savez(tmp_path / "t.npz", X=np.array(["a b", "c"]))
    assert read_rows(tmp_path / "t.npz", columns)[0] == ["a b", "c"]
    pq.write_table(pa.table({"text": ["a", None]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="row 2: column 'text' has no text"):
        read_rows(tmp_path / "t.parquet", columns)
    pq.write_table(pa.table({"text": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="does not hold text but numbers"):
        read_rows(tmp_path / "t.parquet", columns)
    long = "word " * 60_000
    (tmp_path / "t.csv").write_text(f'text\n"{long}"\n')
    assert read_rows(tmp_path / "t.csv", columns)[0] == [long]


def test_the_index_of_pandas_is_no_feature(tmp_path, run):
    import pandas

    frame = pandas.DataFrame({"a": [0.0, 1.0], "y": ["u", "v"]}, index=[5, 7])
    frame.to_parquet(tmp_path / "t.parquet")
    pack = ["--name", "n", "--rows", tmp_path / "t.parquet", "--task", "classification"]
    said = run("source", "pack", tmp_path / "s", *pack)
    assert said.status == 3
    assert "index=False" in said.err


@pytest.mark.parametrize("label", ['=HYPERLINK("http://x")', "@SUM(1)", "-cmd|' /C calc'!A0"])
def test_formulas_are_no_labels(tmp_path, run, label):
    quoted = label.replace('"', '""')
    (tmp_path / "t.csv").write_text(f'a,y\n0,no\n1,"{quoted}"\n2,no\n')
    pack = ["--name", "n", "--rows", tmp_path / "t.csv", "--task", "classification"]
    said = run("source", "pack", tmp_path / "s", *pack)
    assert said.status == 3
    assert "row 2: column 'y' holds a label" in said.err
    assert "formula" in said.err


def test_names_like_columns_of_the_answer_make_no_column_twice(tmp_path, run):
    """Classes, features and sources may be called as the columns that predict writes."""
    rng, names = np.random.default_rng(0), ("label", "p(label)", "weight(a)")
    features, held = ("prediction", "novelty"), []
    for k, name in enumerate(("label", "prediction")):
        X = rng.normal(k, size=(90, 2))
        y = np.array(names)[rng.integers(0, 3, size=90)]
        for part in ("train", "held"):
            write_csv(tmp_path / f"{name}-{part}.csv", X + (part == "held"), y, features)
        pack = ["--name", name, "--rows", tmp_path / f"{name}-train.csv"]
        said = run("source", "pack", tmp_path / name, *pack, "--task", "classification")
        assert said.status == 0, said.err
        held.append(f"{name}={tmp_path / name}-held.csv")
    sources = [tmp_path / "label", tmp_path / "prediction"]
    assert run("fit", *sources, "--held-out", *held, "--out", tmp_path / "m").status == 0
    table, out = tmp_path / "label-held.csv", tmp_path / "p.csv"
    said = run("predict", tmp_path / "m", table, "--out", out, "--weights", "--novelty")
    assert said.status == 0, said.err
    head, *rows = list(csv.reader(out.read_text().splitlines()))
    assert len(head) == len(set(head)) == 1 + 3 + 2 + 1
    assert {len(row) for row in rows} == {len(head)}
