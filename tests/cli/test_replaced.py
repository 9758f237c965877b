"""A new model never stands beside the records of an old one."""

import json

import pytest

from anymix.models import summarise_folder, writing
from anymix.models.saved_records import FILES as SAVED


@pytest.fixture
def fit(world, run, tmp_path):
    """Fit into a folder, and save all records of its model."""

    def call(*options):
        arguments = ["fit", *world.sources, "--held-out", *world.held, "--out", tmp_path / "m"]
        return run(*arguments, *options, "--force")

    assert call().status == 0
    for command in ("certify", "compare"):
        run(command, tmp_path / "m", "--held-out", *world.test, "--save")
    run("monitor", tmp_path / "m", world.test[0].split("=")[1], "--save")
    assert all((tmp_path / "m" / name).exists() for name in SAVED.values())
    return call


def test_saved_records_go_with_their_model(fit, tmp_path):
    said = fit("--objective", "robust")
    assert "replacing the previous model" in said.out
    assert not any((tmp_path / "m" / name).exists() for name in SAVED.values())
    record = json.loads((tmp_path / "m" / "model.json").read_text())
    shown = summarise_folder(tmp_path / "m")
    assert shown["certificate"] == record["certificate"]
    assert shown["traffic"] is None


def test_a_fit_that_fails_leaves_model_and_records(fit, tmp_path, monkeypatch):
    old = {path.name: path.read_bytes() for path in (tmp_path / "m").glob("*.json")}

    def full(*_, **__):
        raise OSError("no space left on the disk")

    monkeypatch.setattr(writing, "model_to_dict", full)
    assert "no space left" in fit("--objective", "robust").err
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").glob("*.json")} == old


def test_a_first_fit_replaces_nothing(world, run, tmp_path):
    arguments = ["fit", *world.sources, "--held-out", *world.held, "--out"]
    assert "in place of" not in run(*arguments, tmp_path / "m").out
    (tmp_path / "f").write_text("mine")
    assert "is a file; choose another name" in run(*arguments, tmp_path / "f").err
