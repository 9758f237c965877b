"""A Gaussian mixture with the number of components chosen by BIC."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from anymix.densities import TemperatureScaling
from anymix.densities.gaussian_mixture import GaussianMixtureDensity


@parametrize_with_checks([GaussianMixtureDensity(max_components=2)])
def test_follows_scikit_learn(estimator, check):
    check(estimator)


def groups(centres, n=120, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, len(centre))) + centre for centre in centres])


@pytest.mark.parametrize("centres", [[[0, 0]], [[0, 0], [8, 0]], [[0, 0], [8, 0], [0, 8]]])
def test_bic_finds_the_number_of_groups(centres):
    density = GaussianMixtureDensity(max_components=5, random_state=0).fit(groups(centres))
    assert density.n_components_ == len(centres)
    assert density.bic_.shape == (5,)
    assert density.bic_[density.n_components_ - 1] == density.bic_.min()


def test_one_component_is_the_normal_of_maximum_likelihood():
    X = groups([[1, -1]])
    density = GaussianMixtureDensity(max_components=1, regularisation=0, background=0).fit(X)
    expected = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-9)
    n_parameters = 5
    bic = -2 * expected.sum() + n_parameters * np.log(len(X))
    np.testing.assert_allclose(density.bic_, [bic])


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_integrates_to_one_and_samples_match(covariance_type):
    X = groups([[0], [6]])
    density = GaussianMixtureDensity(covariance_type=covariance_type, random_state=0).fit(X)
    grid = np.linspace(-200, 206, 40_001)
    logs = density.score_samples(grid[:, None])
    assert trapezoid(np.exp(logs), grid) == pytest.approx(1, abs=1e-6)
    drawn = density.sample(20_000, random_state=0)
    assert -density.score(drawn) == pytest.approx(-trapezoid(np.exp(logs) * logs, grid), abs=0.03)
    np.testing.assert_array_equal(drawn, density.sample(20_000, random_state=0))
    assert abs(drawn[:10_000].mean() - drawn[10_000:].mean()) < 0.2  # rows come in random order


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_far_from_the_origin_no_digits_are_lost(covariance_type):
    """Expanding (x − m)² would cost four digits of the log-density at a million deviations."""
    X = groups([[0, 0], [8, 0]]) + 1e6
    density = GaussianMixtureDensity(2, covariance_type=covariance_type, random_state=0).fit(X)
    parts = zip(*density.to_arrays().values(), strict=True)
    logs = [np.log(w) + multivariate_normal(m, S).logpdf(X) for w, m, S in parts]
    expected = logsumexp(logs, axis=0)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"covariances": np.array([[[1.0, 0.5], [0.4, 1.0]]])}, "not symmetric"),
        ({"covariances": np.array([[[1.0, 2.0], [2.0, 1.0]]])}, "not positive definite"),
        ({"covariances": np.array([[[1.0, 0.0], [0.0, -1.0]]])}, "not positive definite"),
        ({"weights": np.array([0.9])}, "positive weights that sum to 1"),
        ({"means": np.array([[0.0, 1e101]])}, "means that are not finite"),
    ],
)
def test_arrays_that_are_no_mixture(change, words):
    sound = {"weights": np.ones(1), "means": np.zeros((1, 2)), "covariances": np.eye(2)[None]}
    one = GaussianMixtureDensity.from_arrays(sound, 2)
    assert one.score_samples([[0.0, 0.0]]) == pytest.approx(-np.log(2 * np.pi))
    with pytest.raises(ValueError, match=words):
        GaussianMixtureDensity.from_arrays(sound | change, 2)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_unit_of_the_data_does_not_matter(scale):
    X = groups([[0, 0], [8, 0]])
    plain = GaussianMixtureDensity(max_components=3, random_state=0).fit(X)
    scaled = GaussianMixtureDensity(max_components=3, random_state=0).fit(X * scale)
    np.testing.assert_allclose(
        scaled.score_samples(X * scale), plain.score_samples(X) - 2 * np.log(scale), rtol=1e-6
    )


def test_units_of_single_columns_do_not_matter():
    """Regularised by the mean variance, a column in small units would be blurred away."""
    X, units = groups([[0, 0], [8, 0]]), np.array([1e-4, 1e4])
    plain = GaussianMixtureDensity(max_components=3, random_state=0).fit(X)
    scaled = GaussianMixtureDensity(max_components=3, random_state=0).fit(X * units)
    np.testing.assert_allclose(scaled.score_samples(X * units), plain.score_samples(X), rtol=1e-6)
    np.testing.assert_allclose(scaled.mixture_.predict(X * units), plain.mixture_.predict(X))


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_the_mixture_of_scikit_learn_is_in_the_units_of_the_rows(covariance_type):
    X = groups([[0, 0], [8, 0]]) * [1.0, 50.0] + 7
    options = {"covariance_type": covariance_type, "random_state": 0}
    density = GaussianMixtureDensity(2, background=0, **options).fit(X)
    expected = density.mixture_.score_samples(X)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-9)
    assert density.bic_[density.n_components_ - 1] == pytest.approx(density.mixture_.bic(X))


def taxed_cars(seed, n=300):
    """Two sources with a column that is mostly one value, and sometimes another one."""
    rng = np.random.default_rng(seed)
    domain = np.arange(n) % 2
    tax = np.where(rng.random(n) < 0.97, 145.0, 145.0 + rng.normal(0, 40, n))
    return np.c_[rng.normal(size=(n, 2)) + 1.5 * domain[:, None], tax], domain


def test_values_that_repeat_do_not_ruin_the_calibration():
    """A row beside a spike of equal values must not outweigh what all other rows say."""
    X, domain = taxed_cars(0)
    held, truth = taxed_cars(1)
    fitted = [GaussianMixtureDensity(random_state=0).fit(X[domain == k]) for k in (0, 1)]
    logs = np.stack([density.score_samples(held) for density in fitted])
    assert logs.max(axis=0).min() > -50
    calibration = TemperatureScaling().fit(logs, truth)
    assert calibration.temperature_.max() < 10
    log_r = calibration.transform(logs)
    assert (log_r.argmax(axis=0) == truth).mean() > 0.8
    assert -log_r[truth, np.arange(len(truth))].mean() < 0.45


def test_the_wide_gaussian_stands_for_rows_that_were_not_seen():
    X = groups([[0, 0]])
    with_it = GaussianMixtureDensity(1, background=3.0).fit(X)
    without = GaussianMixtureDensity(1, background=0).fit(X)
    n, far = len(X), np.array([[30.0, -20.0], [0.0, 0.0]])
    wide = multivariate_normal(X.mean(axis=0), np.diag(100 * X.var(axis=0))).logpdf(far)
    body = without.score_samples(far)
    expected = np.logaddexp(np.log(n / (n + 3)) + body, np.log(3 / (n + 3)) + wide)
    np.testing.assert_allclose(with_it.score_samples(far), expected, rtol=1e-9)
    assert with_it.n_components_ == 1
    assert [len(d.to_arrays()["weights"]) for d in (with_it, without)] == [2, 1]
    with pytest.raises(ValueError, match="background must be a number of 0 or more, not -1"):
        GaussianMixtureDensity(background=-1).fit(X)


def test_equal_rows_give_one_narrow_component():
    density = GaussianMixtureDensity().fit(np.ones((6, 2)))
    assert density.n_components_ == 1
    assert density.score_samples([[1.0, 1.0]]) > 0 > density.score_samples([[2.0, 1.0]])


def test_components_never_outnumber_distinct_rows():
    X = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    assert len(GaussianMixtureDensity(random_state=0).fit(X).bic_) == 3


def test_constant_features_are_allowed():
    X = np.hstack([groups([[0]]), np.full((120, 1), 3.0)])
    density = GaussianMixtureDensity(max_components=2, random_state=0).fit(X)
    assert np.isfinite(density.score_samples(X)).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="minimum of 2 is required by GaussianMixtureDensity"):
        GaussianMixtureDensity().fit([[1.0]])
    with pytest.raises(
        ValueError, match="max_components must be a whole number of 1 or more, not 0"
    ):
        GaussianMixtureDensity(max_components=0).fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="NaN"):
        GaussianMixtureDensity().fit([[1.0], [np.nan]])


def test_a_chosen_mixture_that_did_not_settle_is_told(monkeypatch):
    fit = GaussianMixture.fit

    def unsettled(self, X):
        fit(self, X).converged_ = False
        return self

    monkeypatch.setattr(GaussianMixture, "fit", unsettled)
    with pytest.warns(ConvergenceWarning, match="did not settle"):
        GaussianMixtureDensity(max_components=1).fit(groups([[0]]))
