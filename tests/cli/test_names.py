"""Sources with names in other scripts, from their tables to the report."""

import csv
import unicodedata

import numpy as np
import onnxruntime
import pytest

from anymix import load
from anymix.exchange import read_site
from tests.cli.organisations import draw, label, write_csv

NAMES = {"Klinik München": "north", "北京": "south"}
MUNICH, BEIJING = NAMES
TYPED = unicodedata.normalize("NFD", MUNICH)  # as some keyboards and disks have it


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    found = {}
    for name, kind in NAMES.items():
        for part in ("train", "held"):
            X, y = draw(kind, 120, rng)
            found[name, part] = write_csv(tmp_path / f"{name} {part}.csv", X, label(y))
    return found


@pytest.fixture
def packed(run, tables, tmp_path):
    for name, given in ((MUNICH, TYPED), (BEIJING, BEIJING)):
        words = ["--name", given, "--task", "classification", "--rows", tables[name, "train"]]
        said = run("source", "pack", tmp_path / name, *words)
        assert said.status == 0, said
    return [tmp_path / name for name in NAMES]


def test_the_whole_story(run, tables, packed, tmp_path):
    model = tmp_path / "model"
    held = [f"{TYPED}={tables[MUNICH, 'held']}", f"{BEIJING}={tables[BEIJING, 'held']}"]
    said = run("fit", *packed, "--held-out", *held, "--out", model)
    assert said.status == 0, said
    assert f"z: {MUNICH}" in said.out
    assert list(load(model).source_names_) == list(NAMES)
    assert run("compare", model, "--held-out", *held, "--save").status == 0
    said = run("predict", model, tables[MUNICH, "held"], "--weights", "--out", tmp_path / "p.csv")
    assert said.status == 0
    with open(tmp_path / "p.csv", newline="", encoding="utf-8") as file:
        assert next(csv.reader(file))[-2:] == [f"weight({name})" for name in NAMES]
    assert run("report", model, "--out", tmp_path / "r.html").status == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert all(name in page for name in NAMES)
    assert run("export", model, tmp_path / "g.onnx").status == 0
    onnxruntime.InferenceSession(str(tmp_path / "g.onnx"))
    assert run("federate", *packed, "--out", tmp_path / "app").status == 0
    there = {}
    exec((tmp_path / "app/anymix_sites/sources.py").read_text(encoding="utf-8"), there)
    assert list(there["SOURCES"]) == list(NAMES)


def test_sites(run, tables, packed, tmp_path):
    files = [tmp_path / "1.site", tmp_path / "2.site"]
    for name, path in zip((TYPED, BEIJING), files, strict=True):
        rows = tables[unicodedata.normalize("NFC", name), "held"]
        words = ["--site", name, "--rows", rows, "--out", path]
        assert run("site", "evaluate", *packed, *words).status == 0
    assert [read_site(path).site for path in files] == list(NAMES)
    said = run("fit", *packed, "--from-sites", *files, "--out", tmp_path / "model")
    assert said.status == 0, said


def test_two_names_that_look_alike_are_refused(run, tables, packed, tmp_path):
    words = ["--task", "classification", "--rows", tables[MUNICH, "train"]]
    said = run("source", "pack", tmp_path / "again", "--name", "KLINIK MÜNCHEN", *words)
    assert said.status == 0
    held = [f"{name}={tables[name, 'held']}" for name in NAMES]
    words = [*packed, tmp_path / "again", "--held-out", *held, "--out", tmp_path / "m"]
    said = run("fit", *words)
    assert said.status == 3
    assert "names that look alike ('Klinik München' and 'KLINIK MÜNCHEN'); pack again" in said.err
