"""fit says when the plain average does better, and what may help."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from anymix import Source
from anymix.densities import GaussianKDE
from anymix.exchange import pack_source
from tests.cli.organisations import draw, write_csv


@pytest.fixture
def rivals(tmp_path):
    """Two sources of the same rows, one of which is wrong everywhere: no z can be good at both."""
    rng, sources, held = np.random.default_rng(0), [], []
    for name, sign in (("north", 1.0), ("south", -1.0)):
        X, _ = draw("west", 150, rng)
        model = Ridge().fit(X, sign * X[:, 0])
        # Each likes the rows of the other: the densities mislead.
        density = GaussianKDE(0.5).fit(X - np.array([sign, 0.0]))
        sources.append(str(tmp_path / name))
        source = Source(name, model, density, feature_names=["a", "b"])
        pack_source(source, sources[-1])
        X = X + np.array([sign, 0.0])
        held.append(f"{name}={write_csv(tmp_path / f'{name}.csv', X, sign * X[:, 0])}")
    return ["fit", *sources, "--held-out", *held, "--out", str(tmp_path / "m"), "--no-calibration"]


def test_fit_says_that_the_average_is_better(rivals, run):
    said = run(*rivals)
    assert said.status == 0, said.err
    assert "The plain average is better on the worst mixture: its loss is" in said.out
    assert "try the objective robust, or look at the predictor and the density of" in said.out


def test_fit_says_nothing_of_a_model_that_is_better(world, run, tmp_path):
    said = run("fit", *world.sources, "--held-out", *world.held, "--out", tmp_path / "m")
    assert "plain average" not in said.out


def test_a_robust_model_is_not_told_to_be_robust(rivals, run):
    said = run(*rivals, "--objective", "robust")
    assert "objective robust" not in said.out
