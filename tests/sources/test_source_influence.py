"""A site or source that moves the loss of another is named, and honest ones are not."""

import json

import numpy as np
import pytest

from anymix.sources import Influence, LearningSettings, find_influence, learn
from tests.sources.poisoned import NAMES, honest, losses, lying


def found(tables, **goal):
    return find_influence(tables, LearningSettings(**goal), NAMES)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spread", [0.8, 1.0])
def test_honest_sites_are_not_named(seed, spread):
    assert found(honest(seed=seed, spread=spread)).sentences() == []


@pytest.mark.parametrize(("share", "size"), [(1 - 1e-9, 1e6), (0.3, 1e8)])
@pytest.mark.filterwarnings("ignore::anymix.core.SolverWarning")
def test_a_lying_site_is_named_with_what_its_rows_cost(share, size):
    """The numbers of the sentence are those of fits with and without its rows."""
    tables = honest()
    poisoned = lying(tables, size=size, share=share)
    before = losses(tables, learn(tables, LearningSettings()).combination)
    after = losses(tables, learn(poisoned, LearningSettings()).combination)
    mended = losses(tables, learn(poisoned, LearningSettings(set_aside=(2,))).combination)
    assert after[0] > 20 * before[0]
    np.testing.assert_allclose(mended[:2], before[:2], rtol=0.4)
    influence = found(poisoned)
    assert influence.moved()[0] == (2, 0, True)
    told = influence.losses[0], influence.losses[0] - influence.rows[2, 0]
    np.testing.assert_allclose(told, [after[0], mended[0]], rtol=0.2)
    assert influence.sentences()[0].startswith("The rows of west raise the held-out loss of north")
    assert influence.worst() == influence.least_known() == 2


def test_rows_that_are_set_aside_have_no_influence():
    influence = found(lying(honest()), set_aside=(2,))
    assert not influence.rows[2].any()
    assert influence.worst() is None


def test_what_is_set_aside_does_not_depend_on_the_lies():
    """Whatever a site hands in, z, calibration and shrinkage are the same once it is set aside."""
    goal, tables = LearningSettings(set_aside=(2,)), honest()
    first = learn(tables, goal)
    for poisoned in (lying(tables), lying(tables, n=200, size=-1e3, share=0.5, victim=1)):
        other = learn(poisoned, goal)
        np.testing.assert_array_equal(first.combination.z, other.combination.z)
        np.testing.assert_allclose(first.evidence.solution.z, other.evidence.solution.z, rtol=1e-9)
        for a, b in zip(first.combination.parts, other.combination.parts, strict=True):
            np.testing.assert_array_equal(a.calibration.temperature, b.calibration.temperature)
            np.testing.assert_array_equal(a.calibration.offset, b.calibration.offset)
        assert first.evidence.solution.shrinkage == other.evidence.solution.shrinkage


@pytest.mark.parametrize("objective", ["regret", "robust", "gamma"])
def test_the_certificate_covers_the_rows_that_are_set_aside(objective):
    tables = lying(honest())
    learned = learn(tables, LearningSettings(set_aside=(2,), objective=objective))
    assert losses(tables, learned.combination).max() > 1e6
    assert (
        learned.evidence.certificate.robust_loss
        == learned.evidence.certificate.source_losses[2]
        > 1e6
    )
    np.testing.assert_allclose(
        learned.evidence.solution.robust_loss, learned.evidence.solution.source_losses.max()
    )


def test_a_source_of_wild_numbers_harms_without_a_row():
    """Through η every predictor counts everywhere: only leaving the source out mends that."""
    tables = honest()
    predictions = tables.predictions.copy()
    predictions[2, tables.sample_domain == 0] = 1e7
    wild = type(tables)(tables.log_masses, predictions).labelled(
        tables.targets, tables.sample_domain
    )
    named = [(j, k) for j, k, by_rows in found(wild).moved() if not by_rows]
    assert (2, 0) in named


def test_two_sources_have_no_rows_to_set_aside():
    tables = lying(honest(spread=0.5)).without([1])
    influence = find_influence(tables, LearningSettings(), ("north", "west"))
    assert not influence.rows.any()
    assert [one[:2] for one in influence.moved()] == [(1, 0), (0, 1)]


def test_influence_goes_to_json_and_back():
    influence = found(lying(honest()))
    again = Influence.from_dict(json.loads(influence.to_json()))
    assert again.sentences() == influence.sentences()
    np.testing.assert_array_equal(again.rows, influence.rows)


def test_weights_of_rows_count():
    """A row of weight zero is as good as gone."""
    tables = honest()
    weight = np.ones(tables.n_points)
    weight[:5] = 0.0
    targets = tables.targets.copy()
    targets[:5] = 1e5
    without = found(tables.taken(np.arange(5, tables.n_points)))
    weighed = found(
        type(tables)(tables.log_masses, tables.predictions).labelled(
            targets, tables.sample_domain, weight
        )
    )
    np.testing.assert_allclose(weighed.losses, without.losses, rtol=1e-6)
    np.testing.assert_allclose(weighed.own_losses, without.own_losses)


def test_too_many_sources_are_not_looked_at():
    few = honest(n=2)
    tables = type(few)(np.zeros((21, 42)), np.zeros((21, 42)))
    with pytest.raises(ValueError, match="the influence of 21 sources on each other would take"):
        find_influence(
            tables.labelled(np.zeros(42), np.repeat(range(21), 2)), LearningSettings(), range(21)
        )
