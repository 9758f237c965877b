"""--features, --drop and --id: which columns are learned from, and which name the rows."""

import csv
from argparse import Namespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anymix.cli.chosen_columns import check_choice
from anymix.exceptions import UsageError
from anymix.exchange import read_source
from anymix.tables import TableColumns, read_chunks

HEADER = "patient_id,a,note,b,y"


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    pairs = 99 * rng.normal(size=(60, 2))
    lines = [
        f"{7 * i},{a},seen on day {i},{b},{'yes' if i % 2 else 'no'}"
        for i, (a, b) in enumerate(pairs)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


@pytest.fixture
def pack(run, rows, tmp_path):
    def call(*options):
        words = ["--name", "north", "--task", "classification", "--rows", rows]
        return run("source", "pack", tmp_path / "north", *words, *options)

    return call


@pytest.mark.parametrize(
    ("options", "due"),
    [
        (["--features", "b,a"], ["b", "a"]),
        (["--features", "b", "--features", "a", "--id", "patient_id"], ["b", "a"]),
        (["--drop", "note", "--id", "patient_id"], ["a", "b"]),
        (["--drop", "patient_id,note,a"], ["b"]),
    ],
)
def test_the_chosen_columns_are_those_of_the_source(pack, tmp_path, options, due):
    said = pack(*options)
    assert (said.status, said.err) == (0, "")
    assert list(read_source(tmp_path / "north").feature_names) == due


def test_a_likely_id_is_warned_of_and_a_note_can_be_dropped(pack):
    said = pack()
    assert said.status == 3
    assert "column 'note' has a different text in most rows, such as" in said.err
    assert "leave the column out with --drop, name it with --id if it holds row ids" in said.err
    said = pack("--drop", "note")
    assert said.status == 0
    assert "warning" in said.err
    assert said.err.count("column") == 1


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (
            ["--drop", "nose"],
            3,
            "has no column 'nose'; did you mean 'note'? It has 'patient_id', 'a'",
        ),
        (["--features", "a,nose"], 3, "has no column 'nose'"),
        (["--id", "nose"], 3, "has no column 'nose'"),
        (["--id", "y"], 2, "--id and --target both name 'y'; choose one"),
        (["--drop", "a", "--id", "a"], 2, "--drop and --id both name 'a'"),
        (["--features", "a,y"], 2, "--features and --target both name 'y'"),
        (["--features", "a,a"], 2, "--features names a column twice"),
        (["--features", "a", "--drop", "b"], 2, "not allowed with argument"),
        (["--drop", "a,,b"], 2, "column names separated by commas"),
        (["--drop", "patient_id,a,note,b"], 3, "has only the column 'y'"),
    ],
)
def test_choices_that_cannot_be(pack, tmp_path, options, status, words):
    said = pack(*options)
    assert (said.status, words in said.err) == (status, True), said
    assert not (tmp_path / "north").exists()


def test_numbers_without_names_have_no_columns_to_choose(run, tmp_path, world):
    np.savez(tmp_path / "t.npz", X=np.ones((9, 2)), y=np.array(["a", "b", "a"] * 3))
    words = [
        "--name",
        "n",
        "--task",
        "classification",
        "--rows",
        tmp_path / "t.npz",
        "--drop",
        "x0",
    ]
    assert "has no column names" in run("source", "pack", tmp_path / "n", *words).err
    np.savez(tmp_path / "u.npz", X=np.ones((9, 2)))
    words = [world.model, tmp_path / "u.npz", "--id", "x0", "--out", tmp_path / "p.csv"]
    assert "--id can name none" in run("predict", *words).err


def test_a_summary_leaves_out_what_the_source_does(run, rows, tmp_path):
    words = [rows, "--name", "n", "--id", "patient_id", "--drop", "note", "--out"]
    assert run("reference", "summary", *words, tmp_path / "s.json").status == 0
    assert run("reference", "join", tmp_path / "s.json", "--out", tmp_path / "r.json").status == 0
    pack = ["source", "pack", tmp_path / "n", "--name", "n", "--task", "classification"]
    pack += ["--rows", rows, "--reference", tmp_path / "r.json", "--id", "patient_id"]
    said = run(*pack)
    assert (
        "column 'note' is not in the reference; leave it out with --drop, name it with" in said.err
    )
    assert run(*pack, "--drop", "note").status == 0


# --- where the sources are there already ---------------------------------------------------------


def _with_ids(world, tmp_path, suffix=".csv"):
    """A table of the model's features, with an id that no number can hold, and a note."""
    with open(world.test[0].split("=")[1], newline="") as file:
        found = list(csv.DictReader(file))
    ids = [f"0{i}, é" for i in range(len(found))]
    path = tmp_path / f"t{suffix}"
    columns = {"id": ids, "note": ["n"] * len(ids)}
    columns |= {name: [float(row[name]) for row in found] for name in ("a", "b")}
    if suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    return path, ids


@pytest.mark.parametrize("out", [".csv", ".tsv.gz", ".parquet", ".npz"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_ids_are_carried_into_the_first_column(world, run, tmp_path, suffix, out):
    path, ids = _with_ids(world, tmp_path, suffix)
    options = ["--id", "id", "--drop", "note", "--chunk-rows", 30]
    place = tmp_path / f"p{out}"
    assert run("predict", world.model, path, *options, "--out", place).status == 0
    if out == ".npz":
        with np.load(place) as found:
            assert (found.files[0], found["id"].tolist()) == ("id", ids)
    elif out == ".parquet":
        found = pq.read_table(place)
        assert (found.column_names[0], found["id"].to_pylist()) == ("id", ids)
    else:
        (chunk,) = read_chunks(place, TableColumns(("p(yes)",), id="id"))
        assert chunk.ids.tolist() == ids
    # Written by predict, so it may be replaced.
    assert run("predict", world.model, path, *options, "--out", place, "--force").status == 0


def test_whole_numbers_stay_whole_in_parquet(world, run, tmp_path):
    table = pa.table({"n": [2**60 + 1, None], "a": [0.0, 1.0], "b": [0.0, 1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    words = ["predict", world.model, tmp_path / "t.parquet", "--id", "n", "--out"]
    assert run(*words, tmp_path / "p.parquet").status == 0
    assert pq.read_table(tmp_path / "p.parquet")["n"].to_pylist() == [2**60 + 1, None]
    assert run(*words, tmp_path / "p.csv").status == 0
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith(f"{2**60 + 1},")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--drop", "a"], "column 'a' of --drop is a feature of the sources"),
        (["--id", "b"], "column 'b' of --id is a feature of the sources"),
        (
            ["--features", "a"],
            "not the features of the sources ('a', 'b'",
        ),
        (["--features", "b,a,note"], "pack the sources again with --features"),
    ],
)
def test_every_command_agrees_with_the_sources(world, run, tmp_path, options, words):
    table = world.test[0].split("=")[1]
    site = ["--site", "north", "--rows", table]
    others = (
        ["predict", world.model, table, "--out", tmp_path / "p.csv"],
        ["certify", world.model, "--held-out", *world.test],
        ["compare", world.model, "--held-out", *world.test],
        ["fit", *world.sources, "--held-out", *world.held, "--out", tmp_path / "m"],
        ["site", "evaluate", *world.sources, *site, "--out", tmp_path / "s"],
    )
    # All commands ask one function.
    for command in (["monitor", world.model, table], *(others if options[0] == "--drop" else ())):
        said = run(*command, *options)
        assert (said.status, words in said.err) == (3, True), (command, said)


def test_features_may_be_confirmed_in_any_order(world, run, tmp_path):
    path, _ = _with_ids(world, tmp_path)
    for options in (["--features", "b,a"], ["--drop", "note,nowhere", "--id", "id"]):
        assert run("monitor", world.model, path, *options).status in (0, 1)


def test_an_id_with_the_name_of_an_answer_is_refused(world, run, tmp_path):
    (tmp_path / "t.csv").write_text("label,a,b\n1,0,0\n")
    words = ["predict", world.model, tmp_path / "t.csv", "--id", "label"]
    assert "has the name of an output column" in run(*words, "--out", tmp_path / "p.csv").err
    assert not (tmp_path / "p.csv").exists()


def test_a_choice_of_nothing():
    args = Namespace(features=None, drop=None, id=None, target="y")
    check_choice(args)
    with pytest.raises(UsageError, match="both name 'y'"):
        check_choice(Namespace(features=None, drop=["y"], id=None, target="y"))
