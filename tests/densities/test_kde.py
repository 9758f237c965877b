"""GaussianKDE as a user meets it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.integrate import trapezoid
from scipy.stats import gaussian_kde, norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

from anymix.densities.kde import GaussianKDE


@parametrize_with_checks([GaussianKDE()])
def test_follows_scikit_learn(estimator, check):
    check(estimator)


def normal(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_agrees_with_scikit_learn_where_that_is_right():
    X = normal(300, 3)
    ours = GaussianKDE(0.4).fit(X).score_samples(X[:50] + 0.1)
    theirs = KernelDensity(bandwidth=0.4, leaf_size=1000).fit(X).score_samples(X[:50] + 0.1)
    np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-6)


def test_agrees_with_scipy_on_weighted_rows():
    X, w = normal(200, 1), np.random.default_rng(1).uniform(0.1, 2, 200)
    scott = GaussianKDE("scott").fit(X, sample_weight=w)
    theirs = gaussian_kde(X.T, bw_method=scott.bandwidth_ / X.std(ddof=1), weights=w)
    # scipy scales by its own weighted deviation; undo that to compare the same bandwidth
    theirs.set_bandwidth(scott.bandwidth_ / np.sqrt(theirs._data_covariance[0, 0]))
    points = np.linspace(-3, 3, 31)
    np.testing.assert_allclose(
        scott.score_samples(points[:, None]), theirs.logpdf(points), atol=1e-4
    )


@pytest.mark.parametrize("seed", range(3))
def test_cross_validation_agrees_with_grid_search_on_the_same_folds(seed):
    X = normal(230, 3, seed)
    kde = GaussianKDE(n_folds=4, random_state=seed).fit(X)
    search = GridSearchCV(
        KernelDensity(leaf_size=1000),
        {"bandwidth": kde.bandwidths_},
        cv=KFold(4, shuffle=True, random_state=seed),
    ).fit(X)
    sums = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(4)]).sum(axis=0)
    np.testing.assert_allclose(kde.cv_scores_, sums / len(X), atol=1e-4)
    assert kde.bandwidth_ == search.cv_results_["params"][np.argmax(sums)]["bandwidth"]


def test_leave_one_out_agrees_with_refits():
    X = normal(40, 2)
    kde = GaussianKDE("loo", random_state=0).fit(X)
    refits = [
        [
            GaussianKDE(h).fit(np.delete(X, i, axis=0)).score_samples(X[i : i + 1])[0]
            for i in range(40)
        ]
        for h in kde.bandwidths_[::7]
    ]
    np.testing.assert_allclose(kde.cv_scores_[::7], np.mean(refits, axis=1), atol=1e-4)


@pytest.mark.parametrize("d", [1, 2, 20, 300])
@pytest.mark.parametrize("n", [12, 400])
def test_the_best_bandwidth_is_inside_the_grid(n, d):
    X = normal(n, d) * np.geomspace(1, 5, d)
    kde = GaussianKDE(random_state=0).fit(X)
    assert kde.bandwidths_.min() < kde.bandwidth_ < kde.bandwidths_.max()


def test_cross_validation_nears_the_truth_as_rows_grow():
    test = normal(4000, 2, seed=9)
    truth = norm.logpdf(test).sum(axis=1).mean()
    gaps = [truth - GaussianKDE(random_state=0).fit(normal(n, 2)).score(test) for n in (50, 2000)]
    assert gaps[1] < gaps[0] / 3
    assert gaps[1] < 0.05


@pytest.mark.parametrize("centres", [None, 20])
def test_integrates_to_one(centres):
    grid = np.linspace(-9, 9, 181)
    line = GaussianKDE(centres=centres, random_state=0).fit(normal(150, 1))
    assert trapezoid(np.exp(line.score_samples(grid[:, None])), grid) == pytest.approx(1, abs=1e-5)
    plane = GaussianKDE(centres=centres, random_state=0).fit(normal(150, 2))
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    values = np.exp(plane.score_samples(points)).reshape(181, 181)
    assert trapezoid(trapezoid(values, grid), grid) == pytest.approx(1, abs=1e-4)


def test_samples_have_the_entropy_of_the_estimate():
    kde = GaussianKDE(0.5).fit([[0.0], [3.0]], sample_weight=[1, 3])
    grid = np.linspace(-5, 8, 2001)
    logs = kde.score_samples(grid[:, None])
    entropy = -trapezoid(np.exp(logs) * logs, grid)
    drawn = kde.sample(20_000, random_state=0)
    assert -kde.score(drawn) == pytest.approx(entropy, abs=0.03)
    np.testing.assert_array_equal(drawn[:5], kde.sample(20_000, random_state=0)[:5])


def test_samples_from_centres_have_the_moments_of_the_rows():
    X = normal(2000, 2) * [1, 3] + [5, -5]
    drawn = GaussianKDE(0.01, centres=30, random_state=0).fit(X).sample(20_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.1)
    # clusters are round, so variance within them moves between features but its sum stays
    assert drawn.var(axis=0).sum() == pytest.approx(X.var(axis=0).sum(), rel=0.03)


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 40),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-1e3, 1e3),
)
def test_moving_and_scaling_the_data_moves_the_density(seed, d, scale, shift):
    X, Q = normal(30, d, seed), normal(7, d, seed + 1)
    plain = GaussianKDE(0.7).fit(X).score_samples(Q)
    moved = GaussianKDE(0.7 * scale).fit(X * scale + shift).score_samples(Q * scale + shift)
    np.testing.assert_allclose(moved, plain - d * np.log(scale), atol=2e-4, rtol=2e-6)


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(lambda c: sum(c) > 1))
def test_weights_count_rows(counts):
    X = normal(8, 2)
    weighted = GaussianKDE("scott" if np.count_nonzero(counts) > 1 else 1.0)
    repeated = clone(weighted).fit(np.repeat(X, counts, axis=0))
    weighted.set_params(bandwidth=repeated.bandwidth_).fit(X, sample_weight=counts)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-4)


def test_repeated_rows_are_held_out_together():
    X = normal(60, 2)
    once = GaussianKDE(random_state=0).fit(X)
    twice = GaussianKDE(random_state=0).fit(np.vstack([X, X]))
    np.testing.assert_allclose(twice.cv_scores_, once.cv_scores_, atol=1e-6)
    assert twice.bandwidth_ == once.bandwidth_
    assert GaussianKDE(random_state=0).fit(X, sample_weight=np.full(60, 2)).bandwidth_ == (
        once.bandwidth_
    )


def test_constant_features_are_allowed():
    X = np.hstack([normal(100, 2), np.full((100, 1), 7.0)])
    kde = GaussianKDE(random_state=0).fit(X)
    assert np.isfinite(kde.score_samples(X)).all()
    assert 0 < kde.bandwidth_ < 1


@pytest.mark.parametrize("bandwidth", ["cv", "loo", "scott", "silverman"])
@pytest.mark.parametrize("n", [1, 6])
def test_equal_rows_need_a_number(bandwidth, n):
    X = np.full((n, 2), 0.1)
    with pytest.raises(ValueError, match=f"n_samples = {n} equal ones; pass the bandwidth"):
        GaussianKDE(bandwidth).fit(X)
    assert GaussianKDE(1.0).fit(X).score_samples(X)[0] == pytest.approx(-np.log(2 * np.pi))


@pytest.mark.parametrize("bandwidth", ["cv", "loo"])
def test_two_rows_are_enough(bandwidth):
    kde = GaussianKDE(bandwidth, random_state=0).fit([[0.0], [1.0]])
    assert kde.bandwidth_ == pytest.approx(1, rel=0.08)  # the maximum of -1/2h^2 - log h


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.inf, np.nan, "best"])
def test_bad_bandwidths_are_refused(bandwidth):
    with pytest.raises(ValueError, match="or a number above 0, not"):
        GaussianKDE(bandwidth).fit(normal(5, 1))


def test_bad_bandwidths_in_the_grid_are_refused():
    with pytest.raises(ValueError, match=r"must be positive and finite; got \[1, -1\]"):
        GaussianKDE(bandwidths=[1, -1]).fit(normal(5, 1))
    with pytest.raises(ValueError, match=r"must be positive and finite; got \[\]"):
        GaussianKDE(bandwidths=[]).fit(normal(5, 1))


def test_bad_rows_and_weights_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        GaussianKDE().fit([[0.0], [np.nan]])
    with pytest.raises(TypeError, match="dense data is required"):
        GaussianKDE().fit(sparse.eye_array(3, format="csr"))
    with pytest.raises(ValueError, match="weights"):
        GaussianKDE().fit([[0.0], [1.0]], sample_weight=[0, 0])


def test_near_copies_of_every_row_are_refused():
    X = normal(20, 1)
    pairs = np.vstack([np.hstack([X, 0 * X]), np.hstack([X, 0 * X + 1e-100])])
    with pytest.raises(ValueError, match="every row has a near copy; pass bandwidth='scott'"):
        GaussianKDE("loo", random_state=0).fit(pairs)


def test_centres_never_stand_for_fewer_than_five_rows():
    X = np.vstack([normal(200, 2), [[50.0, 50.0]]])
    kde = GaussianKDE(centres=30, random_state=0).fit(X)
    assert kde.weights_.min() * 201 > 4.99
    assert np.abs(kde.centres_[:, None] - X).sum(axis=-1).min() > 1e-6
    few = GaussianKDE(1.0, centres=3, random_state=0).fit(X[:3])
    np.testing.assert_allclose(few.centres_, X[:3].mean(axis=0, keepdims=True))


def test_no_centres_are_refused():
    with pytest.raises(
        ValueError, match="centres must be a whole number of 1 or more, or None, not 0"
    ):
        GaussianKDE(centres=0).fit(normal(20, 1))


def test_rows_that_hardly_count_are_left_away():
    kde = GaussianKDE(1.0).fit([[0.0], [1.0], [2.0]], sample_weight=[1, 1e-40, 0])
    assert kde.centres_.tolist() == [[0.0]]


def test_centres_cost_little_likelihood():
    X, test = normal(1500, 4), normal(1500, 4, seed=1)
    rows = GaussianKDE(random_state=0).fit(X).score(test)
    centres = GaussianKDE(centres=60, random_state=0).fit(X).score(test)
    assert centres > rows - 0.1


def test_centres_do_not_keep_the_rows():
    kde = GaussianKDE(centres=4, random_state=0).fit(normal(100, 2))
    assert kde.centres_.shape == (4, 2)
    with pytest.raises(ValueError, match="use 'cv' with centres"):
        GaussianKDE("loo", centres=4).fit(normal(100, 2))
