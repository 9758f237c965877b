"""A small version of the benchmark of certificates: its truth is true, and its counting counts."""

import json

import numpy as np
import pytest

from benchmarks import certificates
from benchmarks.certificate_worlds import WORLDS, PlaneCase, make_case
from benchmarks.certificates import Cell, Outcome, run, summarise, too_often
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


@pytest.mark.parametrize("name", WORLDS)
def test_the_truth_is_the_mean_of_many_draws(name, monkeypatch):
    case = make_case(name, 2, 0, 20)
    monkeypatch.setattr(
        "benchmarks.certificate_worlds.combined_predictions",
        lambda tables, _: tables.predictions.mean(axis=0),
    )
    c = 0.6 if name == "overlap" else 0.9
    found = case.truth(None, c)
    rows = case.draw([40_000, 40_000], np.random.default_rng(0))
    y, m = rows.targets, np.arange(rows.n_points)
    said, own = rows.predictions.mean(axis=0), rows.own_predictions()
    labels = case.loss == "cross_entropy"
    losses, owns = (-np.log(h[m, y]) if labels else (h - y) ** 2 for h in (said, own))
    drawn = {"loss": np.minimum(losses, c), "own": np.minimum(owns, c), "above": losses > c}
    for what, values in drawn.items():
        means = rows.by_source(values.astype(float))
        assert found[what] == pytest.approx(means, abs=5 * np.sqrt(values.var() / 40_000) + 3e-3)


def test_routing_does_rare_harm_that_is_counted():
    case = PlaneCase.make("routing", 3, 0, 50)
    _, domain, weight, tables, _ = case.points
    assert np.bincount(domain, weight) == pytest.approx(np.ones(3))
    # The last points are routed wrongly: densities take them for rows of the second source.
    assert domain[-1] == 0
    assert tables.log_masses[:, -1].argmax() == 1


@pytest.mark.parametrize("cell", [Cell("t2.1", 2, "200"), Cell("overlap", 3, "200/400")])
def test_a_run_claims_what_is_near_the_truth(cell):
    for outcome in run(cell, 0).values():
        assert abs(outcome.slack["regret"]) < 1
        assert outcome.ground in ("asymptotic", "exact")


def test_failures_are_counted_where_something_is_claimed():
    truth = dict.fromkeys(("regret", "loss", "above"), 0.3)
    good = Outcome({"regret": 0.2, "loss": 0.1, "above": 0.1}, truth, "exact")
    bad = good._replace(slack=good.slack | {"regret": -0.1})
    none = good._replace(slack=dict.fromkeys(good.slack, np.nan))
    row = summarise([good, bad, bad, none])
    assert (row["failed"], row["regret"]["claimed"], row["regret"]["failed"]) == (2, 3, 2)
    assert row["regret"]["slack"] == -0.1
    assert too_often(11, 100)
    assert not too_often(9, 100)


def test_parts_are_added_to_a_record_and_joined(tmp_path):
    record = tmp_path / "records" / "certificates.ndjson"
    certificates.main(seconds=0.01, chosen="overlap,p=2,n=200,", part=0.0, record=record)
    certificates.main(seconds=0.01, chosen="overlap,p=2,n=200,", part=0.0, record=record)
    one, two = certificates.read(record)
    assert [one["seeds"], two["seeds"]] == [[0, 4], [4, 8]]
    ((cell, row),) = certificates.joined([one, two]).items()
    assert (cell, row["runs"]) == (Cell("overlap", 2, "200"), 8)
    assert row["fit"]["regret"]["claimed"] == 8
    json.dumps(row)


def test_every_cell_has_a_name_of_its_own():
    cells = certificates.cells()
    assert len({str(cell) for cell in cells}) == len(cells) >= 60
    assert LABELS in WORLDS
