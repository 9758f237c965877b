"""What is trained where nobody says: tables as they are, texts, vectors; which density and why."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.densities import ContrastiveDensity, DomainClassifier, GaussianKDE
from anymix.estimators import _fitting, default_estimator
from anymix.estimators._automatic import choose_density
from anymix.sources import SecondRound


def mixed(n=150, seed=0):
    """Two hospitals with words, gaps, booleans and codes; the label depends on all of them."""
    rng = np.random.default_rng(seed)
    site = np.repeat(["north", "south"], n)
    age = rng.normal(np.where(site == "north", 40, 60), 8)
    ward = rng.choice(["a", "b", "c"], 2 * n, p=[0.5, 0.3, 0.2])
    smokes = rng.random(2 * n) < 0.3
    score = (age - 50) / 10 + (ward == "b") + smokes + np.where(site == "north", 1, -1)
    y = np.where(score + rng.logistic(size=2 * n) > 0.5, "ill", "well")
    frame = pd.DataFrame({"age": age, "ward": ward, "smokes": smokes, "empty": np.nan})
    frame["ward"] = frame["ward"].where(rng.random(2 * n) > 0.1)
    frame.loc[rng.random(2 * n) < 0.1, "age"] = np.nan
    frame["stage"] = pd.Categorical(rng.choice(["I", "II"], 2 * n))
    frame.loc[site == "south", "empty"] = 1.0  # all gaps in the north
    return frame, y, site


@pytest.fixture(scope="module")
def fitted():
    frame, y, site = mixed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return DistributionWeightedClassifier(random_state=0).fit(frame, y, sample_domain=site)


def test_a_frame_with_words_and_gaps_is_one_line(fitted):
    frame, y, site = mixed(seed=1)
    assert fitted.score(frame, y) > 0.58
    assert fitted.predict_proba(frame).shape == (300, 2)
    assert set(fitted.learner_choice_.names) >= {"linear", "trees"}
    assert fitted.columns_.names == tuple(frame.columns)
    fresh = fitted.certify(frame, y, site)
    assert fresh.source_losses.shape == (2,)


def test_columns_are_found_by_name_and_unseen_words_are_gaps(fitted):
    frame, _, _ = mixed(seed=1)
    turned = frame[frame.columns[::-1]].assign(more=1)
    assert np.array_equal(fitted.predict_proba(turned), fitted.predict_proba(frame))
    odd, gap = frame.assign(ward="unheard of"), frame.assign(ward=None)
    with pytest.warns(UserWarning, match="column 'ward' has only categories never seen in fit"):
        said = fitted.predict_proba(odd)
    assert np.array_equal(said, fitted.predict_proba(gap))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f.drop(columns="age"), "has no column 'age'"),
        (lambda f: f.assign(age="old"), "column 'age' holds 'old', but held numbers"),
        (lambda f: f.assign(age=np.inf), "column 'age' of X contains infinity"),
        (lambda f: ["a text"] * len(f), "holds texts, but the model"),
    ],
)
def test_tables_that_disagree_get_one_sentence(fitted, change, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        fitted.predict(change(mixed(seed=1)[0]))
    assert "\n" not in str(caught.value)


def test_columns_that_change_their_kind(fitted):
    frame = mixed(seed=1)[0]
    with pytest.raises(ValueError, match="column 'age' holds dates"):
        fitted.predict(frame.assign(age=pd.Timestamp("2020-01-01")))
    coded = frame.assign(age=frame["age"].astype("category"))
    assert np.array_equal(fitted.predict_proba(coded), fitted.predict_proba(frame))
    with pytest.raises(ValueError, match="is a dictionary"):
        fitted.predict({"age": [1.0]})


def test_texts_with_gaps_and_tables_for_texts():
    texts, y, site = ["good plot", "bad pan"] * 30, [0, 1] * 30, np.repeat([0, 1], 30)
    model = DistributionWeightedClassifier(random_state=0).fit(texts, y, sample_domain=site)
    for odd in (["good", None], [None, "good"]):
        with pytest.raises(ValueError, match=r"row \d of X has no text"):
            model.predict(odd)
    with pytest.raises(ValueError, match="holds no texts"):
        model.predict(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(ValueError, match="lists of tokens"):
        DistributionWeightedClassifier().fit([t.split() for t in texts], y, sample_domain=site)


def test_texts_of_any_language():
    good, bad = "\u0445\u043e\u0440\u043e\u0448\u0430\u044f", "\u043f\u043b\u043e\u0445\u0430\u044f"
    books, pans = (
        "\u043a\u043d\u0438\u0433\u0430",
        "\u043a\u0430\u0441\u0442\u0440\u044e\u043b\u044f",
    )
    site, tone = np.repeat([books, pans], 40), np.tile([good, bad], 40)
    texts = [f"{t} {s}" for t, s in zip(tone, site, strict=True)]
    model = DistributionWeightedClassifier(random_state=0).fit(texts, tone, sample_domain=site)
    assert model.score(texts, tone) == 1.0


def test_given_sources_without_densities_are_judged_on_rows_that_no_density_has_seen():
    rng = np.random.default_rng(1)
    site = np.repeat(["a", "b"], 150)
    X = rng.normal(size=(300, 5))  # nothing tells the sources apart
    y = np.where(site == "a", 1.0, -1.0) + 0.1 * rng.normal(size=300)
    given = [
        Source(name, lambda X, sign=sign: np.full(len(X), sign))
        for name, sign in (("a", 1.0), ("b", -1.0))
    ]
    model = DistributionWeightedRegressor.from_sources(given, random_state=0)
    model.fit(X, y, sample_domain=site)
    assert model.density_choice_.losses.min() > 0.8


def test_rows_that_are_set_aside_choose_no_density(monkeypatch):
    frame, y, site = mixed(60)
    seen = []

    def spy(trainer, rows, tables, fold, goal, options):
        seen.append(goal.set_aside)
        return choose_density(trainer, rows, tables, fold, goal, options)

    monkeypatch.setattr(_fitting, "choose_density", spy)
    third = np.where(np.arange(120) % 3 == 0, "west", site)
    model = DistributionWeightedClassifier(set_aside=["west"], random_state=0)
    model.fit(frame, y, sample_domain=third)
    assert seen == [(2,)]


def test_weights_reach_second_rounds_and_comparisons():
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(300, 3)), np.repeat(["a", "b", "c"], 100)
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    weight = np.where(rng.random(300) < 0.3, 0.0, 1.0)
    y[weight == 0] = 1e3
    frame = pd.DataFrame(X, columns=list("uvw")).assign(gap=np.nan)
    model = DistributionWeightedRegressor(random_state=0)
    model.fit(frame, y, sample_domain=site, sample_weight=weight)
    sound = weight > 0
    assert np.mean((model.predict(frame[sound]) - y[sound]) ** 2) < 0.5
    own = model.comparison_.loss[:3, :3].diagonal()
    assert np.allclose(own, np.diag(model.cross_loss_.mean), rtol=1e-6)


def test_a_candidate_that_cannot_be_trained_is_left_out():
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(120, 3)), np.repeat([0, 1], 60)
    X[site == 1] = 1.0  # no bandwidth serves rows that are all alike
    model = DistributionWeightedRegressor(random_state=0).fit(X, X[:, 0], sample_domain=site)
    assert "kernels" not in model.density_choice_.names


@pytest.mark.parametrize("odd", [np.nan, "old"])
def test_gaps_and_words_where_complete_numbers_were(odd):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["u", "v"])
    site = np.repeat([0, 1], 30)
    model = DistributionWeightedRegressor(random_state=0).fit(
        frame, 2 * frame["u"], sample_domain=site
    )
    with pytest.raises(
        ValueError, match="complete numbers, as the rows of fit were, but column 'v'"
    ):
        model.predict(frame.assign(v=odd))


def test_dates_without_names_are_refused():
    frame, y, site = mixed()
    days = np.full((len(frame), 1), np.datetime64("2020-01-01"))
    with pytest.raises(ValueError, match="column 'x0' holds dates; give a DataFrame"):
        DistributionWeightedClassifier().fit(days, y, sample_domain=site)


def test_constant_and_empty_columns_change_nothing(fitted):
    frame, y, site = mixed()
    more = frame.assign(constant=7, nothing=np.nan)
    model = DistributionWeightedClassifier(density=ContrastiveDensity(random_state=0))
    plain = DistributionWeightedClassifier(density=ContrastiveDensity(random_state=0))
    for one in (model, plain):
        one.set_params(random_state=0, consult=False)
    one = model.fit(more, y, sample_domain=site).predict_proba(more)
    other = plain.fit(frame, y, sample_domain=site).predict_proba(frame)
    assert np.abs(one - other).mean() < 0.1


def test_the_density_is_chosen_by_the_held_out_loss(fitted):
    choice = fitted.density_choice_
    assert choice.chosen == choice.names[0]
    assert (np.diff(choice.losses) >= 0).all()
    assert set(choice.names) == {"contrast", "trees"}
    assert f"Weighed by {choice.chosen}" in str(choice)
    assert str(choice) in fitted.describe()


@pytest.mark.parametrize("density", ["auto", ContrastiveDensity(random_state=0)])
def test_novelty_keeps_a_density(density):
    frame, y, site = mixed()
    model = DistributionWeightedClassifier(density=density, random_state=0)
    model.fit(frame, y, sample_domain=site)
    typical = model.novelty(mixed(seed=1)[0])
    strange = model.novelty(mixed(seed=1)[0].assign(age=900.0))
    assert np.median(typical) < 0.8
    assert np.median(strange) > 0.95


def test_plain_numbers_of_any_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    site = np.repeat([0, 1], 100)
    X[site == 1] += 1
    y = X @ [1.0, 2.0, 3.0] * np.where(site, 1, -1)
    model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=site)
    wide = DistributionWeightedRegressor(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide.fit(X * [1.0, 1e3, 1e6], y, sample_domain=site)
    assert set(model.density_choice_.names) == {"contrast", "trees", "kernels", "linear classifier"}
    assert np.allclose(wide.predict(X * [1.0, 1e3, 1e6]), model.predict(X), rtol=0.05, atol=0.2)


def test_texts_in_one_line():
    rng = np.random.default_rng(0)
    words = {0: ["engine", "wheel", "oil"], 1: ["plot", "page", "author"]}
    site = np.repeat([0, 1], 60)
    mood = rng.integers(2, size=120)
    tone = np.where(mood, "good", "bad")
    texts = [f"a {t} {' '.join(rng.choice(words[s], 4))}" for t, s in zip(tone, site, strict=True)]
    model = DistributionWeightedClassifier(random_state=0).fit(texts, tone, sample_domain=site)
    assert model.score(texts, tone) > 0.95
    assert set(model.density_choice_.names) == {"words", "classifier of texts"}
    assert (model.novelty(["zebra zebra"]) >= 0).all()


@pytest.mark.parametrize("words", [["p", "q", "r"], ["the same"]])
def test_tables_of_words_alone(words):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.choice(words, 90)})
    y, site = rng.integers(2, size=90), np.repeat([0, 1, 2], 30)
    model = DistributionWeightedClassifier(random_state=0).fit(frame, y, sample_domain=site)
    assert np.isfinite(model.novelty(frame)).all()


def test_weights_leave_out_densities_that_take_none():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["good", "bad", "plot", "pan"], 5)) for _ in range(80)]
    y, site, weight = rng.integers(2, size=80), np.repeat([0, 1], 40), rng.random(80) + 0.1
    model = DistributionWeightedClassifier(random_state=0)
    model.fit(texts, y, sample_domain=site, sample_weight=weight)
    assert model.density_choice_.names == ("classifier of texts",)


def test_the_default_learner_says_what_it_is():
    assert isinstance(default_estimator(np.eye(5), classification=False), Pipeline)
    vectors = np.random.default_rng(0).normal(size=(30, 60))
    small, large = (default_estimator(vectors * s, classification=True) for s in (0.01, 1.0))
    assert np.isclose(small.C, 1e4 * large.C)


def test_a_second_round_is_kept_where_it_helps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    site = np.repeat(["a", "b", "c"], 200)
    common = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    own = np.select([site == "a", site == "b"], [X[:, 3], -X[:, 3]], 0.0)
    y = common + own + 0.1 * rng.normal(size=600)
    frame = pd.DataFrame(X, columns=list("stuvwxyz")).assign(gap=np.nan)
    model = DistributionWeightedRegressor(random_state=0).fit(frame, y, sample_domain=site)
    second = [isinstance(source.predictor, SecondRound) for source in model.sources_]
    assert any(second)
    alone = DistributionWeightedRegressor(random_state=0, consult=False)
    alone.fit(frame, y, sample_domain=site)
    assert not any(isinstance(source.predictor, SecondRound) for source in alone.sources_)
    assert model.certificate_.robust_loss < alone.certificate_.robust_loss
    new = rng.normal(size=(500, 8))
    rows = pd.DataFrame(new, columns=list("stuvwxyz")).assign(gap=np.nan)
    encoded = model.columns_.encode(rows)
    told = model.evaluate(rows).predictions
    for k, source in enumerate(model.sources_):
        assert np.allclose(told[k], source.predict(encoded))


def test_an_estimator_of_the_users_own_gets_the_frame():
    frame, y, site = mixed()
    seen = []

    class Looks(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            seen.append(type(X).__name__)
            self.inner_ = Ridge().fit(X[["age"]].fillna(0), y)
            return self

        def predict(self, X):
            return self.inner_.predict(X[["age"]].fillna(0))

    model = DistributionWeightedRegressor(Looks(), random_state=0)
    model.fit(frame, (y == "ill").astype(float), sample_domain=site)
    assert set(seen) == {"DataFrame"}
    assert model.columns_ is None
    assert model.density_choice_.chosen in ("contrast", "trees")


@pytest.mark.parametrize("density", [DomainClassifier.boosted(), GaussianKDE(scale="shared")])
def test_densities_that_share_something_can_be_given(density):
    frame, y, site = mixed()
    rows = frame[["age"]].fillna(50).assign(smokes=frame["smokes"].astype(float))
    model = DistributionWeightedClassifier(density=density, random_state=0)
    assert model.fit(rows, y, sample_domain=site).score(rows, y) > 0.6
