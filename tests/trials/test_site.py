"""Mistakes that a site makes, and what anymix says to each."""

import os
import shlex
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from anymix import Source
from anymix.densities import GaussianKDE
from anymix.exceptions import InputError
from anymix.exchange import pack_source
from tests.trials.site_world import build

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))


@pytest.fixture(scope="session")
def clinics(tmp_path_factory):
    """A folder with all that the two clinics have, and with all that went wrong."""
    folder, before = tmp_path_factory.mktemp("clinics"), os.getcwd()
    os.chdir(folder)
    try:
        build()
    finally:
        os.chdir(before)
    return folder


def content(folder):
    return {path: path.is_file() and path.read_bytes() for path in Path(folder).rglob("*")}


PACK = "source pack out --name coast --target better --task classification --rows "
OWN = PACK + "coast_train.csv "
ASK = "site evaluate coast hills --site coast --target better --out out --rows "
FIT = "fit coast hills --out out "

# What the case is, what is typed, the exit code, and what the reply must say: cause, then remedy.
COMMANDS = [
    # --- a source folder of one's own
    ("a path for a name", OWN + "--name coast/1", 3, "'coast/1' cannot name a source", "use 1 to"),
    ("no name", OWN + "--name ''", 3, "'' cannot name a source", "begin with a letter or digit"),
    (
        "a target mistyped",
        OWN + "--target beter",
        3,
        "has no column 'beter'; did you mean 'better'? It has 'age'",
        "with --target",
    ),
    (
        "no target named",
        "source pack out --name coast --task classification --rows coast_train.csv",
        3,
        "has no column 'y'",
        "name the label column with --target",
    ),
    (
        "another word for the task",
        OWN + "--task classify",
        2,
        "invalid choice: 'classify'",
        "choose from 'classification', 'regression'",
    ),
    ("a table mistyped", PACK + "coast_trian.csv", 3, "does not exist", "give a table that is"),
    ("a folder for a table", PACK + "coast", 3, "coast is a folder", "give a table"),
    ("a workbook named .csv", PACK + "workbook.csv", 3, "is a workbook", "save it as CSV"),
    ("decimal commas", PACK + "commas.csv", 3, "'dose' holds numbers with commas", "--decimal"),
    ("a header alone", PACK + "header.csv", 3, "has no rows", "give a table with rows"),
    ("an empty file", PACK + "empty.csv", 3, "has no header", "must name the columns"),
    (
        "one label only",
        PACK + "one_label.csv",
        3,
        "holds only the label 'yes'",
        "add rows of another",
    ),
    ("a label left out", PACK + "no_label.csv", 3, "row 5: column 'better' has no", "fill it in"),
    (
        "NaN among targets",
        PACK + "nan_target.csv --task regression",
        3,
        "row 5: column 'better' has no label",
        "fill it in or leave the row out",
    ),
    ("a column twice", PACK + "twice.csv", 3, "2 columns named 'age'", "rename or drop all but"),
    (
        "words as numbers",
        OWN + "--task regression",
        3,
        "holds 'yes', which is not a number",
        "pack with --task classification",
    ),
    (
        "numbers as labels",
        PACK + "numbers.csv",
        3,
        "80 different labels in 80 rows",
        "choose --task regression",
    ),
    ("dates", PACK + "dates.csv", 3, "column 'dose' holds dates", "into numbers"),
    ("three rows", PACK + "three.csv", 3, "has 3 rows", "give 5 or more"),
    (
        "gaps, no reference",
        PACK + "gaps.csv",
        3,
        "has missing values (column 'dose')",
        "needs --reference",
    ),
    (
        "a feature mistyped",
        OWN + "--features age,does",
        3,
        "has no column 'does'",
        "did you mean 'dose'? It has 'age', 'dose', 'better'",
    ),
    (
        "the label as a feature",
        OWN + "--features age,better",
        2,
        "--features and --target both name 'better'",
        "choose one",
    ),
    (
        "training rows held out",
        OWN + "--held-out coast_train.csv",
        3,
        "holds rows of coast_train.csv",
        "that were not used for training",
    ),
    (
        "a folder that exists",
        "source pack coast --name coast --target better --task classification --rows ja.csv",
        3,
        "exists already",
        "choose another name, or replace it with --force",
    ),
    (
        "neighbours hold rows",
        OWN + "--estimator sklearn.neighbors:KNeighborsClassifier",
        3,
        "cannot be packed as a safe graph",
        "or pass an ONNX file with --onnx",
    ),
    # --- a network of one's own
    (
        "a pickle for ONNX",
        OWN + "--onnx weights.pt --classes no yes",
        3,
        "weights.pt is not an ONNX file",
        "torch.onnx.export",
    ),
    ("ONNX without classes", OWN + "--onnx net.onnx", 3, "needs --classes", "order of the"),
    (
        "classes written otherwise",
        OWN + "--onnx net.onnx --classes No Yes",
        3,
        "holds none of the labels in --classes (No, Yes)",
        "write both alike",
    ),
    (
        "a class twice",
        OWN + "--onnx net.onnx --classes no no",
        2,
        "got no, no",
        "two or more different labels",
    ),
    (
        "a class too many",
        OWN + "--onnx net.onnx --classes no yes maybe",
        4,
        "its output has the shape ('n', 2)",
        "a column for each class",
    ),
    (
        "scores for probabilities",
        OWN + "--onnx scores.onnx --classes no yes",
        4,
        "are scores, not probabilities",
        "torch.nn.Softmax(dim=1)",
    ),
    (
        "trained and to train",
        OWN + "--onnx net.onnx --classes no yes --estimator forest",
        2,
        "--onnx takes a trained predictor, and --estimator trains one",
        "leave one out",
    ),
    # --- what all sites agree on
    (
        "a summary as reference",
        OWN + "--reference coast.json",
        4,
        "states that it is 'anymix summary'",
        "give an output of anymix reference join",
    ),
    (
        "a column not agreed on",
        PACK + "wards.csv --reference reference.json",
        3,
        "column 'ward' is not in the reference",
        "leave it out with --drop",
    ),
    (
        "tables to join",
        "reference join coast_train.csv hills_train.csv --out out",
        4,
        "is not plain JSON",
        "give an output of anymix reference summary",
    ),
    (
        "one summary twice",
        "reference join coast.json coast.json --out out",
        3,
        "have the same name",
        "give one of each site",
    ),
    (
        "summaries of other columns",
        "reference join coast.json wards.json --out out",
        3,
        "'coast' has no column 'ward', which 'wards' has",
        "all must agree",
    ),
    # --- folders of strangers
    ("an archive", "source check coast.zip", 4, "coast.zip is not a folder", "unpacked"),
    ("a bit flipped", "source check flipped", 4, "was changed: its SHA-256", "ask for the folder"),
    (
        "what a Mac leaves",
        "source check mac",
        4,
        "holds '.DS_Store', which does not belong there",
        "remove it if your own computer put it there",
    ),
    ("a file lost", "source check cut", 4, "has no density.safetensors", "ask for the whole"),
    # --- a site's own rows
    (
        "a site mistyped",
        ASK + "coast_held.csv --site Coast",
        3,
        "site 'Coast' is unknown",
        "the sources are coast, hills",
    ),
    ("too few rows", ASK + "ten.csv", 3, "10 held-out rows of 'coast' are too few", "at least 20"),
    ("labels in capitals", ASK + "Yes.csv", 3, "has the label 'Yes'", "they know no, yes"),
    (
        "rows to be overwritten",
        "site evaluate coast hills --site coast --rows coast_held.csv --target better "
        "--out coast_held.csv --force",
        3,
        "coast_held.csv is read by this command",
        "choose another output",
    ),
    (
        "columns in another order",
        ASK.replace("hills", "turned") + "coast_held.csv",
        3,
        "turned takes the features ['dose', 'age'], the first source ['age', 'dose']",
        "pack again with --features",
    ),
    (
        "two tasks",
        ASK.replace("hills", "numbers") + "coast_held.csv",
        3,
        "numbers is for regression, the first for classification",
        "give sources of one task",
    ),
    # --- the learner
    (
        "rows for site files",
        FIT + "--from-sites coast_held.csv hills_held.csv",
        4,
        "coast_held.csv is not a site's file",
        "give what anymix site evaluate wrote",
    ),
    ("one site file", FIT + "--from-sites coast.site", 3, "got coast", "coast, hills are needed"),
    (
        "a folder packed anew",
        "fit coast later/hills --from-sites coast.site hills.site --out out",
        3,
        "hills as packed another time",
        "ask it to evaluate these",
    ),
    (
        "percent for a share",
        FIT + "--from-sites coast.site hills.site --confidence 95",
        2,
        "must lie strictly between 0 and 1, but is 95",
        "write 95 % as 0.95",
    ),
    (
        "an address with http",
        "federate coast hills --out out --superlink http://localhost:8000",
        3,
        "the address 'http://localhost:8000' is none",
        "write it as 127.0.0.1:8000",
    ),
]
# What may be meant is done all the same, with a warning.
WARNINGS = [
    (
        "rows of another site",
        ASK + "hills_held.csv",
        "40 of the 40 rows of coast look more like those of hills",
        "were mixed up",
    ),
    (
        "labels in two languages",
        ASK.replace("hills", "ja") + "coast_held.csv",
        "coast and ja have no label in common: no, yes and ja, nein",
        "write them alike in all tables",
    ),
]


@pytest.mark.parametrize(("typed", "code", "cause", "remedy"), [case[1:] for case in COMMANDS],
                         ids=[case[0] for case in COMMANDS])  # fmt: skip
def test_command(clinics, run, monkeypatch, typed, code, cause, remedy):
    monkeypatch.chdir(clinics)
    before = content(".")
    said = run(*shlex.split(typed))
    assert said.status == code
    assert said.err.startswith("anymix: ")
    assert said.err.count("\n") == 1
    assert not said.out
    assert cause in said.err
    assert remedy in said.err
    assert content(".") == before


@pytest.mark.parametrize(("typed", "cause", "remedy"), [case[1:] for case in WARNINGS],
                         ids=[case[0] for case in WARNINGS])  # fmt: skip
@pytest.mark.filterwarnings("default")
def test_warning(clinics, run, monkeypatch, typed, cause, remedy):
    monkeypatch.chdir(clinics)
    said = run(*shlex.split(typed))
    Path("out").unlink()
    assert said.status == 0
    lines = said.err.splitlines()
    assert all(line.startswith("anymix: warning: ") for line in lines)
    assert [cause in line and remedy in line for line in lines].count(True) == 1


def network(width=2):
    torch = pytest.importorskip("torch")
    return torch.nn.Sequential(torch.nn.Linear(2, width))


def source(module=None, name="coast", output="logits", classes=(0, 1), **more):
    density = GaussianKDE(0.4).fit(X)
    module = network() if module is None else module
    return Source.from_torch(
        module, name=name, output=output, classes=classes, density=density, **more
    )


CALLS = [
    ("weights alone", lambda: source(network().state_dict()), "is not a torch.nn.Module", "itself"),
    ("an output of no kind", lambda: source(output="softmax"), "'softmax' is not", "one of logits"),
    (
        "other columns",
        lambda: source().predict_proba(np.c_[X, X], np.array([0, 1])),
        "cannot take 4 columns as rows of the shape (4,)",
        "give the columns that it was trained on",
    ),
    (
        "a file for a pair",
        lambda: pack_source(source(), "out", held_out="coast_held.csv"),
        "held_out must be the pair (X, y)",
        "and no file",
    ),
]


@pytest.mark.parametrize(("call", "cause", "remedy"), [case[1:] for case in CALLS],
                         ids=[case[0] for case in CALLS])  # fmt: skip
def test_call(clinics, monkeypatch, call, cause, remedy):
    monkeypatch.chdir(clinics)
    with pytest.raises(InputError) as refused:
        call()
    assert cause in str(refused.value)
    assert remedy in str(refused.value)
    assert not Path("out").exists()


@pytest.mark.parametrize("table", ["latin.csv", "semicolons.csv"])
def test_delimiters_and_encodings_of_spreadsheets_are_read(clinics, run, tmp_path, table):
    target = "Größe" if table == "latin.csv" else "better"
    words = ["--name", "new", "--task", "classification", "--target", target]
    said = run("source", "pack", tmp_path / "new", *words, "--rows", clinics / table)
    assert said.status == 0, said.err


def test_they_are_many():
    cases = [*COMMANDS, *WARNINGS, *CALLS]
    assert len(cases) == len({case[0] for case in cases}) == 58
