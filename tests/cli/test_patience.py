"""Long work is not silent, and work that fails leaves nothing behind."""

import re
import threading
import time

import pytest

from anymix.cli.console import Console
from anymix.cli.outputs import tidying


def test_work_of_unknown_length_is_told_of(monkeypatch):
    lines, told = [], threading.Event()

    def whisper(text):
        lines.append(text)
        told.set()

    monkeypatch.setattr("anymix.cli.console.whisper", whisper)
    monkeypatch.setattr("anymix.cli.console.QUIET_SECONDS", 0.05)
    with Console().working("learning z"):
        assert told.wait(60)
    assert re.fullmatch(r"learning z: \d+ s so far\n", lines[0])
    lines.clear()
    with Console(quiet=True).working("learning z"):
        time.sleep(0.2)
    monkeypatch.setattr("anymix.cli.console.QUIET_SECONDS", 3600.0)
    with Console().working("short work"):
        pass
    assert lines == []


def test_work_can_be_stopped(capsys):
    with pytest.raises(KeyboardInterrupt), Console().working("learning z"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""


def test_learning_and_watching_are_told_of(world, run, tmp_path, monkeypatch):
    monkeypatch.setattr("anymix.cli.console.QUIET_SECONDS", 0.0)
    fit = run("fit", *world.sources, "--held-out", *world.held, "--out", tmp_path / "m")
    assert "learning z: " in fit.err
    watched = run("monitor", world.model, world.test[0].split("=")[1])
    assert "estimating the mixture: " in watched.err


def test_folders_made_for_nothing_go_again(world, run, tmp_path):
    held = ["--held-out", *world.held[:-1]]
    assert run("fit", *world.sources, *held, "--out", tmp_path / "a" / "b" / "c").status == 3
    assert run("predict", world.model, "nope.csv", "--out", tmp_path / "d" / "e.csv").status == 3
    assert list(tmp_path.iterdir()) == []


def test_folders_that_hold_something_stay(tmp_path):
    def fails():
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "mine").touch()
        raise ValueError("late")

    with pytest.raises(ValueError, match="late"), tidying(tmp_path / "a" / "b" / "c"):
        fails()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["mine"]


@pytest.mark.parametrize("command", ["predict", "fit", "report"])
def test_an_output_has_a_name(command, world, run):
    given = {"predict": [world.model, "t.csv"], "fit": world.sources, "report": [world.model]}
    said = run(command, *given[command], "--out", "")
    assert (said.status, "but is empty" in said.err) == (2, True)


def test_the_level_of_the_alarm_is_said_in_terms_of_the_command(world, run):
    said = run("monitor", world.model, world.test[0].split("=")[1], "--level", "0.001")
    assert said.status == 2
    assert "--level must be 1/501 or more" in said.err
    assert "n_bootstrap" not in said.err
