"""Strikes leave outputs old or new: between the calls that write, and at random moments."""

import os
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kills import Run, Scene, plights, strike_after, strike_before, two_writers


@pytest.fixture(scope="module")
def scene():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # one strike comes from a user who may only read
        yield Scene(Path(folder), n_rows=500)


@pytest.mark.parametrize(("name", "step"), [("fit", 17), ("predict csv", 9), ("certify", 9)])
def test_nothing_is_half_written(scene, name, step):
    call, seen = 1, set()
    while strike_before(scene.commands[name], call):
        seen.add(scene.check())
        scene.restore()
        call += step
    assert call > step
    assert strike_after(scene.commands[name], float(np.random.default_rng(0).uniform(0, 0.2)))
    scene.check()
    scene.restore()


def test_sigterm_leaves_no_temporary_file(scene):
    run = Run([*scene.commands["predict csv"], "--chunk-rows", "1"])
    while not any(".tmp" in name for name in scene.left_over()):
        assert run.process.is_alive()
    assert run.strike(signal.SIGTERM) == 143
    assert scene.left_over() == []
    scene.check()


def test_a_full_disk_a_closed_pipe_and_a_folder_that_may_not_be_written(scene):
    assert sum(plights(scene, "report").values()) == 3


def test_two_writers(scene):
    assert 0 in two_writers(scene, 0.6)
