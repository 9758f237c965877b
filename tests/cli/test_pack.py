"""source pack: faults of options and tables are said before training, with cause and remedy."""

import json
from argparse import Namespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import SVC

from anymix import Source
from anymix.cli.packing import likelier_density, make_estimator
from anymix.cli.training_table import TrainingTable
from anymix.densities import GaussianKDE
from anymix.estimators import choose_estimator
from anymix.exchange import pack_source
from anymix.tables import Column, Columns, TableColumns, read_rows

GOOD = "a,b,y\n" + "1,2,yes\n3,4,no\n2,2,yes\n5,4,no\n" * 10


@pytest.fixture
def pack(run, tmp_path):
    """Pack a table that is written as text."""

    def call(text, *options, task="classification", name="north"):
        (tmp_path / "rows.csv").write_text(text)
        words = ["source", "pack", tmp_path / "out", "--name", name, "--task", task]
        return run(*words, "--rows", tmp_path / "rows.csv", *options)

    return call


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (",a,y\n0,1,yes\n1,2,no\n", "column 1 has no name; name it, or leave it out (in pandas"),
        ("a,a,y\n0,1,yes\n1,2,no\n", "has 2 columns named 'a'; rename or drop all but one"),
        ("a,\x07,y\n0,1,yes\n1,2,no\n", "the name of column 2 is longer than 200 characters or"),
        ("a,b,y\n0,1,yes\n1,2,\n", "row 2: column 'y' has no label; fill it in or leave the row"),
        ("a,b,y\n0,1,yes\n1,2, \n", "row 2: column 'y' has no label"),
        ("a,b,y\n0,1,yes\n1,2,n\x07\n", "row 2: column 'y' holds a label of over 200"),
        (
            "a,b,y\n0,,yes\n1,2,no\n",
            "has missing values (column 'b'), so it needs --reference FILE",
        ),
        (
            "a,b,ill\n0,1,yes\n",
            "has no column 'y'; it has 'a', 'b', 'ill'; name the label column",
        ),
        ("y\nyes\nno\n", "has only the column 'y'; a source needs features"),
        ("a,b,y\n0,1,yes\n1,2,yes\n", "column 'y' holds only the label 'yes'"),
    ],
)
def test_faults_of_the_table_name_the_table(pack, tmp_path, text, words):
    said = pack(text)
    assert said.status == 3
    assert words in said.err
    assert str(tmp_path / "rows.csv") in said.err
    assert "manifest" not in said.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "t.csv",
            b"a,\x81,y\n1,2,3\n",
            "the header is not UTF-8, nor Latin-1 as a whole; save the table as UTF-8",
        ),
        ("t.parquet", b"no", "is not a Parquet file"),
        ("t.npz", b"", "must hold a plain array X"),
        ("t.npz", b"\x93NUMPY", "must hold a plain array X"),
        ("t.npz", b"PK\x03\x04 cut", "must hold a plain array X"),
    ],
)
def test_files_that_are_no_tables(run, tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    command = ["source", "pack", tmp_path / "out", "--name", "n", "--task", "classification"]
    said = run(*command, "--rows", tmp_path / name)
    assert said.status == 3
    assert words in said.err
    assert str(tmp_path / name) in said.err


def test_one_array_is_no_archive_of_arrays(run, tmp_path):
    with open(tmp_path / "t.npz", "wb") as file:
        np.save(file, np.ones((3, 2)))
    command = ["source", "pack", tmp_path / "out", "--name", "n", "--task", "classification"]
    assert "must hold a plain array X" in run(*command, "--rows", tmp_path / "t.npz").err
    with pytest.raises(ValueError, match="must hold a plain array X"):
        read_rows(tmp_path / "t.npz", TableColumns(("a", "b"), "y"))


def test_a_label_that_parquet_lacks(run, tmp_path):
    table = pa.table({"a": [1.0, 2.0], "y": ["yes", None]})
    pq.write_table(table, tmp_path / "t.parquet")
    words = ["source", "pack", tmp_path / "out", "--name", "n", "--task", "classification"]
    said = run(*words, "--rows", tmp_path / "t.parquet")
    assert "row 2: column 'y' has no label; fill it in or leave the row out" in said.err


@pytest.mark.parametrize(
    "name", ["", "a/b", "-a", "x" * 65, "s\u202eüd", "a=b", "\u3164", "ü" * 65]
)
def test_a_name_that_no_source_can_have(pack, name):
    said = pack(GOOD, f"--name={name}")
    assert "cannot name a source; use 1 to 64 letters" in said.err


def test_pack_tells_the_features_and_takes_no_name_twice(pack, tmp_path):
    said = pack(GOOD)
    assert said.status == 0, said.err
    assert "40 rows; features 2 of float32: a, b" in said.out
    assert f"{tmp_path / 'out'} exists already" in pack(GOOD).err


def test_a_label_that_only_the_held_out_rows_have(pack, tmp_path):
    held = tmp_path / "held.csv"
    held.write_text("a,b,y\n1,2,yes\n3,3,maybe\n")
    said = pack(GOOD, "--held-out", held)
    assert f"{held}, row 2: column 'y' holds 'maybe', which no row of" in said.err
    assert "leave such rows out of --held-out" in said.err
    whole = GOOD.replace("yes", "1").replace("no", "0")
    held.write_text("a,b,y\n1,2,1\n3,3,other\n")
    assert "row 2: column 'y' holds 'other'" in pack(whole, "--held-out", held).err
    # labels of one kind are compared as such: '1' among words is a word
    held.write_text("a,b,y\n1,2,1\n3,3,1\n")
    said = pack(GOOD.replace("yes", "1"), "--held-out", held, "--json")
    assert said.status == 0, said.err
    assert json.loads(said.out)["own_loss"]["n_rows"] == 2


def test_classes_go_with_onnx(pack, tmp_path):
    assert "so leave --classes out" in pack(GOOD, "--classes", "yes", "no").err
    onnx = ["--onnx", tmp_path / "m.onnx"]
    assert "needs --classes" in pack(GOOD, *onnx).err
    whole = GOOD.replace("yes", "1").replace("no", "0")
    assert "both must use the same labels" in pack(whole, *onnx, "--classes", "no", "yes").err


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        ("sklearn.neighbors:KNeighborsClassifier", "KNeighborsClassifier cannot be packed as a"),
        ("sklearn.svm:SVC", "has no predict_proba, which classification needs"),
        ("sklearn.linear_model:Ridge", "is not a scikit-learn classifier"),
        ("sklearn.cluster:KMeans", "is not a scikit-learn classifier"),
        ("collections:OrderedDict", "is not a scikit-learn classifier"),
    ],
)
def test_estimators_that_cannot_be_packed(pack, estimator, words):
    said = pack(GOOD, "--estimator", estimator)
    assert words in said.err
    assert "with --onnx" in said.err or "another --task" in said.err
    assert "array(" not in said.err
    assert "trusted" not in said.err
    assert len(said.err) < 350


def test_a_regression_needs_a_regressor(pack):
    text = "a,y\n" + "1,2\n2,3\n3,5\n" * 10
    estimator = ["--estimator", "sklearn.linear_model:LogisticRegression"]
    assert "is not a scikit-learn regressor" in pack(text, *estimator, task="regression").err


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(), "it gives no probabilities"),
        (LinearDiscriminantAnalysis(), "its ONNX form differs from the estimator at"),
    ],
)
def test_the_library_says_the_same(tmp_path, model, words):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model.fit(X, X[:, 0] + X[:, 1] ** 2 > 0.5)
    with pytest.raises(ValueError, match=f"safe graph .{words}.*, or pass an ONNX file"):
        pack_source(Source("a", model, GaussianKDE(0.5).fit(X)), tmp_path / "a")


def numbers_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    rows = zip(X[:, 0], X[:, 1], np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), strict=True)
    return "a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows)


def test_support_vectors_are_rows_and_refused_unless_allowed(pack, tmp_path):
    options = ["--estimator", "sklearn.svm:SVR"]
    said = pack(numbers_table(), *options, task="regression")
    assert said.status == 4
    assert "training rows as they are; train a linear model or a forest" in said.err
    assert not (tmp_path / "out").exists()
    said = pack(numbers_table(), *options, "--reveals-rows", task="regression")
    assert said.status == 0, said.err
    assert "Compared with 60 training rows: " in said.out
    assert "stand in the predictor as they are, none in the density" in said.out


@pytest.mark.parametrize("options", [["--estimator", "forest"], ["--density", "mixture"], []])
def test_what_the_command_trains_by_default_holds_no_row(pack, options):
    said = pack(numbers_table(), *options, task="regression")
    assert said.status == 0, said.err
    assert (
        "none stands in the predictor as it is, none in the density; of their targets" in said.out
    )


def test_rows_are_kept_on_demand(pack):
    said = pack(numbers_table(), "--keep-rows", task="regression")
    assert said.status == 0, said.err
    assert "60 training rows, exactly as they are." in said.out
    assert "none stands in the predictor as it is, 60 in the density" in said.out


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("words", [False, True])
def test_the_command_trains_what_fit_trains(task, words):
    rng = np.random.default_rng(0)
    coding = Columns((Column("a"), Column("b", ("x", "y")))) if words else None
    X = np.column_stack([rng.normal(size=90), rng.integers(0, 2, 90)])
    y = X.sum(axis=1) + rng.normal(size=90)
    y = y if task == "regression" else (y > 0.5).astype(str)
    args = Namespace(task=task, estimator="auto", seed=3)
    made, choice = make_estimator(args, TrainingTable(X, y, ["a", "b"], coding))
    classifies = task == "classification"
    due = choose_estimator(X, y, classification=classifies, columns=coding, random_state=3)
    assert repr(made) == repr(due[0])
    assert str(choice) == str(due[1])


def test_the_density_under_which_rows_are_likelier():
    rng = np.random.default_rng(0)
    ring = rng.uniform(0, 2 * np.pi, 600)
    assert likelier_density(rng.normal(size=(300, 4)), 0) == "mixture"
    assert likelier_density(np.column_stack([np.cos(9 * ring), ring, ring**2 % 1]), 0) == "kernels"
