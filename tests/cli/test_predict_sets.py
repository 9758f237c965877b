"""anymix predict --interval and --set: the columns are what the model in the folder says."""

import numpy as np
import pandas as pd
import pytest

from anymix.cli.predict_command import check_columns
from anymix.models import read_model
from tests.cli.organisations import NAMES, draw, label, write_csv
from tests.cli.test_fit_predict import read_csv


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(1)
    drawn = [draw(name, 200, rng) for name in NAMES]
    X, y = (np.concatenate(part) for part in zip(*drawn, strict=True))
    return X, y, np.repeat(NAMES, 200), write_csv(tmp_path / "new.csv", X)


def test_intervals_are_written_beside_predictions(numbers, rows, run, tmp_path):
    X, y, d, table = rows
    out = tmp_path / "p.csv"
    said = run("predict", numbers.model, table, "--out", out, "--interval", ".8", "--weights")
    assert said.status == 0, said.err
    found = read_csv(out)
    assert list(found)[:3] == ["prediction", "lower", "upper"]
    ends = np.array([found["lower"], found["upper"]], dtype=float).T
    expected = read_model(numbers.model).model.predict_interval(X, 1 - 0.8)
    np.testing.assert_allclose(ends, expected, atol=1e-9)
    covered = (ends[:, 0] <= y) & (y <= ends[:, 1])
    assert min(covered[d == name].mean() for name in NAMES) > 0.68


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_sets_are_written_as_words_and_chunks_change_nothing(world, rows, run, tmp_path, suffix):
    X, _, _, table = rows
    out = tmp_path / f"p{suffix}"
    given = ("predict", world.model, table, "--out", out, "--set", ".9", "--novelty")
    said = run(*given, "--chunk-rows", 70)
    assert said.status == 0, said.err
    if suffix != ".csv":
        return
    found = read_csv(out)
    assert list(found) == ["label", "p(no)", "p(yes)", "set", "novelty"]
    expected = read_model(world.model).model.predict_set(X, 1 - 0.9)
    words = {(True, True): "no|yes", (True, False): "no", (False, True): "yes"}
    assert found["set"] == [words[tuple(one)] for one in expected.tolist()]
    assert {"no|yes", "no", "yes"} == set(found["set"])


def test_sets_cover_on_each_organisation(world, rows, run, tmp_path):
    _, y, d, table = rows
    assert (
        run("predict", world.model, table, "--out", tmp_path / "p.csv", "--set", ".9").status == 0
    )
    words = read_csv(tmp_path / "p.csv")["set"]
    covered = np.array([one in word.split("|") for one, word in zip(label(y), words, strict=True)])
    assert min(covered[d == name].mean() for name in NAMES) > 0.82


def test_the_wrong_task_is_refused_in_a_sentence(world, numbers, rows, run, tmp_path):
    cases = (
        (world, "--interval", "predicts labels, which have no interval; use --set"),
        (numbers, "--set", "predicts numbers, which have no set; use --interval"),
    )
    for place, option, reason in cases:
        said = run("predict", place.model, rows[3], "--out", tmp_path / "p.csv", option, ".9")
        assert said.status != 0
        assert reason in said.err
        assert not (tmp_path / "p.csv").exists()
    said = run("predict", world.model, rows[3], "--out", tmp_path / "p.csv", "--set", "90")
    assert "write 90 % as 0.9" in said.err


def test_labels_with_a_bar_and_single_sources_are_refused():
    from types import SimpleNamespace

    from anymix.exceptions import InputError

    args = SimpleNamespace(model="m", novelty=False, interval=None, set=0.9)
    bar = SimpleNamespace(sources_=[1, 2], classes_=np.array(["a|b", "c"]))
    with pytest.raises(InputError, match=r"has the label 'a\|b', and \| separates the labels"):
        check_columns(args, bar)
    with pytest.raises(InputError, match="has one source, so there are no mixtures to cover"):
        check_columns(args, SimpleNamespace(sources_=[1], classes_=np.array(["a"])))
    check_columns(SimpleNamespace(model="m", novelty=False, interval=None, set=None), bar)


@pytest.mark.filterwarnings("default:with alpha")
def test_few_rows_are_warned_of_once(world, rows, run, tmp_path):
    given = ("predict", world.model, rows[3], "--out", tmp_path / "p.csv", "--set", ".999")
    said = run(*given, "--chunk-rows", 100)
    assert said.status == 0
    assert said.err.count("too few rows to refuse one: north (100)") == 1
    assert set(read_csv(tmp_path / "p.csv")["set"]) == {"no|yes"}


def test_the_report_tells_of_sets(world, run, tmp_path):
    said = run("report", world.model, "--out", tmp_path / "r.html")
    assert said.status == 0, said.err
    page = (tmp_path / "r.html").read_text()
    assert 'id="sets"' in page
    assert "mean number of labels" in page
    assert "Sets miss at most 10" in page


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_of_known_source_use_its_model(world, rows, run, tmp_path, suffix):
    X, _, d, plain = rows
    known = np.where(np.arange(len(d)) % 2, d, "")
    table, model = pd.read_csv(plain), read_model(world.model).model
    table["where"] = known
    path, out = tmp_path / f"new{suffix}", tmp_path / "p.csv"
    getattr(table, "to_csv" if suffix == ".csv" else "to_parquet")(path, index=False)
    said = run("predict", world.model, path, "--out", out, "--domain", "where")
    assert said.status == 0, said.err
    found = np.array(read_csv(out)["p(yes)"], dtype=float)
    np.testing.assert_allclose(found, model.predict_proba(X, known)[:, 1], atol=1e-9)
    assert np.abs(found - model.predict_proba(X)[:, 1])[known != ""].max() > 1e-6
    table["where"] = "elsewhere"
    table.to_csv(tmp_path / "wrong.csv", index=False)
    said = run(
        "predict", world.model, tmp_path / "wrong.csv", "--out", out, "--domain", "where", "--force"
    )
    assert said.status == 3
    assert "'elsewhere', not a source;" in said.err
