"""Every example runs, quickly and without a warning, and ends in a picture that shows something."""

import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from matplotlib.image import imread

from tests.house.source_tree import ROOT

FOLDER = ROOT / "examples"
SMALL = {
    "plot_averaging_fails": {},
    "plot_two_hospitals": {"n": 60},
    "plot_mixture_triangle": {"n": 60},
    "plot_drift": {"n": 80, "weeks": 5, "n_week": 100},
    "plot_objectives": {"n": 200},
    "plot_certificates": {"n": 200, "runs": 12},
}


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module


def test_every_example_is_tested_and_described():
    names = {path.stem for path in FOLDER.glob("plot_*.py")}
    assert names == set(SMALL)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"\]\((plot_\w+)\.py\)", page))
    for target in re.findall(r"\]\(([^)]+)\)", page):
        assert (FOLDER / target).exists(), target


@pytest.mark.parametrize("name", SMALL)
def test_example_ends_in_a_picture(example, name, tmp_path):
    path = example(name).main(tmp_path / "new", **SMALL[name])
    assert path == tmp_path / "new" / f"{name.removeprefix('plot_')}.png"
    picture = imread(path)[..., :3]
    assert min(picture.shape[:2]) > 400
    coloured = np.ptp(picture, axis=2) > 0.2
    assert coloured.mean() > 0.001
    assert picture.mean() > 0.5


def test_an_example_runs_as_a_script(tmp_path):
    command = [sys.executable, FOLDER / "plot_averaging_fails.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == f"wrote {tmp_path / 'averaging_fails.png'}\n"


def test_no_average_beats_a_quarter(example):
    """The picture of Lemma 7 shows what the lemma says."""
    module = example("plot_averaging_fails")
    even = np.array([0.5, 0.5])
    averages = [even @ module.losses_of_average(a) for a in np.linspace(0, 1, 101)]
    assert min(averages) == pytest.approx(0.25)
    assert even @ module.PROBLEM.source_losses(even) < 1e-6


def test_regret_is_what_the_picture_of_objectives_shows(example):
    """Each objective is best at what it asks for."""
    module = example("plot_objectives")
    problem = module.overlapping_sources(500, np.random.default_rng(0))
    found = {name: module.solve(problem, name) for name in module.STYLES}
    assert found["regret"].regret < found["gamma"].regret - 0.1
    assert found["regret"].regret < found["robust"].regret
    assert found["robust"].robust_loss <= min(s.robust_loss for s in found.values()) + 1e-9
    assert found["gamma"].gamma < 1e-9
