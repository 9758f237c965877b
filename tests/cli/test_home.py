"""All rows train: a site evaluates its own source by fold models that it keeps at home."""

import json
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from anymix.cli.packing import home_table, make_estimator
from anymix.cli.training_table import TrainingTable
from anymix.core import FOLD_MODELS
from anymix.densities import GaussianKDE
from anymix.exchange import HomeTable, home_folds, read_home, read_site, read_sources
from tests.cli.mixed_world import NAMES, rows_of, write

TARGET = ["--target", "ill"]


@pytest.fixture(scope="module")
def clinics(tmp_path_factory):
    """Two clinics that have packed all of their rows, each with a file that it keeps at home."""
    from anymix.cli import main

    folder, rng = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    for name in NAMES:
        write(folder / f"{name}.csv", rows_of(name, 240, rng))
        write(folder / f"{name}_new.csv", rows_of(name, 240, rng))
        words = [f"{folder}/{name}.csv", "--name", name, *TARGET, "--out", f"{folder}/{name}.json"]
        assert main(["reference", "summary", *words, "--quiet"]) == 0
    summaries = [f"{folder}/{name}.json" for name in NAMES]
    reference = f"{folder}/reference.json"
    assert main(["reference", "join", *summaries, "--out", reference, "--quiet"]) == 0
    for name in NAMES:
        words = ["--name", name, "--rows", f"{folder}/{name}.csv", "--reference", reference]
        words += ["--home", f"{folder}/{name}.home", "--task", "classification", "--quiet"]
        words += ["--estimator", "boosted"]  # which lose far less on rows that they have seen
        assert main(["source", "pack", f"{folder}/{name}", *words, *TARGET]) == 0
    return folder


def evaluate(clinics, run, name, out, *options):
    sources = [clinics / name for name in NAMES]
    rows = ["--rows", clinics / f"{name}.csv", *TARGET]
    return run("site", "evaluate", *sources, "--site", name, *rows, "--out", out, *options)


def fitted(clinics, run, folder, *options):
    files = []
    for name in NAMES:
        files.append(folder / f"{name}.site")
        home = ["--home", clinics / f"{name}.home"]
        said = evaluate(clinics, run, name, files[-1], *home, *options)
        assert said.status == 0, said.err
    sources = [clinics / name for name in NAMES]
    return run("fit", *sources, "--from-sites", *files, "--out", folder / "m"), files


def test_all_rows_train_and_all_rows_judge(clinics, run, tmp_path):
    said, files = fitted(clinics, run, tmp_path)
    assert said.status == 0, said.err
    assert "the deployed models are trained on all rows" in said.out
    assert [read_site(path).n_rows for path in files] == [240, 240]
    assert all(read_site(path).cross_fitted for path in files)
    manifest = json.loads((clinics / "east" / "manifest.json").read_text())
    assert manifest["own_loss"]["n_rows"] == 240
    for command in ("certify", "compare"):
        held = [f"{name}={clinics}/{name}_new.csv" for name in NAMES]
        said = run(command, tmp_path / "m", "--held-out", *held, *TARGET)
        assert said.status == 0, said.err


def test_the_certificate_says_so_after_a_load(clinics, run, tmp_path):
    import anymix

    fitted(clinics, run, tmp_path, "--exact")
    for verify in (False, True):
        model = anymix.load(tmp_path / "m", verify=verify)
        assert model.certificate_.covers == FOLD_MODELS


def test_fold_models_have_not_seen_the_rows(clinics, run, tmp_path):
    """Without the file the model at home has seen them, which a warning says."""
    said = evaluate(clinics, run, "east", tmp_path / "x", "--exact")
    assert "the rows of east look like rows that its model was trained on" in said.err
    said = evaluate(
        clinics, run, "east", tmp_path / "x", "--exact", "--home", clinics / "east.home"
    )
    assert said.status == 0, said.err
    site = read_site(tmp_path / "x")
    manifest = json.loads((clinics / "east" / "manifest.json").read_text())
    loss = -np.log(site.outcomes[0, :, 0]).mean()
    assert loss == pytest.approx(manifest["own_loss"]["value"], rel=1e-6)


@pytest.mark.parametrize("others", [False, True])
def test_fold_models_are_those_of_cross_validation(others):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    y = X @ [1.0, 2.0, 0.0] + np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=90)
    table = TrainingTable(X, y, ["a", "b", "c"])
    estimator, _ = make_estimator(Namespace(task="regression", estimator="linear", seed=0), table)
    outer = [Namespace(source=Namespace(predict=lambda X: np.sin(3 * X[:, 0])))] if others else []
    home = home_table(estimator, GaussianKDE(0.5), table, outer, seed=4)
    fold = home_folds(X, y, classification=False, seed=4)
    if not others:
        due = cross_val_predict(estimator, X, y, cv=PredefinedSplit(fold))
        np.testing.assert_allclose(home.predictions, due, rtol=1e-9)
    else:
        alone = home_table(estimator, GaussianKDE(0.5), table, seed=4)
        assert home.own_loss(y).value < 0.5 * alone.own_loss(y).value
    rest, held = fold != 2, fold == 2
    scores = GaussianKDE(0.5).fit(X[rest]).shareable().score_samples(X[held])
    np.testing.assert_allclose(home.log_density[held], scores, rtol=1e-9)


def test_what_does_not_fit_is_refused(clinics, run, tmp_path):
    home = ["--home", clinics / "east.home"]
    said = evaluate(clinics, run, "west", tmp_path / "x", *home)
    assert "was written for this source as it was packed another time" in said.err
    lines = (clinics / "east.csv").read_text().splitlines()
    for changed in ([lines[0], *lines[:0:-1]], lines[:-1]):
        (tmp_path / "t.csv").write_text("\n".join(changed) + "\n")
        sources = [clinics / name for name in NAMES]
        said = run("site", "evaluate", *sources, "--site", "east", "--rows", tmp_path / "t.csv",
                   *TARGET, "--out", tmp_path / "x", *home)  # fmt: skip
        assert "is of other rows, or of rows in another order" in said.err
    assert (
        "does not exist; give what"
        in evaluate(clinics, run, "east", tmp_path / "x", "--home", tmp_path / "none").err
    )
    said = evaluate(clinics, run, "east", tmp_path / "x", "--home", clinics / "east.json")
    assert said.status == 4
    assert not (tmp_path / "x").exists()


def test_packing_again_needs_force(clinics, run, tmp_path):
    pack = ["--name", "east", "--rows", clinics / "east.csv", *TARGET, "--task", "classification",
            "--reference", clinics / "reference.json", "--home", tmp_path / "h"]  # fmt: skip
    assert run("source", "pack", tmp_path / "s", *pack).status == 0
    assert "replace it with --force" in run("source", "pack", tmp_path / "s", *pack).err
    said = run("source", "pack", tmp_path / "s", *pack, "--force", "--seed", "3")
    assert said.status == 0, said.err
    assert "h; keep it at the site, as it reveals single rows" in said.out
    (received,) = read_sources([str(tmp_path / "s")])
    assert read_home(tmp_path / "h").fingerprint == received.sha256
    (tmp_path / "s" / "mine.txt").write_text("mine")
    said = run("source", "pack", tmp_path / "s", *pack, "--force")
    assert "is not a source folder of this command" in said.err
    assert (tmp_path / "s" / "mine.txt").read_text() == "mine"


@settings(max_examples=40, deadline=None)
@given(st.integers(40, 150), st.integers(2, 4), st.integers(0, 9))
def test_folds_are_even_and_keep_copies_together(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), np.arange(n) % n_classes
    X, y = np.concatenate([X, X[:15]]), np.concatenate([y, y[:15]])
    fold = home_folds(X, y, classification=True, seed=seed)
    np.testing.assert_array_equal(fold[n:], fold[:15])
    for label in range(n_classes):
        sizes = np.bincount(fold[:n][y[:n] == label], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert (fold == home_folds(X, y, classification=True, seed=seed)).all()


def test_a_label_of_one_row_cannot_be_cross_fitted():
    with pytest.raises(ValueError, match="the label 'b' stands in one row"):
        home_folds(np.arange(6.0)[:, None], ["a"] * 5 + ["b"], classification=True)


def test_the_file_is_what_was_written(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.array(["no", "yes"] * 15)
    even = Namespace(predict_proba=lambda X: np.full((len(X), 2), 0.5), classes_=["no", "yes"])
    fold = home_folds(X, y, classification=True)
    models = lambda rest: (even, GaussianKDE(1.0).fit(X[rest]))  # noqa: E731
    table = HomeTable.of(models, X, y, fold, ["no", "yes"])
    replace(table, fingerprint="a" * 64).write(tmp_path / "h")
    read = read_home(tmp_path / "h")
    assert (read.fingerprint, read.rows, read.classes) == ("a" * 64, table.rows, ["no", "yes"])
    np.testing.assert_array_equal(read.predictions, table.predictions)
    np.testing.assert_array_equal(read.log_density, table.log_density)
    assert table.own_loss(y).value == pytest.approx(np.log(2))
