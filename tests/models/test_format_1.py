"""Model folders that version 0.1.0 wrote are read, and predict what it predicted."""

import csv
from pathlib import Path

import numpy as np
import pytest

import anymix
from anymix.cli import main
from anymix.models import read_record

FOLDERS = Path(__file__).parent / "format_1"


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_old_folders_answer_as_they_did(task, tmp_path):
    place = FOLDERS / task
    rows, out = str(place / "north_held.csv"), str(tmp_path / "p.csv")
    wanted = ["--out", out, "--weights", "--novelty", "--quiet"]
    assert main(["predict", str(place / "model"), rows, *wanted]) == 0
    found, due = columns(out), columns(place / "expected.csv")
    assert list(found) == list(due)
    for name in due:
        if name == "label":
            assert found[name] == due[name]
        else:
            np.testing.assert_allclose(
                np.array(found[name], float), np.array(due[name], float), rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_old_records_come_back_and_can_be_written_in_the_new_format(task, tmp_path):
    model = anymix.load(FOLDERS / task / "model")
    # One combination was learned from all rows then, so that these earn it no confidence.
    assert model.certificate_.confidence is None
    assert "Measured, not guaranteed" in model.certificate_.sentence
    assert "2 sources" in model.certificate_.sentence
    np.testing.assert_allclose(model.comparison_.loss[-1, :2], model.certificate_.source_losses)
    anymix.save(model, tmp_path / "m")
    assert read_record(tmp_path / "m")["schema"] == 4
    rows = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(
        anymix.load(tmp_path / "m").source_weights(rows), model.source_weights(rows), rtol=1e-12
    )
    page = tmp_path / "page.html"
    assert main(["report", str(FOLDERS / task / "model"), "--out", str(page), "--quiet"]) == 0
    assert "Certificate" in page.read_text()
