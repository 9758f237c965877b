"""log D/U by a classifier: closed forms, mixed tables, what travels, and refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from anymix.densities import ContrastiveDensity, GaussianKDE, Reference, Summary
from anymix.exceptions import InputError

SQUARES = make_pipeline(PolynomialFeatures(2, include_bias=False), LogisticRegression(C=1e6))


class Normal:
    """A reference in closed form: normal numbers of this mean and deviation."""

    def __init__(self, mean=0.0, deviation=1.0):
        self.mean, self.deviation = mean, deviation

    def sample(self, n, random_state):
        return random_state.normal(self.mean, self.deviation, (n, 1))


def rows(mean=0.0, deviation=1.0, n=4000, seed=0):
    return np.random.default_rng(seed).normal(mean, deviation, (n, 1))


def table(n=400, seed=0, site="north"):
    rng = np.random.default_rng(seed)
    north = site == "north"
    found = pd.DataFrame(
        {
            "age": rng.normal(40 if north else 55, 8, n),
            "code": rng.choice([1, 2, 3], n, p=[0.6, 0.3, 0.1] if north else [0.1, 0.3, 0.6]),
            "word": rng.choice(["a", "b"], n, p=[0.7, 0.3] if north else [0.3, 0.7]),
        }
    )
    found.loc[rng.random(n) < 0.2, "age"] = np.nan
    found.loc[rng.random(n) < 0.2, "word"] = None
    return found


def two_sites(n=400):
    both = pd.concat([table(n, 1), table(n, 2, "south")], ignore_index=True)
    return both, np.repeat(["north", "south"], n)


def test_two_normal_distributions_have_their_ratio_in_closed_form():
    density = ContrastiveDensity(SQUARES, Normal(0.5, 2.0), n_draws=4, random_state=0)
    density.fit(rows(0.0, 1.0))
    x = np.linspace(-3, 3, 13)[:, None]
    exact = norm.logpdf(x[:, 0], 0, 1) - norm.logpdf(x[:, 0], 0.5, 2)
    np.testing.assert_allclose(density.score_samples(x), exact, atol=0.25)


def test_the_number_of_draws_does_not_change_the_ratio():
    few, many = (
        ContrastiveDensity(SQUARES, Normal(), n_draws=n, least_draws=1, random_state=0)
        .fit(rows(1.0))
        .score_samples([[0.0], [0.5], [1.0]])
        for n in (0.5, 8)
    )
    np.testing.assert_allclose(few, [-0.5, 0.0, 0.5], atol=0.15)
    np.testing.assert_allclose(many, [-0.5, 0.0, 0.5], atol=0.15)


def test_a_source_that_is_the_reference_scores_nothing():
    for estimator in (SQUARES, None):
        density = ContrastiveDensity(estimator, Normal(), random_state=0).fit(rows())
        assert np.abs(density.score_samples(rows(seed=1)).mean()) < 0.1


def test_trees_find_the_ratio_of_two_known_sources():
    X, site = np.concatenate([rows(-1), rows(1, seed=1)]), np.repeat([0, 1], 4000)
    shared = ContrastiveDensity(random_state=0).with_shared(X, site)
    north, south = (clone(shared).fit(X[site == k]) for k in (0, 1))
    x = np.linspace(-2, 2, 41)[:, None]
    ratio = south.score_samples(x) - north.score_samples(x)
    # log N(x; 1, 1) - log N(x; -1, 1) = 2 x
    assert np.mean(np.abs(ratio - 2 * x[:, 0])) < 0.5
    assert np.mean((ratio > 0) == (x[:, 0] > 0)) > 0.9


def test_weights_count_as_rows_would():
    X = np.concatenate([rows(-1, n=1000), rows(1, n=1000, seed=1)])
    weight = np.repeat([3.0, 1.0], 1000)
    one = ContrastiveDensity(SQUARES, Normal(0, 2), random_state=0).fit(X, sample_weight=weight)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    two = ContrastiveDensity(SQUARES, Normal(0, 2), random_state=0).fit(repeated)
    x = np.array([[-1.0], [0.0], [1.0]])
    np.testing.assert_allclose(one.score_samples(x), two.score_samples(x), atol=0.2)
    with pytest.raises(ValueError, match="non-zero"):
        one.fit(X, sample_weight=np.zeros(2000))


@pytest.mark.parametrize("kind", ["marginals", "centres", "both"])
def test_words_codes_and_gaps_are_taken_as_they_are(kind):
    X, site = two_sites()
    shared = ContrastiveDensity(reference=kind, random_state=0).with_shared(X, site)
    assert isinstance(shared.reference, Reference)
    assert shared.reference.kind == kind
    north, south = (clone(shared).fit(X[site == name]) for name in ("north", "south"))
    new = pd.concat([table(200, 3), table(200, 4, "south")])
    right = (north.score_samples(new) > south.score_samples(new)) == np.repeat([True, False], 200)
    assert right.mean() > 0.8
    odd = pd.DataFrame({"word": ["never seen", None], "code": [7, None], "age": [1e9, None]})
    for density in (north, south):
        assert np.isfinite(density.score_samples(odd)).all()
        assert np.isfinite(density.log_density(odd)).all()
        encoded = density.columns_.encode(new)
        np.testing.assert_array_equal(density.score_samples(encoded), density.score_samples(new))
        drawn = density.sample(3000, random_state=0)
        assert set(drawn[:, 1]) == {1.0, 2.0, 3.0}
    assert np.nanmean(south.sample(3000, 0)[:, 0]) == pytest.approx(55, abs=2)
    assert np.nanmean(north.sample(3000, 0)[:, 0]) == pytest.approx(40, abs=2)


def test_sites_that_share_summaries_alone_agree_with_rows_in_one_place():
    X, site = two_sites()
    summaries = [Summary.of(X[site == name], name=name) for name in ("north", "south")]
    U = Reference.from_summaries(summaries)
    shared = ContrastiveDensity(reference=U, random_state=0)
    assert shared.with_shared(X, site).reference is U
    north, south = (clone(shared).fit(X[site == name]) for name in ("north", "south"))
    right = (north.score_samples(X) > south.score_samples(X)) == (site == "north")
    assert right.mean() > 0.8


def test_columns_that_are_empty_or_constant_are_no_trouble():
    X = pd.DataFrame({"empty": [None] * 60, "one": 1.0, "word": "w", "x": np.arange(60.0)})
    X["rare"] = [f"word {i}" for i in range(60)]
    for kind in ("marginals", "both"):
        density = ContrastiveDensity(reference=kind, random_state=0).fit(X)
        assert np.isfinite(density.log_density(X)).all()
        again = ContrastiveDensity.from_arrays(density.to_arrays(), 5)
        encoded = density.columns_.encode(X)
        np.testing.assert_array_equal(again.score_samples(encoded), density.score_samples(X))


@pytest.mark.parametrize("n", [1, 3, 30])
def test_few_rows_are_enough(n):
    density = ContrastiveDensity(random_state=0).fit(rows(n=n))
    assert np.isfinite(density.score_samples(rows(n=50))).all()


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        RandomForestClassifier(20, random_state=0),
        make_pipeline(SimpleImputer(), LogisticRegression()),
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier_serves(estimator):
    X = np.concatenate([rows(0, n=300), rows(0, n=300, seed=5)], axis=1)
    weight = np.ones(300)
    density = ContrastiveDensity(estimator, random_state=0).fit(X, sample_weight=weight)
    scores = density.score_samples(np.concatenate([X, [[1e3, -1e3]]]))
    assert np.isfinite(scores).all()
    # P is kept within 1e-7 of 0 and 1.
    assert np.abs(scores - density.offset_).max() <= np.log(1e7) + 1e-6
    assert (density.trees_ is not None) == isinstance(estimator, HistGradientBoostingClassifier)


def test_scores_are_the_log_odds_of_the_classifier():
    density = ContrastiveDensity(random_state=0).fit(rows(n=500))
    x = rows(n=200, seed=1)
    p = density.model_.predict_proba(x)[:, 1]
    odds = np.log(p / (1 - p)) + np.log(4000 / 500)
    np.testing.assert_allclose(density.score_samples(x), odds, atol=1e-9)


def test_another_density_may_be_the_reference():
    kde = GaussianKDE(0.5).fit(rows(0, 2, n=500))
    density = ContrastiveDensity(SQUARES, kde, random_state=0).fit(rows())
    x = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_allclose(density.log_density(x), norm.logpdf(x[:, 0]), atol=0.3)
    with pytest.raises(InputError, match="draws of GaussianKDE cannot be packed"):
        ContrastiveDensity(reference=kde, random_state=0).fit(rows()).to_arrays()
    with pytest.raises(InputError, match="Normal has no log_density"):
        ContrastiveDensity(reference=Normal(), random_state=0).fit(rows()).log_density(x)


def test_what_cannot_be_done_has_a_sentence():
    X, _ = two_sites()
    with pytest.raises(
        InputError, match=r"has missing values, which LogisticRegression does not take; impute"
    ):
        ContrastiveDensity(LogisticRegression()).fit(X)
    with pytest.raises(InputError, match=r"RandomForestClassifier cannot be packed; use est"):
        ContrastiveDensity(RandomForestClassifier(5)).fit(rows(n=99)).to_arrays()
    with pytest.raises(ValueError, match="kind='centers' is not known"):
        ContrastiveDensity(reference="centers").fit(X)
    with pytest.raises(ValueError, match="n_draws must be a number above 0"):
        ContrastiveDensity(n_draws=0).fit(X)
    with pytest.raises(InputError, match="has no column 'word'"):
        ContrastiveDensity(random_state=0).fit(X).score_samples(X[["age", "code"]])
    density = ContrastiveDensity(LogisticRegression(), Normal(), random_state=0).fit(rows())
    with pytest.raises(InputError, match="has missing values"):
        density.score_samples([[np.nan]])


def packed():
    X, site = two_sites(200)
    shared = ContrastiveDensity(reference="both", random_state=0).with_shared(X, site)
    return shared.fit(X[site == "north"]), X


def test_it_comes_back_with_words_and_gaps():
    density, X = packed()
    again = ContrastiveDensity.from_arrays(density.to_arrays(), 3)
    np.testing.assert_array_equal(again.score_samples(X), density.score_samples(X))
    np.testing.assert_array_equal(again.log_density(X), density.log_density(X))
    np.testing.assert_array_equal(again.sample(20, 0), density.sample(20, 0))
    assert again.shareable() is again
    assert again.reveals() == density.reveals()
    assert "trees that tell rows from draws" in density.reveals()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"offset": np.array([100.0])}, "offset"),
        ({"reference": np.frombuffer(b"{}", np.uint8)}, "must have the parts"),
        ({"reference": np.frombuffer(b'{"a": NaN}', np.uint8)}, "not plain JSON"),
        ({"more": np.zeros(1)}, "must hold the arrays"),
        ({"trees_more": np.zeros(1)}, r"\w"),
    ],
)
def test_strangers_are_not_trusted(change, cause):
    density, _ = packed()
    with pytest.raises(ValueError, match=cause):
        ContrastiveDensity.from_arrays(density.to_arrays() | change, 3)
    with pytest.raises(ValueError, match="has 3 columns, where 4 are expected"):
        ContrastiveDensity.from_arrays(density.to_arrays(), 4)


def test_no_row_travels():
    density, X = packed()
    arrays = density.to_arrays()
    told = json.loads(arrays["reference"].tobytes())
    assert told["kind"] == "both"
    numbers = {v for v in np.concatenate([np.ravel(a) for a in arrays.values()]) if v % 1}
    assert not numbers & set(X["age"].dropna())
