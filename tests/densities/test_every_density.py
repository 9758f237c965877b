"""What is exported is tested: every density and router, because it is in `__all__`."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from anymix import densities
from anymix.densities import (
    BigramModel,
    ContrastiveDensity,
    GaussianKDE,
    GaussianMixtureDensity,
)
from tests.densities import density_checks as checks
from tests.densities.density_cases import Case, cases, plain, routers

CASES = cases()
TRAVELLERS = [case for case in CASES if hasattr(case.make(1), "kind")]
ROUTERS = routers()


def name_of(thing):
    return thing.name if isinstance(thing, Case) else thing.__name__


@pytest.mark.parametrize("check", checks.CHECKS, ids=name_of)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_densities(case, check):
    check(case)


@pytest.mark.parametrize("check", checks.TRAVEL_CHECKS, ids=name_of)
@pytest.mark.parametrize("case", TRAVELLERS, ids=name_of)
def test_densities_that_travel(case, check):
    check(case)


def test_everything_that_scores_or_routes_is_listed_and_kinds_are_unique():
    exported = [getattr(densities, name) for name in densities.__all__]
    listed = {case.name.split("-")[0] for case in [*CASES, *ROUTERS]}
    asked = {
        c.__name__ for c in exported if {"score_samples", "log_responsibilities"} & set(dir(c))
    }
    assert listed == asked
    kinds = [c.kind for c in exported if hasattr(c, "kind")]
    assert len(set(kinds)) == len(kinds) >= 4


def rows_of_sources(p, dtype=np.float64):
    rng = np.random.default_rng(p)
    codes = np.arange(300) % p
    return (rng.normal(size=(300, 3)) + codes[:, None]).astype(dtype), codes


@pytest.mark.parametrize("case", ROUTERS, ids=name_of)
@pytest.mark.parametrize("p", [1, 2, 4])
def test_routers(case, p):
    X, codes = rows_of_sources(p)
    router = case.make(3).fit(X, codes)
    log_r = router.log_responsibilities(np.concatenate([X, [[1e5] * 3, [-1e5] * 3]]))
    assert log_r.shape == (p, 302)
    assert not np.isnan(log_r).any()
    np.testing.assert_allclose(logsumexp(log_r, axis=0), 0, atol=1e-9)
    own = log_r[codes, np.arange(300)]
    assert own.mean() > -np.log(p) + (0.1 if p > 1 else -1e-9)
    assert clone(router).get_params() == router.get_params()


@pytest.mark.parametrize("case", ROUTERS, ids=name_of)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_routers_come_back_from_their_arrays(case, p, dtype):
    X, codes = rows_of_sources(p, dtype)
    names = np.array(["north", "south", "west", "east"])[codes]
    router = case.make(3).fit(X, names)
    again = type(router).from_arrays(router.to_arrays(), 3)
    np.testing.assert_array_equal(again.log_responsibilities(X), router.log_responsibilities(X))
    assert again.domains_.tolist() == list(range(p))
    for what, arrays in checks.damaged(router.to_arrays()):
        with pytest.raises(ValueError, match=r"\w") as caught:
            type(router).from_arrays(arrays, 3)
        assert "\n" not in str(caught.value), what
    with pytest.raises(ValueError, match=r"\w"):
        type(router).from_arrays(router.to_arrays(), 4)
    assert router.reveals().endswith("no row.")


# Deliberately wrong densities, each beside the check that finds it.


class Mixture(GaussianMixtureDensity):
    """A right one, with few components so that it is fitted soon."""

    def __init__(
        self, max_components=2, *, covariance_type="full", regularisation=1e-6, random_state=None
    ):
        super().__init__(
            max_components,
            covariance_type=covariance_type,
            regularisation=regularisation,
            random_state=random_state,
        )


class TooHigh(Mixture):
    def score_samples(self, X):
        return super().score_samples(X) + 0.01


class TooWide(Mixture):
    def sample(self, n_samples=1, random_state=None):
        return 1.2 * super().sample(n_samples, random_state)


class AlwaysWide(Mixture):
    def fit(self, X, y=None):
        return super().fit(2 * np.asarray(X))


class LostFarAway(Mixture):
    def score_samples(self, X):
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.exp(super().score_samples(X)))
        return np.where(np.isinf(logs), np.nan, logs)


class OfOneColumn(Mixture):
    def score_samples(self, X):
        return super().score_samples(X)[:, None]


class ChangesItsMind(Mixture):
    def fit(self, X, y=None):
        self.max_components = 1
        return super().fit(X)


class PacksWrongly(Mixture):
    def to_arrays(self):
        arrays = super().to_arrays()
        return arrays | {"means": arrays["means"] * (1 + 1e-12)}


class TrustsEverybody(Mixture):
    @classmethod
    def from_arrays(cls, arrays, n_features):
        known = {name: arrays[name] for name in ("weights", "means", "covariances")}
        return super().from_arrays(known, n_features)


class TellsRows(GaussianKDE):
    def shareable(self):
        return self


class RatioTooHigh(ContrastiveDensity):
    def score_samples(self, X):
        return super().score_samples(X) + 0.5


class OtherRatio(ContrastiveDensity):
    def sample(self, n_samples=1, random_state=None):
        return 1.2 * super().sample(n_samples, random_state)


class TooHighForWords(BigramModel):
    def score_samples(self, X):
        return super().score_samples(X) + 0.001


class OtherWords(BigramModel):
    def sample(self, n_samples=1, random_state=None):
        return [[*document[::-1], "a"] for document in super().sample(n_samples, random_state)]


WRONG = [
    (TooHigh, checks.integrates_to_one),
    (TooWide, checks.samples_agree),
    (AlwaysWide, checks.comes_near_the_truth),
    (LostFarAway, checks.far_points_are_very_unlikely),
    (OfOneColumn, checks.scores_are_one_number_a_row),
    (ChangesItsMind, checks.is_cloned_without_what_it_learned),
    (PacksWrongly, checks.comes_back_from_its_arrays),
    (TrustsEverybody, checks.refuses_arrays_that_are_not_sound),
    (TellsRows, checks.hands_over_no_row),
    (RatioTooHigh, checks.integrates_to_one),
    (OtherRatio, checks.samples_agree),
    (TooHighForWords, checks.integrates_to_one),
    (OtherWords, checks.samples_agree),
]


@pytest.mark.parametrize(("wrong", "check"), WRONG, ids=name_of)
def test_a_wrong_density_fails_because_it_is_exported(wrong, check, monkeypatch):
    monkeypatch.setattr(densities, wrong.__name__, wrong, raising=False)
    monkeypatch.setattr(densities, "__all__", [*densities.__all__, wrong.__name__])
    case = next(case for case in cases() if case.name == f"{wrong.__name__}-plain")
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(case)
    check(Case("right", plain(wrong.__mro__[1])))
