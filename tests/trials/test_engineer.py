"""Mistakes that an engineer makes, and what anymix says to each."""

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from anymix.cli import main
from tests.trials import engineer_world

# What stands for longer words in the commands below.
SHORT = {
    "PACK": "source pack new --name new --task classification",
    "AGE_DOSE": "--target ill --features age,dose",
    "HELD": "--held-out north=north_held.csv south=south_held.csv",
    "TEST": "--held-out north=north_test.csv south=south_test.csv",
}

# Of each mistake: its name; the exit code and the command; words of the sentence, cause | remedy.
PACKING = """
a target mistyped
    3 PACK --rows north_train.csv --target il
    has no column 'il'; did you mean 'ill'? It has 'visit' | with --target
no target named
    3 PACK --rows north_train.csv
    no column 'y' | name the label column | --target
a table mistyped
    3 PACK --rows nroth_train.csv AGE_DOSE
    nroth_train.csv does not exist | give a table that is there
a workbook
    3 PACK --rows book.xlsx AGE_DOSE
    book.xlsx is not an Excel workbook | save it anew
an empty file
    3 PACK --rows empty.csv AGE_DOSE
    empty.csv has no header | must name the columns
a header alone
    3 PACK --rows header_only.csv AGE_DOSE
    header_only.csv has no rows | give a table with rows below its header
no header
    3 PACK --rows no_header.csv AGE_DOSE
    has no column 'ill' | it has 'v-000', '46.6'
one class
    3 PACK --rows one_class.csv AGE_DOSE
    only the label 'no' | add rows of another label
a label left out
    3 PACK --rows gap_label.csv AGE_DOSE
    gap_label.csv, row 3 | 'ill' has no label | fill it in or leave the row out
NaN among targets
    3 source pack new --name new --task regression --rows gap_cost.csv --target cost --features age
    gap_cost.csv, row 3: column 'cost' has no label | fill it in or leave the row out
regression of words
    3 source pack new --name new --task regression --rows north_train.csv AGE_DOSE
    column 'ill' holds | which is not a number | --task classification
classification of amounts
    3 PACK --rows north_train.csv --target cost --features age,dose
    column 'cost' holds | different labels in 120 rows | --task regression
a column twice
    3 PACK --rows twice.csv --target ill --drop ward,visit
    2 columns named 'age' | rename or drop all but one
a row cut short
    3 PACK --rows ragged.csv AGE_DOSE
    ragged.csv, row 4: 4 fields where the header has 6 | fill the row up, and quote
dates
    3 PACK --rows dates.csv AGE_DOSE
    column 'dose' holds dates | days since a day | --drop
words and no reference
    3 PACK --rows north_train.csv --target ill --id visit
    has categories (column 'ward') | --reference FILE | --drop
a summary for a reference
    4 PACK --rows north_train.csv AGE_DOSE --reference north.summary
    is not an anymix reference or anymix word reference | give an output of anymix reference join
a column to drop mistyped
    3 PACK --rows north_train.csv --target ill --drop wrad
    has no column 'wrad'; did you mean 'ward'? | It has 'visit'
the target among features
    2 PACK --rows north_train.csv --target ill --features age,ill
    --features and --target both name 'ill' | choose one
blanks between features
    3 PACK --rows north_train.csv --target ill --features 'age, dose'
    has no column ' dose'; did you mean 'dose'? | It has 'visit'
features and drop
    2 PACK --rows north_train.csv AGE_DOSE --drop visit
    --drop: not allowed with argument --features | anymix source pack --help
a pickle
    3 PACK --rows north_train.csv AGE_DOSE --onnx model.pkl --classes no yes
    is not an ONNX file | by torch.onnx.export or skl2onnx
a task by another name
    2 source pack new --name new --rows north_train.csv --task classify
    invalid choice: 'classify' | 'classification', 'regression'
a folder that exists
    3 source pack north --name new --task classification --rows north_train.csv AGE_DOSE
    north exists already | choose another name, or replace it with --force
a number infinite
    3 PACK --rows infinite.csv AGE_DOSE
    row 3: column 'age' holds a number that is infinite | fill it in or leave the row out
text with a suffix of Parquet
    3 PACK --rows fake.parquet AGE_DOSE
    fake.parquet is not a Parquet file | write it anew, or name it by what it is
"""

FITTING = """
a source mistyped
    3 fit north south --held-out north=north_held.csv sooth=south_held.csv --target ill --out new
    'sooth' is unknown | the sources are north, south
a source without rows
    3 fit north south --held-out north=north_held.csv --target ill --out new
    held-out rows of north, south are needed | got north
tables without names
    2 fit north south --held-out north_held.csv south_held.csv --out new
    --held-out takes NAME=TABLE, such as north=north.csv
one table for two sources
    2 fit north south --held-out north=north_held.csv south=north_held.csv --out new --target ill
    north_held.csv for both 'north' and 'south' | give each source its own rows
percent for a share
    2 fit north south HELD --out new --target ill --confidence 95
    between 0 and 1, but is 95 | write 95 % as 0.95
percent with its sign
    2 fit north south HELD --out new --target ill --confidence 95%
    but is '95%' | write 95 % as 0.95
tables for source folders
    4 fit north_train.csv south_train.csv TEST --out new
    north_train.csv is not a folder | anymix source pack
a model for a source
    4 fit model south TEST --target ill --out new
    model is a model folder | give a source folder, as anymix source pack writes
labels beside numbers
    3 fit north south_cost TEST --target ill --out new
    south_cost is for regression, the first for classification | give sources of one task
a source twice
    3 fit north north TEST --target ill --out new
    the same name | pack again under another name
one source
    3 fit north --held-out north=north_held.csv --target ill --out new
    one source needs no combination | two source folders or more
somebody's folder by force
    3 fit north south HELD --out results --target ill --force
    results is not a model folder: it holds keep.txt | choose another name
a feature missing
    3 fit north south --held-out north=north_held.csv south=no_dose.csv --out new --target ill
    no_dose.csv has no column 'dose' | it has 'visit', 'age'
labels with capitals
    3 fit north south --held-out north=north_held.csv south=capitals.csv --out new --target ill
    which no source knows (they know no, yes) | leave such rows out
a summary for a site's file
    4 fit north south --from-sites north.summary south.summary --out new
    north.summary is not a site's file | give what anymix site evaluate wrote
a graph exchanged
    4 fit exchanged south TEST --target ill --out new
    exchanged/predictor.onnx has | the manifest says
"""

SERVING = """
a model mistyped
    3 predict modle traffic.csv --out new.csv
    modle does not exist | give a folder that anymix.save or anymix fit wrote
table and model exchanged
    4 predict traffic.csv model --out new.csv
    traffic.csv is not a model folder | give a folder that anymix.save or anymix fit wrote
a model of a version to come
    4 predict later traffic.csv --out new.csv
    schema 99; this version reads 1 to 4 | update anymix
a table cut on its way
    3 predict model cut.csv.gz --out new.csv
    not a sound gzip file, or was cut | write it anew
a column with a capital
    3 predict model Dose.csv --out new.csv
    has no column 'dose'; did you mean 'Dose'? | It has 'visit'
the input for output
    3 predict model traffic.csv --out traffic.csv --force
    traffic.csv is read by this command | choose another output
an interval of labels
    3 predict model traffic.csv --out new.csv --interval 0.9
    predicts labels, which have no interval | use --set
an area certified
    2 certify model TEST --target ill --measure auc
    ranks rows of one source against those of another | see the area by compare
a measure of numbers for labels
    2 certify model TEST --target ill --measure mae
    'mae' does not fit labels | 'accuracy'
a measure with capitals
    2 compare model TEST --target ill --measure AUC
    no measure 'AUC'; did you mean 'auc' | anymix compare --help
a report for printing
    3 report model --out new.pdf
    new.pdf would hold an HTML page | name it .html
a graph for PyTorch
    3 export model new.pt
    new.pt would hold an ONNX file | name it .onnx
one name for two forms
    2 export model new.onnx --mlflow new.onnx
    new.onnx is named for two outputs | give each its own name
a command without its noun
    2 pack north
    no command 'pack'; did you mean 'source pack'? | anymix --help lists them
a command mistyped
    2 fti north south
    no command 'fti'; did you mean 'fit'? | anymix --help lists them
"""


class Mistake(NamedTuple):
    """A command, its exit code, and words of the sentence: what is wrong, and what to do."""

    name: str
    command: list[str]
    status: int
    words: list[str]


def _mistakes(text):
    """Read the mistakes, of three lines each."""
    lines = [line.strip() for line in text.strip().splitlines()]
    for name, asked, said in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        status, *command = shlex.split(" ".join(SHORT.get(word, word) for word in asked.split(" ")))
        yield Mistake(name, command, int(status), said.split(" | "))


MISTAKES = [each for text in (PACKING, FITTING, SERVING) for each in _mistakes(text)]


def _all_files():
    """Every file and folder here, with size and time of the files."""
    there = [(path, path.stat()) for path in Path().rglob("*")]
    return {path: (at.st_size, at.st_mtime_ns) if path.is_file() else None for path, at in there}


@pytest.fixture(scope="module")
def clinics(tmp_path_factory):
    """A folder with tables, sources and models, made once."""
    folder = tmp_path_factory.mktemp("clinics")

    def run(command):
        assert main([*shlex.split(command), "--quiet"]) == 0, command

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        engineer_world.build(folder, run)
    return folder


def test_there_are_many():
    assert len({each.name for each in MISTAKES}) == len(MISTAKES) == 57


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_explained_and_changes_nothing(mistake, clinics, run, monkeypatch):
    monkeypatch.chdir(clinics)
    before = _all_files()
    said = run(*mistake.command)
    assert (said.status, said.out) == (mistake.status, ""), said.err
    # The line before it may tell how far a slow machine has come.
    assert said.err.splitlines()[-1].startswith("anymix: ")
    assert "Traceback" not in said.err
    assert [words for words in mistake.words if words not in said.err] == [], said.err
    assert _all_files() == before


@pytest.mark.parametrize("table", ["semicolons.csv", "latin.csv", "utf16.csv"])
def test_delimiters_and_encodings_of_spreadsheets_are_read(clinics, run, tmp_path, table):
    words = f"--name new --task classification --target ill --features age,dose --rows {table}"
    out = tmp_path / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(clinics)
        said = run("source", "pack", out, *words.split())
    assert said.status == 0, said.err


@pytest.mark.filterwarnings("default")
def test_tables_exchanged_are_warned_of(clinics, run, monkeypatch):
    monkeypatch.chdir(clinics)
    asked = ["certify", "costs", "--target", "cost", "--held-out"]
    said = run(*asked, "north=south_test.csv", "south=north_test.csv")
    assert said.status == 0
    assert "rows of north look more like those of south" in said.err
    assert "rows of south look more like those of north" in said.err
    assert "two names, were mixed up" in said.err
    assert "warning" not in run(*asked, "north=north_test.csv", "south=south_test.csv").err


def test_held_out_may_be_given_once_for_each_source(clinics, run, monkeypatch):
    monkeypatch.chdir(clinics)
    each = ["--held-out", "north=north_test.csv", "--held-out", "south=south_test.csv"]
    said = run("certify", "costs", "--target", "cost", *each)
    assert (said.status, said.err) == (0, "")


def test_scales_that_differ_are_told_by_the_names_of_columns(clinics, run, tmp_path):
    lines = (clinics / "north_train.csv").read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    wide = [f"{1000 * float(age)},{dose},{ill}" for _, age, dose, _, ill, _ in cells]
    (tmp_path / "wide.csv").write_text("\n".join(["pence,dose,ill", *wide]) + "\n")
    asked = ["source", "pack", tmp_path / "new", "--name", "new", "--target", "ill"]
    asked += ["--rows", tmp_path / "wide.csv", "--task", "classification", "--density", "kernels"]
    said = run(*asked)
    assert said.status == 0
    assert "column 'pence' has a much larger scale" in said.err
    assert "choose --density mixture" in said.err
