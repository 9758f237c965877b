"""anymix monitor says what today's traffic costs, keeps it, and the page shows it."""

import json
import shutil

import numpy as np
import pytest

from tests.cli.organisations import draw, write_csv


@pytest.fixture
def model(world, tmp_path):
    return shutil.copytree(world.model, tmp_path / "model")


def traffic(folder, far=0.0):
    rng = np.random.default_rng(5)
    X = np.concatenate([draw("north", 150, rng)[0], draw("south", 50, rng)[0]])
    return write_csv(folder / "traffic.csv", X + far)


def test_the_cost_of_the_traffic_is_printed_kept_and_shown(model, run, tmp_path):
    table = traffic(tmp_path)
    said = run("monitor", model, table)
    mixture, cost = said.out.strip().split("\n")
    assert "each range by itself with 95 % confidence" in mixture
    assert cost.startswith("Without labels: the cross-entropy loss on these 200 rows is about ")
    found = json.loads(run("monitor", model, table, "--save", "--json").out)
    lost = found["expected_loss"]
    assert lost["sentence"] == cost
    assert lost["value"] == pytest.approx(
        np.dot(found["estimate"]["mixture"], lost["source_losses"])
    )
    assert run("report", model, "--out", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert cost.split(" (")[0].removeprefix("Without labels: ") in page


def test_of_strange_rows_no_cost_is_promised(model, run, tmp_path):
    said = run("monitor", model, traffic(tmp_path, far=9.0))
    assert said.status == 1
    assert "Do not trust an expected loss here" in said.out
    assert "Without labels" not in said.out


def test_new_rows_of_each_source_are_a_reference_too(model, world, run, tmp_path):
    rows = ["--reference", *world.test, "--target", "y"]
    table = traffic(tmp_path)
    found = json.loads(run("monitor", model, table, *rows, "--look", "3", "--json").out)
    assert not found["alarm"]["rings"]
    assert found["alarm"]["tested"]
    assert found["alarm"]["look"] == 3
    assert found["expected_loss"]["n_reference"] > 0
    assert "look 3; 1 % is the chance that any look" in found["sentence"]
    strange = run("monitor", model, traffic(tmp_path, far=9.0), *rows[:-2], "--look", "3")
    assert strange.status == 1
    assert "are more unusual than every held-out row" in strange.out
    refused = run("monitor", model, table, "--reference", world.test[0])
    assert "--reference takes rows of north, south" in refused.err
    assert "--target is for the rows of --reference" in run("monitor", model, table, *rows[-2:]).err
