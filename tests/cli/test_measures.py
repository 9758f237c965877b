"""--measure in compare, certify and report: numbers, units, refusals before anything is read."""

import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import anymix
from anymix.models import summarise_folder
from tests.report.report_cases import Page


def refused(run, *arguments, code=2):
    said = run(*arguments)
    assert said.status == code
    return said.err


@pytest.fixture
def model(world, tmp_path):
    return shutil.copytree(world.model, tmp_path / "model")


def rows_of(tables):
    found = []
    for one in tables:
        name, path = one.split("=")
        data = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
        found.append((name, np.stack([data["a"], data["b"]], 1), data["y"]))
    return found


def test_areas_are_those_of_the_model(world, run):
    given = ["compare", world.model, "--held-out", *world.test, "--measure", "auc"]
    record = json.loads(run(*given, "--json").out)
    model, ours = anymix.load(world.model), record["methods"].index("anymix")
    for t, (_, X, y) in enumerate(rows_of(world.test)):
        due = roc_auc_score(y == "yes", model.predict_proba(X)[:, 1])
        assert record["loss"][ours][t] == pytest.approx(due, abs=1e-6)
    assert record["unit"] == "area under the ROC curve"
    said = run(*given).out
    assert "(area under the ROC curve, higher is better; [ ]: 95 % intervals)" in said
    assert "nothing is guaranteed of it" in said


@pytest.mark.parametrize(
    ("measure", "unit"),
    [
        (None, "cross-entropy in nats"),
        ("error_rate", "error rate"),
        ("brier", "Brier score, 0 to 2"),
        ("log_loss", "cross-entropy in nats"),
    ],
)
def test_every_table_says_its_unit(world, run, measure, unit):
    asked = [] if measure is None else ["--measure", measure]
    assert f"({unit}, smaller" in run("compare", world.model, "--held-out", *world.test, *asked).out
    said = run("certify", world.model, "--held-out", *world.test, *asked).out
    assert f"in absolute terms ({unit}" in said


def test_numbers_have_errors_in_their_unit(numbers, run):
    for measure, unit in (("mae", "absolute error"), ("rmse", "root of the mean squared error")):
        said = run("compare", numbers.model, "--held-out", *numbers.test, "--measure", measure).out
        assert f"({unit} in units of the target, smaller is better" in said


def test_a_model_of_pooled_rows_is_compared_with(world, numbers, run):
    for each in (world, numbers):
        given = ["--held-out", *each.test, "--pooled"]
        tables = [pair.partition("=")[2] for pair in each.held]
        said = run("compare", each.model, *given, *tables).out
        assert "pooled*" in said
        assert "paired intervals" in said
        assert "leave --save" in run("compare", each.model, *given, *tables, "--save").err


@pytest.mark.parametrize("command", ["compare", "certify", "report"])
def test_an_unknown_measure_is_refused_before_anything_is_read(run, command):
    said = refused(run, command, "nowhere", "--measure", "acuracy")
    assert "did you mean 'accuracy'" in said
    assert "nowhere" not in said


@pytest.mark.parametrize(
    ("measure", "words"), [("auc", "none is certified"), ("rmse", "certify 'mse'")]
)
def test_what_is_no_mean_is_not_certified(run, measure, words):
    assert words in refused(run, "certify", "nowhere", "--held-out", "a=b", "--measure", measure)


def test_a_measure_of_numbers_does_not_fit_labels(world, run):
    given = ["--held-out", *world.test, "--measure", "mae"]
    assert "does not fit labels" in refused(run, "compare", world.model, *given)


@pytest.mark.parametrize("measure", ["auc", "accuracy", "brier"])
def test_what_compare_has_kept_is_on_the_page(model, world, run, tmp_path, measure):
    given = ["--held-out", *world.test, "--measure", measure, "--save", "--json"]
    record = json.loads(run("compare", model, *given).out)
    page = tmp_path / "page.html"
    run("report", model, "--out", page)
    part = Page(page.read_text("utf-8"))
    lead = part.find("p", "comparison")[0]["text"]
    assert record["unit"] in lead
    assert ("the highest is bold" in lead) == (measure in ("auc", "accuracy"))
    shown = summarise_folder(model)["comparison"]
    assert shown["loss"] == pytest.approx(np.array(record["loss"]))


def test_a_certificate_of_another_measure_is_kept_and_shown(model, world, run, tmp_path):
    given = ["--held-out", *world.test, "--measure", "accuracy", "--save", "--json"]
    record = json.loads(run("certify", model, *given).out)
    run("report", model, "--out", tmp_path / "page.html")
    assert summarise_folder(model)["certificate"]["robust_loss"] == record["robust_loss"]


def test_the_rows_of_fit_are_judged_by_the_measure_of_the_report(model, run, tmp_path):
    page = tmp_path / "page.html"
    run("report", model, "--out", page, "--measure", "brier")
    assert "Brier score, 0 to 2" in Page(page.read_text("utf-8")).find("p", "comparison")[0]["text"]
    shown = summarise_folder(model, measure="brier")
    assert shown["comparison"]["measure"] == "brier"
    assert shown["verdict"][0]["measure"] == "brier"
    told = shown["comparison"]["loss"][shown["comparison"]["methods"].index("anymix")]
    assert shown["verdict"][0]["loss"] == pytest.approx(told)
    asked = ["report", model, "--out", page, "--force", "--measure", "auc"]
    assert "--measure auc --save" in refused(run, *asked, code=3)


def test_subpopulations_are_bounded_on_new_rows_and_on_those_of_fit(model, world, run, tmp_path):
    asked = ["--subpopulation", "0.5", "--measure", "accuracy", "--save", "--json"]
    record = json.loads(run("certify", model, "--held-out", *world.test, *asked).out)
    assert record["subpopulation"] == 0.5
    assert record["subpopulation_upper"] == pytest.approx(min(1.0, 2 * record["loss_upper"]))
    run("report", model, "--out", tmp_path / "page.html")
    assert "any 50 % of any mixture" in (tmp_path / "page.html").read_text("utf-8")
    fitted = json.loads(run("certify", model, "--subpopulation", "0.5", "--json").out)
    assert fitted["subpopulation"] == 0.5
