"""A small version of the benchmark of certificates: its truth is true, and its counting counts."""

import numpy as np
import pytest

from benchmarks import certificates
from benchmarks.certificates import Cell, Outcome, judge, run
from benchmarks.worlds import LABELS, NOISES, World


@pytest.mark.parametrize("noise", NOISES)
def test_expected_losses_are_those_of_many_draws(noise):
    world, rng = World.draw(3, noise, 0), np.random.default_rng(1)
    X = np.repeat(world.rows(0, 4, rng), 50_000, axis=0)
    h = world.tables(X).predictions[1]
    y = world.targets(X, rng)
    losses = -np.log(h[np.arange(len(y)), y]) if world.labels else (h - y) ** 2
    for clip in (None, 0.7):
        if clip is None and noise == "t2.1":
            continue  # no number of draws finds the mean of such tails
        drawn = losses if clip is None else np.minimum(losses, clip)
        found = world.expected(h, X, clip)
        error = drawn.std() / np.sqrt(len(drawn))
        assert abs(found.mean() - drawn.mean()) < 5 * error + 2e-3 * drawn.mean()


@pytest.mark.parametrize("cell", [Cell("given", 3, 200, "t2.1"), Cell("trained", 3, 200, LABELS)])
def test_a_run_claims_both_halves_and_they_are_near_the_truth(cell):
    found = run(cell, 0)
    assert found.grounds == ("asymptotic", "asymptotic")
    assert abs(found.loss) < 1
    assert abs(found.regret) < 0.5
    assert np.isnan(found.loss_before) == (cell.way == "trained")


def test_failures_are_counted_where_something_is_claimed():
    good = Outcome(0.1, 0.2, 1.0, 1.0, ("asymptotic", "exact"))
    bad, none = good._replace(regret=-0.1), good._replace(loss=np.nan, regret=np.nan)
    row = judge(Cell("given", 3, 200, "t2.1"), [good, bad, bad, none])
    assert (row["loss"], row["regret"], row["joint"]) == (0.0, pytest.approx(2 / 3), 0.5)
    assert row["regret slack"] == pytest.approx(0.0)
    assert "50.0 | 66.7 | 0.0" in certificates.shown(row)


def test_few_rows_claim_nothing():
    found = run(Cell("given", 3, 20, "Gaussian"), 200)
    assert np.isnan(found.loss)
    assert np.isnan(found.regret)
