"""A server that counts rows on one side of a plane: coefficients as steep as that are refused."""

from dataclasses import replace

import numpy as np
import pytest

from anymix.engines.generalist import MOST_SPREAD, check_linear
from anymix.exceptions import InputError
from anymix.sources import LinearRows, NumberColumns, Query

AGREED = {"mean": np.zeros(2), "scale": np.ones(2)}


def site(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, max(n_classes, 1), 60)
    return LinearRows(NumberColumns(1.0, True), X, y, np.ones(60), np.arange(60) % 5, n_classes)


def step(steep, offsets, n_classes=2):
    """Rows beyond planes x0 = t, nearly 0 or 1 on either side where it is steep."""
    offsets = np.atleast_1d(offsets)
    theta = np.zeros((len(offsets), 1 if n_classes < 3 else n_classes, 3))
    theta[:, 0, 0], theta[:, 0, 2] = steep, -steep * offsets
    given = {"theta": theta, "without": np.full(len(offsets), -1)}
    return Query("step", {}, given | AGREED)


def test_two_planes_next_to_each_other_would_give_a_row():
    """What is refused: the attack, as it worked before."""
    rows = site(2)
    between = np.sort(rows.X[:, 0])[30] + np.array([-1e-6, 1e-6])
    sums = rows.answer("step", {}, step(1e9, between).arrays)["gradient"][:, 0]
    found = (sums[0] - sums[1]) / (sums[0] - sums[1])[2]
    assert np.abs(rows.X - found[:2]).max(axis=1).min() < 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sites_refuse_steep_coefficients_wherever_they_stand(n_classes):
    rows, most = site(n_classes), 0.9 * MOST_SPREAD
    check_linear(step(most, 0.0, n_classes), rows)
    steep = step(4 * most, 0.0, n_classes)
    # The same by a scale that the server says, and in a product or a prediction.
    gentle = step(most, 0.0, n_classes)
    scaled = replace(gentle, arrays=gentle.arrays | {"scale": np.array([1e-3, 1.0])})
    theta, flat = steep.arrays["theta"], {"of": np.array([-1])}
    product = {"along": theta, "at": theta} | flat | AGREED
    predicted = Query("generalist", {}, {"theta": theta} | AGREED)
    for query in (steep, scaled, Query("step", {}, product), predicted):
        with pytest.raises(InputError, match="steeper"):
            check_linear(query, rows)


def test_numbers_have_no_log_odds():
    check_linear(step(1e9, 0.0, 0), site(0))
