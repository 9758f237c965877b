"""TSV, gzip, standard input and standard output: the same rows, within the same budgets."""

import gzip
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from anymix.cli import main
from anymix.exceptions import AuditError, InputError
from anymix.tables import (
    STANDARD_INPUT,
    TableColumns,
    TableWriter,
    count_rows,
    holding_input,
    read_chunks,
    read_rows,
)
from tests.cli.descriptors import APPEND, descriptor, piped_in

AB = TableColumns(("a", "b"), "y", numeric_target=False)
TEXT = 'a,b,y\n1,2.5,"yes, sir"\n-3e2,4,no\n0,0,""\n'
ROOT = Path(__file__).parents[2]


def packed(content):
    """Without a date: cases that are named by it must be the same in every process."""
    return gzip.compress(content, mtime=0)


def _rows(path, columns=AB):
    X, y = read_rows(path, columns)
    return X.tolist(), None if y is None else y.tolist()


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz", ".tsv.gz", ".TSV.GZ"])
def test_all_texts_are_read_alike(tmp_path, suffix):
    plain = tmp_path / "t.csv"
    plain.write_text('a,b,y\n1,2.5,"yes"\n-3e2,4,no\n\n\n')
    other = tmp_path / f"t{suffix}"
    text = plain.read_text().replace(",", "\t") if "tsv" in suffix.lower() else plain.read_text()
    content = text.encode()
    other.write_bytes(packed(content) if suffix.lower().endswith(".gz") else content)
    assert _rows(other) == _rows(plain) == ([[1.0, 2.5], [-300.0, 4.0]], ["yes", "no"])
    assert count_rows(other) == count_rows(plain)
    assert [chunk.share for chunk in read_chunks(other, AB)] == [1.0]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_delimiter_and_encoding_are_found(tmp_path, delimiter, suffix, encoding):
    rows = ["a b y", '1 2.5 "Süd\nWest"', '-3e2 4 "x ""y"""']
    content = "\n".join(rows).replace(" ", delimiter).encode(encoding)
    path = tmp_path / f"t{suffix}"
    path.write_bytes(packed(content) if suffix.endswith(".gz") else content)
    X, y = _rows(path)
    assert X == [[1.0, 2.5], [-300.0, 4.0]]
    assert y == ["Süd\nWest", f'x{delimiter}"y"']


def test_decimal_commas_need_semicolons(tmp_path):
    path = tmp_path / "t.csv"
    numbers = TableColumns(("a", "b"), "y")
    path.write_text("a;b;y\n1,5;-,25;1,0\n2;3.5;1e1\n")
    assert _rows(path, numbers) == ([[1.5, -0.25], [2.0, 3.5]], [1.0, 10.0])
    path.write_text("a;b;y\n1,5;2;1,0\n")
    assert _rows(path)[1] == ["1,0"]  # a label stays as it is written
    path.write_text("a;b;y\n1.234,5;2;3\n")
    assert _rows(path, numbers)[0] == [[1234.5, 2.0]]
    path.write_text("a;b;y\n1.234,5;2;3\n1.234;2;3\n")
    with pytest.raises(InputError, match=r"row 2: column 'a' holds '1\.234', which is ambiguous"):
        read_rows(path, numbers)
    path.write_text('a,b,y\n"1,5",2,3\n')
    with pytest.raises(InputError, match="row 1: column 'a' holds '1,5', which is not a number"):
        read_rows(path, numbers)


def test_faults_after_a_line_break_in_quotes_name_the_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,y\n1,2,"x\ny"\n1,old,z\n')
    with pytest.raises(InputError, match="row 2: column 'b' holds 'old'"):
        read_rows(path, AB)
    path.write_text('a,b,y\n1,2,"x\ny"\n1,9007199254740993,z\n')
    with pytest.raises(InputError, match=r"row 2: column 'b' holds .* more than 53 bits"):
        read_rows(path, AB)


def test_a_tab_stands_in_quotes_and_commas_are_text(tmp_path):
    (tmp_path / "t.tsv").write_text('a\tb\ty\n1\t2\t"x\ty"\n3\t4\tx,y\n')
    assert _rows(tmp_path / "t.tsv")[1] == ["x\ty", "x,y"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz"])
def test_what_is_written_is_read(tmp_path, suffix):
    X = np.random.default_rng(0).normal(size=(5, 2))
    path = tmp_path / f"t{suffix}"
    with closing(TableWriter(path)) as out:
        out.write({"a": X[:2, 0], "b": X[:2, 1], "y": np.array(["p\tq", ","])})
        out.write({"a": X[2:, 0], "b": X[2:, 1], "y": np.array(["é", "北", '"'])})
    found, y = _rows(path)
    assert found == X.tolist()
    assert y == ["p\tq", ",", "é", "北", '"']
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith(".gz")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", packed(TEXT.encode()), "is compressed; name it .csv.gz or .tsv.gz"),
        ("t.csv.gz", TEXT.encode(), "is not a sound gzip file"),
        ("t.csv.gz", packed(TEXT.encode())[:-9], "is not a sound gzip file, or was cut"),
        ("t.csv.gz", packed(b"a,b,y\n1,old,no\n"), "row 1: column 'b' holds 'old'"),
        ("t.csv.gz", packed(b"a,b,y\n1,2,no\n\n1,2,no\n"), "row 2: 0 fields"),
        ("t.tsv", b"a\tb\ty\n1\t2\n", "row 1: 2 fields where the header has 3"),
    ],
)
def test_faults_name_the_remedy(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_rows(tmp_path / name, AB)


def _bomb(path, line, n_megabytes):
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"a,b,y\n")
        for _ in range(n_megabytes):
            file.write(line * (2**20 // len(line)))
    assert path.stat().st_size < 2**21
    return path


def test_a_small_file_that_swells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("anymix.tables.table_files.MODEST_BYTES", 2**23)
    with pytest.raises(AuditError, match="would unpack its"):
        list(read_chunks(_bomb(tmp_path / "t.csv.gz", b"\n", 10), AB))


def test_rows_and_long_lines_that_swell_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("anymix.tables.table_files.MODEST_BYTES", 2**23)
    with pytest.raises(AuditError, match="would unpack its"):
        for _ in read_chunks(_bomb(tmp_path / "t.csv.gz", b"1,2,no\n", 10), AB):
            pass
    monkeypatch.undo()
    with pytest.raises(InputError, match="MB long"):
        list(read_chunks(_bomb(tmp_path / "u.csv.gz", b"0", 20), AB))


def test_many_parts_of_gzip_are_one_table(tmp_path):
    parts = [b"a,b,y\n1,2,no\n", b"3,4,yes\n"]
    (tmp_path / "t.csv.gz").write_bytes(b"".join(map(packed, parts)))
    assert _rows(tmp_path / "t.csv.gz")[1] == ["no", "yes"]


# --- standard input and standard output ----------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npz"])
def test_standard_input_shows_its_kind(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    with closing(TableWriter(path)) as out:
        if suffix == ".npz":
            out.write({"X": np.eye(2), "y": np.array(["p", "q"])})
        else:
            out.write({"a": np.eye(2)[0], "b": np.eye(2)[1], "y": np.array(["p", "q"])})
    with descriptor(0, path), holding_input():
        assert _rows(STANDARD_INPUT) == (np.eye(2).tolist(), ["p", "q"])
        assert _rows(STANDARD_INPUT) == (np.eye(2).tolist(), ["p", "q"])  # it is kept
        assert count_rows(STANDARD_INPUT) == 2


def _shell(line, folder):
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(["bash", "-c", line], capture_output=True, cwd=folder, env=given)


def test_data_goes_through_and_words_to_standard_error(world, tmp_path, capfdbinary):
    table = world.test[0].split("=")[1]
    assert main(["predict", world.model, table, "--out", str(tmp_path / "p.csv"), "--quiet"]) == 0
    predict = ["predict", world.model, "-", "--out", "-"]
    with piped_in(Path(table).read_bytes()):
        assert main(predict) == 0
    said = capfdbinary.readouterr()
    assert said.out == (tmp_path / "p.csv").read_bytes()
    assert b"predicted 100 rows" in said.err
    with descriptor(0, table):
        assert main([*predict, "--json"]) == 0
    said = capfdbinary.readouterr()
    assert said.out == (tmp_path / "p.csv").read_bytes()
    assert b'"rows": 100' in said.err
    with descriptor(0, table):
        assert main([*predict, "--quiet"]) == 0
    assert capfdbinary.readouterr().err == b""


def test_a_table_that_is_piped_in_may_be_trained_on(tmp_path, run, monkeypatch):
    """Training reads the table more than once; what was kept of it is gone in the end."""
    rng = np.random.default_rng(0)
    lines = [f"{x},{y},{'yes' if x > 0 else 'no'}" for x, y in rng.normal(size=(60, 2))]
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    pack = ["source", "pack", tmp_path / "s", "--name", "s", "--task", "classification"]
    with piped_in("\n".join(["a,b,y", *lines, ""]).encode()):
        said = run(*pack, "--rows", "-")
    assert said.status == 0, said.err
    assert not list((tmp_path / "room").iterdir())


def test_standard_input_is_never_written_over(world, run, tmp_path):
    """Neither by its name, nor where the shell sends standard output."""
    table = Path(world.test[0].split("=")[1]).read_bytes()
    mine = tmp_path / "t.csv"
    mine.write_bytes(table)
    with descriptor(0, mine):
        named = run("predict", world.model, "-", "--out", mine, "--force")
    with descriptor(0, mine), descriptor(1, mine, APPEND):
        piped = run("predict", world.model, "-", "--out", "-")
    with descriptor(1, mine, APPEND):
        appended = run("predict", world.model, mine, "--out", "-")
    assert mine.read_bytes() == table
    for said in (named, piped, appended):
        assert (said.status, "is read by this command" in said.err) == (3, True), said


def test_faults_of_standard_input(world, run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,old\n")
    with descriptor(0, tmp_path / "t.csv"):
        said = run("predict", world.model, "-", "--out", tmp_path / "p.csv")
    assert "/dev/stdin, row 1: column 'b' holds 'old'" in said.err
    with descriptor(0, os.devnull):
        assert "has no header" in run("monitor", world.model, "-").err
    said = run("fit", *world.sources, "--held-out", "north=-", "south=-", "--out", tmp_path / "m")
    assert (said.status, "standard input is one table" in said.err) == (2, True)
    for words in (["fit", "x", "y", "--out"], ["source", "pack", "--name=x", "--rows=t.csv"]):
        said = run(*words, "-")
        assert (said.status, "not standard output" in said.err) == (2, True), said


def test_held_out_rows_may_come_by_standard_input(world, run):
    (first, *rest) = world.test
    name, _, path = first.partition("=")
    with descriptor(0, path):
        piped = run("compare", world.model, "--held-out", f"{name}=-", *rest)
    assert piped.status == 0, piped
    assert piped.out == run("compare", world.model, "--held-out", *world.test).out


# --- the door ------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["anymix", "anymix.cli"])
def test_the_module_is_the_command(module, tmp_path):
    for words in (["--help"], ["fit", "--help"], ["--version"], ["fti"]):
        line = " ".join([sys.executable, "-m", module, *words])
        done = _shell(line, tmp_path)
        said = (done.stdout or done.stderr).decode()
        assert said.startswith(("usage: anymix", "anymix ", "anymix: no command 'fti'")), said
        assert "__main__" not in said


def test_what_is_no_file_is_said_in_a_sentence(world, run, tmp_path):
    said = run("report", world.model, "--out", tmp_path)
    assert f"{tmp_path} is a folder; give the name of a file" in said.err
    table = world.test[0].split("=")[1]
    words = ["--name=x", "--rows", table, "--task=classification", "--classes", "no", "yes"]
    said = run("source", "pack", tmp_path / "x", *words, "--onnx", "missing")
    assert (said.status, said.err) == (
        3,
        "anymix: missing does not exist; give the ONNX file of a trained predictor.\n",
    )
