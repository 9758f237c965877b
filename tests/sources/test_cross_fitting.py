"""Rows are dealt out by chance, in whatever order they come; what tables and new rows certify."""

from dataclasses import replace

import numpy as np
import pytest

from anymix.sources import (
    Grounds,
    LearningSettings,
    Seen,
    Tables,
    assign_folds,
    certify_tables,
    combined_predictions,
    learn,
)
from anymix.sources.cross_fitting import FEWEST_ROWS, N_FOLDS
from anymix.sources.error_measures import measure_of


def numbers(n=200, seed=0, p=3):
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(p), n)
    x = rng.normal(3.0 * domain, 1.0)
    log_masses = np.stack([-((x - 3.0 * k) ** 2) / 2 for k in range(p)])
    said = np.stack([np.sin(3.0 * k) + np.cos(3.0 * k) * (x - 3.0 * k) for k in range(p)])
    return Tables(log_masses, said).labelled(np.sin(x) + 0.3 * rng.normal(size=p * n), domain)


def test_rows_are_dealt_out_evenly_whatever_their_order_and_last_digits():
    tables = numbers()
    fold = assign_folds(tables)
    for k in range(3):
        assert np.ptp(np.bincount(fold[tables.sample_domain == k], minlength=N_FOLDS)) <= 1
    order = np.random.default_rng(1).permutation(tables.n_points)
    np.testing.assert_array_equal(assign_folds(tables.taken(order)), fold[order])
    blurred = replace(tables, predictions=tables.predictions * (1 + 1e-13))
    np.testing.assert_array_equal(assign_folds(blurred), fold)
    # Chance, not the values, decides: each part has the mean of all, up to noise.
    means = [np.mean(tables.targets[(fold == t) & (tables.sample_domain == 1)]) for t in range(5)]
    assert np.std(means) > 0


def test_groups_stay_together_and_few_are_not_torn():
    tables = numbers(60)
    twice = tables.taken(np.repeat(np.arange(tables.n_points), 2))
    grouped = replace(twice, groups=np.arange(tables.n_points).repeat(2))
    fold = assign_folds(grouped)
    np.testing.assert_array_equal(fold[::2], fold[1::2])
    for k in range(3):
        assert np.ptp(np.bincount(fold[grouped.domain == k], minlength=N_FOLDS)) <= 2
    # Equal answers alone are no group: rows of few values are equal by chance.
    assert (assign_folds(twice)[::2] != assign_folds(twice)[1::2]).any()
    assert not assign_folds(numbers(FEWEST_ROWS - 1)).any()
    assert not assign_folds(replace(tables, groups=np.arange(tables.n_points) // 6)).any()


def test_no_place_in_the_order_goes_with_a_fold():
    """The largest error is anywhere, folds have equal errors on average, whatever the labels."""
    largest, means, shares = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tables = Tables(rng.normal(size=(2, 200)), 0.1 * rng.normal(size=(2, 200)))
        tables = tables.labelled(rng.normal(size=200), np.repeat([0, 1], 100))
        fold, errors = assign_folds(tables)[:100], tables.outcomes()[0, :100]
        largest.append(fold[errors.argmax()])
        means.append([errors[fold == t].mean() for t in range(5)])
        # Rows of few values: folds are of one size, and not of one label.
        x, y = rng.integers(2, size=(2, 200))
        coins = Tables(np.zeros((2, 200)), np.tile(0.3 + 0.4 * x, (2, 1)))
        coins = coins.labelled(1.0 * y, np.repeat([0, 1], 100))
        fold = assign_folds(coins)[:100]
        assert np.ptp(np.bincount(fold)) == 0
        shares.append([y[:100][fold == t].mean() for t in range(5)])
    assert np.bincount(largest, minlength=5).max() < 25
    assert np.abs(np.mean(means, axis=0)).max() < 4 / np.sqrt(20 * 60)
    # A share of 20 of 100 rows, drawn without replacement.
    assert np.std(shares, axis=1).mean() < 0.13


def test_each_row_is_judged_by_what_was_learned_without_it():
    """A row that is changed beyond all measure changes its own judgement, and not its part's z."""
    tables = numbers()
    first = learn(tables, LearningSettings())
    fold = first.evidence.held_out.fold
    targets = tables.targets.copy()
    rows = np.flatnonzero(fold == 0)
    # The order of the rows, and so their parts, must stay.
    targets[rows] += 1e-9 * np.arange(rows.size)
    second = learn(replace(tables, targets=targets), LearningSettings())
    np.testing.assert_array_equal(second.evidence.held_out.fold, fold)
    np.testing.assert_array_equal(first.combination.parts[0].z, second.combination.parts[0].z)
    np.testing.assert_array_equal(
        first.evidence.held_out.predictions[rows], second.evidence.held_out.predictions[rows]
    )


def test_few_rows_teach_one_part_and_certify_nothing():
    found = learn(numbers(12), LearningSettings())
    assert len(found.combination.parts) == 1
    assert not found.evidence.held_out.crossed
    assert found.evidence.certificate.confidence is None
    assert "Measured, not guaranteed" in found.evidence.certificate.sentence


def test_new_rows_certify_the_average_and_another_measure():
    found, new = learn(numbers(), LearningSettings()), numbers(seed=1)
    grounds = Grounds(clip=found.evidence.certificate.clip)
    certificate = certify_tables(new, found.combination, "squared", grounds=grounds)
    errors = combined_predictions(new, found.combination) - new.targets
    due = [np.mean(errors[new.sample_domain == k] ** 2) for k in range(3)]
    np.testing.assert_allclose(certificate.source_losses, due)
    assert (certificate.loss_ground, certificate.regret_ground) == ("exact", "exact")
    absolute = certify_tables(new, found.combination, "squared", measure="mae")
    due = [np.mean(np.abs(errors[new.sample_domain == k])) for k in range(3)]
    np.testing.assert_allclose(absolute.source_losses, due)
    assert absolute.loss == "absolute"
    assert not absolute.bounds
    names = [one.name for one in certificate.beside]
    assert names == ["a constant", "the plain average", *(f"source {k} alone" for k in (1, 2, 3))]
    constant = certificate.beside[0]
    assert constant.loss == pytest.approx(
        max(np.var(new.targets[new.sample_domain == k]) for k in range(3)), rel=0.5
    )
    assert not certificate.vacuous


def test_a_promise_that_chance_keeps_is_vacuous():
    rng = np.random.default_rng(0)
    said = rng.dirichlet(np.ones(2) * 50, size=(2, 600))
    tables = Tables(np.zeros((2, 600)), said, classes=np.array([0, 1]))
    tables = tables.labelled(rng.integers(2, size=600), np.arange(600) % 2)
    found = learn(tables, LearningSettings("cross_entropy"))
    assert found.evidence.certificate.vacuous
    assert "vacuous: chance does as well" in found.evidence.certificate.sentence
    wrong = certify_tables(tables, found.combination, "cross_entropy", measure="accuracy")
    assert wrong.beside[0] == ("chance", 0.5, 0.5)
    assert wrong.loss_upper > 0.5


@pytest.mark.parametrize(
    ("measure", "classes", "words"),
    [
        ("accuracy", None, "is for labels"),
        ("mae", 3, "does not fit labels"),
        ("brier", None, "does not fit numbers"),
        ("auc", 2, "none is certified"),
        ("rmse", None, "certify .mse."),
        ("auk", 2, "no measure .auk.; did you mean .auc."),
    ],
)
def test_measures_that_do_not_fit_are_named(measure, classes, words):
    with pytest.raises(ValueError, match=words):
        measure_of(measure, "cross_entropy" if classes else "squared", classes)


def test_rows_are_known_again_by_themselves_or_by_what_was_said():
    rng, tables = np.random.default_rng(0), numbers(50)
    X = rng.normal(size=(150, 2))
    seen = Seen.of(tables, X)
    half = np.r_[0:25, 50:150]
    other = replace(numbers(50, seed=1))
    mixed = Tables.concatenate([tables.taken(np.arange(25)), other.taken(np.arange(25, 150))])
    assert seen.sources(mixed) == [0]
    assert seen.sources(other) == []
    rows = np.r_[X[half[:25]], rng.normal(size=(125, 2))]
    assert seen.sources(other, rows) == [0]
    assert Seen.of(tables).rows is None
    restored = Seen.from_dict(seen.to_dict())
    assert restored.sources(mixed, rows) == [0]
    # Many new rows may be predicted alike, as by probabilities near 1.
    sure = replace(other, predictions=np.ones_like(other.predictions), targets=np.ones(150))
    some = replace(tables, predictions=tables.predictions.copy(), targets=tables.targets.copy())
    some.predictions[:, 0], some.targets[0] = 1.0, 1.0
    assert Seen.of(some, X).sources(sure, rng.normal(size=(150, 2))) == []
    # Rows of two values are all known by chance, and say nothing.
    coins = rng.integers(2, size=(150, 1)).astype(float)
    assert Seen.of(tables, coins).sources(other, rng.integers(2, size=(150, 1)) * 1.0) == []
