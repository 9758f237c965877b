"""Sets and intervals of fitted models: what they cover, what they stand on, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.core import errors_at
from anymix.densities import GaussianKDE
from anymix.estimators import _conformal, summarise
from anymix.estimators._conformal import judges_of
from anymix.monitor import Monitor
from anymix.sources import combined_predictions
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)


def noisy(n, seed=0):
    """Two sources at −2 and 2; the second is five times as noisy."""
    rng = np.random.default_rng(seed)
    X = np.r_[rng.normal(-2, 1, (n, 1)), rng.normal(2, 1, (n, 1))]
    y = np.abs(X[:, 0]) + np.repeat([0.1, 0.5], n) * rng.normal(size=2 * n)
    return X, y, np.repeat(["north", "south"], n)


def given(rows, base):
    """Sources that were trained elsewhere, on other rows."""
    X, y, d = rows
    return [
        Source(name, base().fit(X[d == name], y[d == name]), GaussianKDE(0.8).fit(X[d == name]))
        for name in np.unique(d)
    ]


@pytest.fixture(scope="module")
def numbers():
    sources = given(noisy(200, seed=5), Ridge)
    return DistributionWeightedRegressor.from_sources(sources).fit(*noisy(400))


@pytest.fixture(scope="module")
def labels():
    sources = given(classification(200, seed=5), LogisticRegression)
    return DistributionWeightedClassifier.from_sources(sources).fit(*classification(300))


def inside(interval, y):
    assert interval.shape == (len(y), 2)
    return (interval[:, 0] <= y) & (y <= interval[:, 1])


def by_source(values, d):
    return np.array([values[d == name].mean() for name in np.unique(d)])


@pytest.mark.parametrize("fresh", [False, True])
def test_intervals_cover_each_source_and_are_as_wide_as_it_needs(numbers, fresh):
    X, y, d = noisy(3000, seed=1)
    found = numbers.predict_interval(X, 0.1, calibration=noisy(300, seed=2) if fresh else None)
    covered, width = by_source(inside(found, y), d), by_source(found[:, 1] - found[:, 0], d)
    assert covered.min() > 0.85  # 0.9, but for the 400 rows that chance has drawn
    assert covered.max() < 0.95
    assert width[1] > 2.5 * width[0], "the quiet source does not pay for the noisy one"


@pytest.mark.parametrize("fresh", [False, True])
def test_sets_cover_each_source(labels, fresh):
    X, y, d = classification(2000, seed=1)
    calibration = classification(200, seed=2) if fresh else None
    found = labels.predict_set(X, 0.1, calibration=calibration)
    assert found.dtype == bool
    covered = found[np.arange(len(y)), np.searchsorted(labels.classes_, y)]
    assert by_source(covered, d).min() > 0.86
    assert (found.sum(axis=1) >= 1).all()
    assert found[np.arange(len(y)), labels.predict_proba(X).argmax(axis=1)].all()


def test_crossed_sets_are_those_of_the_definition(labels):
    """Row by row, from the parts and the tables alone."""
    X, alpha = classification(2, seed=3)[0], 0.15
    tables, used, held_out = labels.tables_, labels.combination_, labels.held_out_
    judges = judges_of(labels, alpha, None)
    new = labels.evaluate(X)
    own = errors_at(held_out.predictions, tables.targets)
    found = np.zeros((len(X), 2), dtype=bool)
    for i, c in np.ndindex(found.shape):
        for k in range(3):
            rows, count = np.flatnonzero(tables.sample_domain == k), 0
            for j in rows:
                t = held_out.fold[j]
                by, part = judges.error_scales[t], used.parts[t]
                at_j = part.log_responsibilities(tables.log_masses[:, [j]])[:, 0]
                at_x = part.log_responsibilities(new.log_masses[:, [i]])[:, 0]
                h = combined_predictions(new.taken(np.array([i])), judges.parts[t])[0, c]
                theirs = own[j] / (by.spread @ np.exp(at_j)) - by.tilt * at_j[k]
                count += theirs >= (1 - h) / (by.spread @ np.exp(at_x)) - by.tilt * at_x[k]
            found[i, c] |= (1 + count) / (rows.size + 1) > alpha
    found[np.arange(len(X)), labels.predict_proba(X).argmax(axis=1)] = True
    np.testing.assert_array_equal(labels.predict_set(X, alpha), found)


def test_no_yardstick_has_seen_the_rows_that_it_measures(numbers):
    """Other targets in one fold change the error_scales of the other parts, and not its own."""
    from anymix.estimators._conformal import cross_fitted
    from anymix.sources import assign_folds

    tables, used = numbers.tables_, numbers.combination_
    K = len(used.parts)
    fold = assign_folds(tables, K)
    before = cross_fitted(tables, used, 0.1).error_scales

    def moved(t):
        y = np.where(fold == t, tables.targets + 100.0, tables.targets)
        # The content of rows deals them out, so the deal is held fast.
        return replace(tables, targets=y)

    for t in range(K):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("anymix.estimators._conformal.assign_folds", lambda *_: fold)
            after = cross_fitted(moved(t), used, 0.1).error_scales
        same = [np.array_equal(a.spread, b.spread) for a, b in zip(before, after, strict=True)]
        assert same == [u == t for u in range(K)]


def test_the_ground_is_named(numbers, labels):
    crossed = numbers.coverage()
    assert crossed.ground == "asymptotic"
    K = len(numbers.combination_.parts)
    assert crossed.most == pytest.approx(0.2 + 2 * 0.9 * (K - 1) / (400 + K))
    fresh = labels.coverage(0.2, calibration=classification(50, seed=2))
    assert (fresh.ground, fresh.most, fresh.of) == ("exact", 0.2, "labels")
    assert fresh.rows.tolist() == [50, 50, 50]
    trained = DistributionWeightedRegressor(density=KDE, cv=3).fit(*regression(40))
    assert trained.coverage().ground == "measured"
    assert "the scores are of the fold models" in trained.coverage().sentence
    few = DistributionWeightedRegressor.from_sources(given(noisy(50, 5), Ridge)).fit(*noisy(11))
    assert few.coverage().ground == "measured"
    assert "the model was fitted on these few rows, too" in few.coverage().sentence


def test_an_adapted_model_still_has_sets_by_folds(numbers):
    X, y, d = noisy(1000, seed=1)
    monitor = Monitor.from_tables(numbers, n_bootstrap=100)
    adapted = monitor.adapt(X[d == "south"][:300])
    assert adapted.coverage().ground == "asymptotic"
    assert by_source(inside(adapted.predict_interval(X), y), d).min() > 0.8


def test_models_of_folds_that_are_deployed_cover_too():
    """refit=False: each member has judged the rows of its fold, so that something is proven."""
    model = DistributionWeightedRegressor(Ridge(), KDE, cv=3, refit=False).fit(*noisy(200))
    X, y, d = noisy(1000, seed=1)
    told = model.coverage()
    assert (told.ground, told.most < 0.25) == ("asymptotic", True)
    for calibration in (None, noisy(200, seed=2)):
        found = model.predict_interval(X, calibration=calibration)
        assert by_source(inside(found, y), d).min() > 0.85
    assert model.coverage(calibration=noisy(20, seed=3)).ground == "exact"
    model = DistributionWeightedClassifier(density=KDE, cv=2, refit=False).fit(*classification(60))
    X, y, d = classification(500, seed=1)
    assert "at any number of rows" not in model.coverage().sentence
    for calibration in (None, classification(100, seed=2)):
        found = model.predict_set(X, calibration=calibration)
        covered = found[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        assert by_source(covered, d).min() > 0.82


@pytest.mark.parametrize("of", ["numbers", "labels"])
def test_what_held_out_rows_show_is_what_new_rows_show(of, request):
    model = request.getfixturevalue(of)
    X, _, d = noisy(3000, 1) if of == "numbers" else classification(2000, 1)
    told = model.coverage(0.2)
    assert (told.coverage >= 0.8 - 1e-9).all(), "so it is by construction"
    if of == "numbers":
        found = model.predict_interval(X, 0.2)
        size = by_source(found[:, 1] - found[:, 0], d)
    else:
        size = by_source(model.predict_set(X, 0.2).sum(axis=1), d)
    np.testing.assert_allclose(told.size, size, rtol=0.15)


def rare_labels(n, seed):
    """Two sources; a label of one row in ten is easily taken for the other."""
    rng = np.random.default_rng(seed)
    d, rare = np.repeat(["a", "b"], n), rng.random(2 * n) < 0.1
    X = np.repeat([-3.0, 3.0], n) + rng.normal(size=2 * n) + 1.5 * rare
    return X[:, None], np.where(rare, "rare", "usual"), d


@pytest.fixture(scope="module")
def unequal():
    sources = given(rare_labels(500, 5), LogisticRegression)
    return DistributionWeightedClassifier.from_sources(sources).fit(*rare_labels(1000, 0))


def test_each_label_of_each_source_is_covered_if_that_is_asked_for(unequal):
    """Coverage of all rows may miss a rare label; by label it may not."""
    X, y, d = rare_labels(4000, 1)
    rare = y == "rare"
    plain, by_label = (unequal.predict_set(X, 0.1, by_label=by) for by in (False, True))
    assert by_source(plain[rare, 0], d[rare]).max() < 0.6
    assert by_source(by_label[rare, 0], d[rare]).min() > 0.82
    assert by_source(by_label[~rare, 1], d[~rare]).min() > 0.87


def test_a_label_with_few_rows_is_spoken_for_by_its_source(unequal):
    X, y, d = rare_labels(200, 2)
    few = np.r_[np.flatnonzero(y == "rare")[:3], np.flatnonzero(y == "usual")]
    new = rare_labels(2000, 1)[0]
    for rows, same in ((few, True), (np.arange(len(y)), False)):
        given_rows = X[rows], y[rows], d[rows]
        plain = unequal.predict_set(new, 0.1, calibration=given_rows)[:, 0]
        by_label = unequal.predict_set(new, 0.1, calibration=given_rows, by_label=True)[:, 0]
        assert np.array_equal(plain, by_label) == same


def test_chunks_give_what_the_whole_gives(numbers, labels, monkeypatch):
    X, Z = noisy(40, 1)[0], classification(40, 1)[0]
    whole = numbers.predict_interval(X), labels.predict_set(Z)
    monkeypatch.setattr(_conformal, "CHUNK_NUMBERS", 500)
    np.testing.assert_allclose(numbers.predict_interval(X), whole[0], atol=1e-6)
    np.testing.assert_array_equal(labels.predict_set(Z), whole[1])


def test_tables_calibrate_as_their_rows_do(numbers):
    rows, X = noisy(100, seed=2), noisy(20, seed=1)[0]
    expected = numbers.predict_interval(X, calibration=rows)
    found = numbers.predict_interval(X, calibration=numbers.evaluate(*rows))
    np.testing.assert_array_equal(found, expected)


def test_too_few_rows_leave_everything_in_and_a_warning_names_the_source(numbers, labels):
    X, y, d = noisy(30, seed=2)
    some = np.r_[np.arange(30), 30:35]
    with pytest.warns(UserWarning, match=r"too few rows to refuse one: south \(5\); each needs 9"):
        found = numbers.predict_interval(X, 0.1, calibration=(X[some], y[some], d[some]))
    assert np.isinf(found).all()
    with pytest.warns(UserWarning, match=r"a \(300\), b \(300\), c \(300\); each needs 999"):
        assert labels.predict_set(classification(5)[0], 0.001).all()
    few = numbers.coverage(0.001)
    assert np.isinf(few.size).all()
    assert few.coverage.tolist() == [1, 1]


def test_what_cannot_be_done_is_refused_in_a_sentence(numbers, labels):
    X, y, _ = noisy(20)
    with pytest.warns(UserWarning, match="without sample_domain"):
        alone = DistributionWeightedRegressor(Ridge()).fit(X, y)
    with pytest.raises(ValueError, match="need several sources, and this model has one"):
        alone.predict_interval(X)
    with pytest.raises(ValueError, match=r"is a share between 0 and 1: write 0\.9, not 90"):
        numbers.predict_interval(X, 90)
    with pytest.raises(TypeError, match=r"calibration is \(X, y, sample_domain\)"):
        numbers.predict_interval(X, calibration=X)
    with pytest.raises(ValueError, match="calibration tables need targets"):
        numbers.predict_interval(X, calibration=numbers.evaluate(X))
    assert not hasattr(numbers, "predict_set")
    assert not hasattr(labels, "predict_interval")


def test_tables_of_sites_give_sets_too(labels, numbers):
    """Of a label its probability is enough, of a number its error; by label it is not."""
    tables = numbers.tables_
    told = replace(
        tables,
        predictions=tables.predictions - tables.targets,
        targets=np.zeros(tables.n_points),
        at_label=True,
    )
    model = DistributionWeightedRegressor.from_sources(numbers.sources, consult=False)
    found = model.fit_tables(told)
    X, y, d = noisy(1000, seed=1)
    assert by_source(inside(found.predict_interval(X), y), d).min() > 0.84
    tables = labels.tables_
    at = np.arange(tables.n_points)
    said = tables.predictions[:, at, tables.targets][:, :, None]
    told = replace(tables, predictions=said, targets=np.zeros(tables.n_points, int), at_label=True)
    model = DistributionWeightedClassifier.from_sources(labels.sources, consult=False)
    found = model.fit_tables(told)
    X, y, d = classification(500, seed=1)
    covered = found.predict_set(X)[np.arange(len(y)), np.searchsorted(found.classes_, y)]
    assert by_source(covered, d).min() > 0.84
    assert np.isnan(found.coverage().size).all()
    with pytest.raises(ValueError, match="by_label needs the label of each held-out row"):
        found.predict_set(X, by_label=True)


def test_the_report_has_what_the_model_says(numbers):
    told = summarise(numbers)["sets"]
    assert told["sentence"] == numbers.coverage().sentence
    assert told["coverage"] == numbers.coverage().coverage.tolist()
