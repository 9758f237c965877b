"""anymix report: the page is made of the numbers in the folder."""

import json
import re

import numpy as np
import pytest

from anymix.cli.console import Console, Progress
from anymix.estimators.model_summary import reliability
from anymix.models import read_model, summarise_folder
from tests.cli.organisations import NAMES


def test_the_page_and_its_numbers(world, run, tmp_path):
    out = tmp_path / "page.html"
    said = run("report", world.model, "--out", out, "--title", "Claims", "--json")
    assert said.status == 0, said.err
    record = json.loads(said.out)
    assert record["rows"] == [100, 100, 100]
    page = out.read_text()
    assert "<h1>Claims</h1>" in page
    assert all(name in page for name in NAMES)
    model = read_model(world.model).model
    north = model.tables_.sample_domain == 0
    due = np.zeros(3)
    for part in model.combination_.parts:
        q = np.exp(part.log_responsibilities(model.tables_.log_masses[:, north]))
        mixed = q * part.z[:, None] + model.eta / 9
        due += (mixed / mixed.sum(axis=0)).mean(axis=1) / len(model.combination_.parts)
    np.testing.assert_allclose(np.array(record["weights"])[:, 0], due, rtol=1e-9)
    np.testing.assert_allclose(np.sum(record["weights"], axis=0), 1)


def test_saved_records_take_their_place(world, run, tmp_path):
    run("compare", world.model, "--held-out", *world.test, "--save")
    run("monitor", world.model, world.test[0].split("=")[1], "--save")
    found = summarise_folder(world.model)
    with open(f"{world.model}/comparison.json") as file:
        kept = json.load(file)
    assert set(kept) - set(found["comparison"]) == {"model", "date"}
    assert found["comparison"] == {name: kept[name] for name in found["comparison"]}
    assert found["recorded"] == dict.fromkeys(found["recorded"], kept["date"])
    assert {"comparison", "traffic"} <= set(found["recorded"])
    assert found["traffic"]["source_names"] == list(NAMES)


def test_new_rows_by_command_bring_a_verdict(world, run):
    assert run("compare", world.model, "--held-out", *world.test, "--save").status == 0
    found = summarise_folder(world.model)
    assert found["recorded"]["verdict"] == found["recorded"]["comparison"]
    one = found["verdict"][-1]
    ours = found["comparison"]["methods"].index("anymix")
    assert one["loss"] == pytest.approx(found["comparison"]["loss"][ours])
    assert one["fresh"]


def test_reliability_in_one_bin():
    log_r = np.log([[0.8, 0.8, 0.8, 0.8], [0.2, 0.2, 0.2, 0.2]])
    (bin_,) = reliability(log_r, np.array([0, 0, 0, 1]))
    # each source counts one half, however many rows it has
    assert bin_ == pytest.approx({"confidence": 0.8, "accuracy": 0.5, "share": 1.0})


def test_progress_waits_two_seconds_and_then_tells_the_time_left(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("anymix.cli.console.time.monotonic", lambda: now[0])
    progress = Progress("predicting")
    for second, share in ((1, 0.1), (3, 0.25), (4, 0.3), (14, 0.7)):
        now[0] = 100.0 + second
        progress.update(share)
    assert capsys.readouterr().err.splitlines() == [
        "predicting: 25 %, 9 s left",
        "predicting: 70 %, 6 s left",
    ]
    assert progress.done() == 14


def test_quiet_and_json(capsys):
    Console(quiet=True).result("text", {"a": 1})
    assert capsys.readouterr() == ("", "")
    Console(as_json=True).result("text", {"a": np.array([1.0, np.nan])})
    assert json.loads(capsys.readouterr().out) == {"a": [1.0, None]}


def test_a_terminal_sees_one_moving_line(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    progress = Progress("fitting")
    progress.next_word = 0.0
    progress.update(0.5)
    progress.done()
    assert re.fullmatch(r"\rfitting: 50 %, \d+ s left +\r +\r", capsys.readouterr().err)
