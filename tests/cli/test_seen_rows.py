"""Rows that z was learned from are no new rows, however they are handed in."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

import anymix
from anymix.models.site_models import _are_seen
from tests.cli.organisations import NAMES


@pytest.fixture(params=["world", "numbers"])
def either(request):
    return request.getfixturevalue(request.param)


def test_a_certificate_on_the_rows_of_fit_says_so(either, run):
    said = run("certify", either.model, "--held-out", *either.held, "--loss-bound", "1e6")
    assert "Measured, not guaranteed" in said.out
    assert "The model was trained on the rows of north, south, west: give rows" in said.out
    found = json.loads(run("certify", either.model, "--held-out", *either.held, "--json").out)
    assert found["confidence"] is found["loss_upper"] is found["regret_upper"] is None
    assert found["seen"] == ["north", "south", "west"]
    said = run("compare", either.model, "--held-out", *either.held)
    assert "are those that z was learned from" in said.out


def test_new_rows_are_new(either, run):
    for command in ("certify", "compare"):
        said = run(command, either.model, "--held-out", *either.test)
        assert "learned from" not in said.out
        assert "have taught" not in said.out


def test_other_order_part_of_the_rows_and_one_source_alone(world, run, tmp_path):
    with open(world.held[0].split("=")[1], newline="") as file:
        head, *rows = csv.reader(file)
    with open(world.test[0].split("=")[1], newline="") as file:
        _, *new = csv.reader(file)
    with open(tmp_path / "turned.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *rows[:20][::-1], *new[:20]])
    given = [f"north={tmp_path / 'turned.csv'}", *world.test[1:]]
    said = run("certify", world.model, "--held-out", *given)
    assert "The model was trained on the rows of north: give rows" in said.out
    model = anymix.load(world.model)
    X = np.array([row[:-1] for row in [*rows[:20], *new[:20]]], dtype=float)
    y = np.array([row[-1] for row in [*rows[:20], *new[:20]]])
    tables = model.evaluate(X, y.astype(model.classes_.dtype), ["north"] * 40)
    assert model.seen_among(tables, X) == ["north"]


def test_files_of_sites_are_compared_too(world, run, tmp_path):
    sites = []
    for name, held in zip(NAMES, world.held, strict=True):
        sites.append(tmp_path / f"{name}.site")
        rows = ["--site", name, "--rows", held.split("=")[1], "--out", sites[-1]]
        run("site", "evaluate", *world.sources, *rows, "--responsibilities-only")
    said = run("certify", world.model, "--from-sites", *sites)
    assert "The model was trained on the rows of north, south, west: give rows" in said.out


def test_twins_by_chance_do_not_count():
    old = Counter({b"u": 40, b"v": 60})
    assert not _are_seen(Counter({b"u": 45, b"v": 55}), old)
    assert _are_seen(Counter({b"u": 40, b"v": 60}), old)


def test_rows_that_a_model_was_trained_on_are_warned_of_in_every_command(run, tmp_path):
    """The manifest states what a forest loses on held-out rows; on its own it loses far less."""
    rng = np.random.default_rng(0)
    paths = {}
    for name, shift in (("north", -1.0), ("south", 1.0)):
        for part in ("train", "held", "test"):
            X = rng.normal(shift, 1.0, size=(200, 2))
            y = np.where(X.sum(axis=1) + rng.normal(0, 2, 200) > 2 * shift, "yes", "no")
            paths[name, part] = tmp_path / f"{name}-{part}.csv"
            with open(paths[name, part], "w", newline="") as file:
                csv.writer(file).writerows([["a", "b", "y"], *np.column_stack([X, y]).tolist()])
        rows = ["--rows", paths[name, "train"], "--held-out", paths[name, "held"]]
        model = ["--task", "classification", "--estimator", "forest", "--reveals-rows"]
        run("source", "pack", tmp_path / name, "--name", name, *rows, *model)
    sources = [tmp_path / "north", tmp_path / "south"]
    trained = ["--held-out", *(f"{name}={paths[name, 'train']}" for name in ("north", "south"))]
    held = ["--held-out", *(f"{name}={paths[name, 'held']}" for name in ("north", "south"))]
    warned = "the rows of north look like rows that its model was trained on"
    assert warned in run("fit", *sources, *trained, "--out", tmp_path / "bad").err
    assert warned not in run("fit", *sources, *held, "--out", tmp_path / "model").err
    for command in ("certify", "compare"):
        assert warned in run(command, tmp_path / "model", *trained).err
    test = [f"{name}={paths[name, 'test']}" for name in ("north", "south")]
    assert warned not in run("certify", tmp_path / "model", "--held-out", *test).err
    rows = ["--site", "north", "--rows", paths["north", "train"], "--out", tmp_path / "site"]
    assert warned in run("site", "evaluate", *sources, *rows).err
