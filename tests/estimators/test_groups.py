"""Rows that depend on each other: groups that are named, copies that are found, rows of `fit`."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.estimators._row_checks import check_groups
from anymix.estimators._rows import Rows, folds_of
from anymix.sources import copies, joined_groups

KDE = GaussianKDE(bandwidth=0.8)


def numbers(seed=0, n=120):
    rng = np.random.default_rng(seed)
    domain = np.repeat(["a", "b"], n)
    X = rng.normal(size=(2 * n, 2)) + (domain == "b")[:, None]
    return X, X.sum(axis=1) + rng.normal(size=2 * n), domain


def regressor(**options):
    return DistributionWeightedRegressor(LinearRegression(), KDE, random_state=0, **options)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-4])
def test_copies_are_found_as_they_are_and_nearly(noise):
    X, y, domain = numbers()
    rng, numbered = np.random.default_rng(1), np.unique(domain, return_inverse=True)[1]
    assert copies(X, y, numbered) is None
    again = np.r_[np.arange(240), np.arange(60)]
    moved = X[again] + noise * rng.normal(size=(300, 2)) * (np.arange(300) >= 240)[:, None]
    draws = copies(moved, y[again], numbered[again])
    np.testing.assert_array_equal(draws[240:], draws[:60])
    assert np.unique(draws).size == 240
    # Not copies: another source, or another y.
    assert copies(X[again], y[again], np.arange(300)) is None
    assert copies(X[again], np.arange(300.0), numbered[again]) is None


def test_rows_of_few_values_are_alike_by_chance():
    rng = np.random.default_rng(0)
    coins = rng.integers(2, size=(300, 4)).astype(float)
    assert copies(coins, rng.integers(2, size=300), np.zeros(300, dtype=int)) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_goes_with_another_tells_no_rows_apart(seed):
    rng, alone = np.random.default_rng(seed), np.zeros(160, dtype=int)
    x = rng.normal(size=(160, 1))
    for X, y in (
        (x, x[:, 0]),
        (x, np.sin(3 * x[:, 0])),
        (x, alone),
        (np.c_[x, x**2].round(3), x[:, 0] > 0),
    ):
        assert copies(X, np.asarray(y), alone) is None
    again = np.r_[x, x[:20]]
    assert np.unique(copies(again, again[:, 0], np.zeros(180, dtype=int))).size == 160


def test_tables_that_are_there_three_times_are_known():
    X, y = load_diabetes(return_X_y=True)
    assert copies(X, y, np.zeros(442, dtype=int)) is None
    draws = copies(np.tile(X, (3, 1)), np.tile(y, 3), np.zeros(3 * 442, dtype=int))
    assert np.unique(draws).size == 442


def test_words_are_alike_by_chance_where_many_rows_differ_in_one():
    rng, alone = np.random.default_rng(0), np.zeros(400, dtype=int)
    words, mood = rng.choice(list("abcdef"), size=(400, 5)), rng.integers(2, size=400)
    texts = [" ".join(row) for row in words]
    assert len({*zip(texts, mood, strict=True)}) < 400
    assert copies(texts, mood, alone) is None
    assert copies(words.astype(object), mood, alone) is None
    long = [" ".join(row) for row in rng.choice(list("abcdefgh"), size=(400, 20))]
    draws = copies([*long, *long[:40]], np.r_[mood, mood[:40]], np.zeros(440, dtype=int))
    assert np.unique(draws).size == 400


def test_texts_and_gaps_are_told_apart():
    texts = ["a long text", "another text", "a long text", "a third"]
    draws = copies(texts, np.array([0, 1, 0, 1]), np.zeros(4, dtype=int))
    assert draws[0] == draws[2]
    assert np.unique(draws).size == 3
    # Of three texts that are there again and again, new ones are alike.
    assert copies(4 * texts * 8, np.tile([0, 1, 0, 1], 32), np.zeros(128, dtype=int)) is None
    gaps = np.array([[np.nan, 0.123], [np.nan, 0.123], [5.0, 0.77], [7.0, np.nan]])
    assert np.unique(copies(gaps, np.zeros(4), np.zeros(4, dtype=int))).size == 3


def test_groups_stay_whole_in_every_fold_and_classes_are_spread():
    rng = np.random.default_rng(0)
    groups, y = rng.integers(40, size=300), rng.integers(3, size=300)
    rows = Rows(np.zeros((300, 1)), y, np.arange(300) % 2, groups=groups)
    for classification in (False, True):
        fold = folds_of(rows, 5, classification, 0)
        assert all(np.unique(fold[groups == g]).size == 1 for g in range(40))
        assert np.bincount(fold).min() > 30


def test_copied_rows_do_not_flatter_and_are_reported():
    X, y, domain = numbers()
    again = np.tile(np.arange(240), 3)
    with pytest.warns(UserWarning, match="480 of 720 rows are copies of another row"):
        thrice = regressor().fit(X[again], y[again], sample_domain=domain[again])
    fold, groups = thrice.held_out_.fold, thrice.tables_.groups
    assert all(np.unique(fold[groups == g]).size == 1 for g in range(240))
    once = regressor().fit(X, y, sample_domain=domain)
    due = once.certificate_.source_losses
    np.testing.assert_allclose(thrice.certificate_.source_losses, due, rtol=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = regressor().fit(X[again], y[again], domain[again], groups=again)
    np.testing.assert_array_equal(named.held_out_.fold, fold)


def test_groups_are_checked_and_joined():
    np.testing.assert_array_equal(check_groups(["b", "a", "b"], 3), [1, 0, 1])
    for wrong, words in ((["a"], "1 entries for 3"), ("a", "is a string"), ([1, None, 2], "row 1")):
        with pytest.raises(ValueError, match=words):
            check_groups(wrong, 3)
    np.testing.assert_array_equal(joined_groups(np.arange(4), np.array([0, 1, 2, 0])), [0, 1, 2, 0])


@pytest.mark.parametrize("refit", [True, False])
def test_groups_are_saved_and_rows_of_fit_are_known(tmp_path, refit):
    X, y, domain = numbers()
    groups = np.arange(240) // 3
    model = regressor(refit=refit, cv=3).fit(X, y, domain, groups=groups)
    anymix.save(model, tmp_path / "m")
    loaded = anymix.load(tmp_path / "m", verify=True)
    np.testing.assert_array_equal(loaded.tables_.groups, groups)
    new = numbers(1)
    for one in (model, loaded):
        assert one.certify(X.astype(np.float32), y, domain).seen == ("a", "b")
        assert one.certify(np.round(X, 4), y, domain).confidence is None
        found = one.certify(*new, groups=groups)
        assert found.seen == ()
        errors = (model.predict(new[0]) - new[1]) ** 2
        due = [errors[domain == k].mean() for k in "ab"]
        np.testing.assert_allclose(found.source_losses, due)
    assert model.coverage(0.1, new).ground == "exact"
    assert model.coverage(0.1, (X, y, domain)).ground == "measured"
    # One row of each group judges.
    assert model.coverage(0.1, (*new, groups)).rows.tolist() == [40, 40]


def test_labels_of_models_of_folds_are_certified():
    X, y, domain = numbers()
    model = DistributionWeightedClassifier(
        LogisticRegression(), KDE, refit=False, cv=3, random_state=0
    ).fit(X, y > 0.5, sample_domain=domain)
    new, target, where = numbers(2)
    found = model.certify(new, target > 0.5, where, measure="accuracy")
    wrong = model.predict(new) != (target > 0.5)
    np.testing.assert_allclose(found.source_losses, [wrong[where == k].mean() for k in "ab"])
    assert model.evaluate(new).predictions.shape == (2, 240, 2)
