"""The domain classifier around any classifier: tables with words and gaps, documents, packing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from anymix.densities.domain_classifier import DomainClassifier
from anymix.exceptions import InputError
from tests.densities.density_checks import damaged

TREES = HistGradientBoostingClassifier(max_iter=20, random_state=0)


def patients(n=400, seed=0):
    """Hospitals that differ in a word, in where a number is missing, and in a number."""
    rng = np.random.default_rng(seed)
    hospital = np.array(["east", "north", "west"])[np.arange(n) % 3]
    words = np.where(hospital == "west", "blue", rng.choice(["red", "green"], n))
    dose = np.where(hospital == "north", np.nan, rng.normal(size=n))
    frame = pd.DataFrame({"age": rng.normal(50, 9, n), "drug": words, "dose": dose})
    frame.loc[::17, "drug"] = None
    return frame, hospital


@pytest.mark.parametrize("estimator", [TREES, RandomForestClassifier(30, random_state=0)])
def test_a_frame_with_words_and_gaps(estimator):
    X, hospital = patients()
    new, truth = patients(seed=1)
    classifier = DomainClassifier(estimator).fit(X, hospital)
    log_r = classifier.log_responsibilities(new)
    assert (classifier.domains_[log_r.argmax(axis=0)] == truth).mean() > 0.9
    unseen = new.assign(drug="violet")
    missing = new.assign(drug=None)
    np.testing.assert_array_equal(
        classifier.log_responsibilities(unseen), classifier.log_responsibilities(missing)
    )
    with pytest.raises(ValueError, match="feature names"):
        classifier.log_responsibilities(new.drop(columns="dose"))


def test_boosted_trees_know_which_columns_are_categories():
    X, hospital = patients()
    told = DomainClassifier(TREES).fit(X, hospital).model_
    assert told.is_categorical_.tolist() == [False, True, False]
    named = clone(TREES).set_params(categorical_features=["drug"])
    found = DomainClassifier(named).fit(X, hospital)
    assert found.model_.is_categorical_.tolist() == [False, True, False]
    none = clone(TREES).set_params(categorical_features=None)
    assert DomainClassifier(none).fit(X, hospital).model_.is_categorical_ is None


def test_arrays_with_gaps_and_arrays_of_words():
    X, hospital = patients()
    numbers = X[["age", "dose"]].to_numpy()
    by_gap = DomainClassifier(TREES).fit(numbers, hospital)
    north = by_gap.log_responsibilities(numbers)[1]
    assert np.exp(north[hospital == "north"]).min() > 0.9
    framed = DomainClassifier(TREES).fit(X, hospital)
    listed = DomainClassifier(TREES).fit(X.to_numpy(dtype=object), hospital)
    np.testing.assert_array_equal(
        listed.log_responsibilities(X.to_numpy(dtype=object)), framed.log_responsibilities(X)
    )


class Witness(GaussianNB):
    """Looks at what reaches it."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X
        return super().fit(X[["age"]], y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(X[["age"]])


def test_a_pipeline_gets_the_frame_untouched():
    X, hospital = patients()
    classifier = DomainClassifier(make_pipeline(Witness())).fit(X, hospital)
    assert classifier.model_[-1].seen_ is X
    assert classifier.log_responsibilities(X).shape == (3, len(X))


TEXTS = ["the film was long", "a good film", "the blender broke", "a loud blender"] * 5
KINDS = ["films", "films", "kitchen", "kitchen"] * 5


@pytest.mark.parametrize("container", [list, np.array, pd.Series, lambda t: np.array(t, object)])
def test_documents(container):
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    classifier = DomainClassifier(pipeline).fit(container(TEXTS), KINDS)
    log_r = classifier.log_responsibilities(container(["film film", "blender", "unknown words"]))
    assert log_r.argmax(axis=0)[:2].tolist() == [0, 1]
    expected = pipeline.fit(TEXTS, KINDS).predict_proba(["film film"])[0]
    np.testing.assert_allclose(np.exp(log_r[:, 0]), expected, rtol=1e-9)  # sizes are equal
    with pytest.raises(InputError, match="takes numbers, not documents; give an estimator"):
        DomainClassifier().fit(container(TEXTS), KINDS)


def test_documents_as_tokens_of_one_source():
    pipeline = make_pipeline(TfidfVectorizer(analyzer=list), LogisticRegression())
    tokens = [text.split() for text in TEXTS]
    two = DomainClassifier(pipeline).fit(tokens, KINDS)
    assert two.log_responsibilities([["film"], ["blender"]]).argmax(axis=0).tolist() == [0, 1]
    one = DomainClassifier(pipeline).fit(tokens, ["films"] * len(tokens))
    np.testing.assert_array_equal(one.log_responsibilities(tokens), np.zeros((1, len(tokens))))


def test_sizes_are_divided_out_by_the_closed_form():
    """Naive Bayes on Gaussians is the truth itself, whatever the sizes."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 30_000), rng.normal(2, 0.5, 3_000)])[:, None]
    classifier = DomainClassifier(GaussianNB()).fit(X, np.repeat([0, 1], [30_000, 3_000]))
    points = np.linspace(-2, 3, 40)
    logs = np.stack([norm.logpdf(points, 0, 1), norm.logpdf(points, 2, 0.5)])
    found = np.exp(classifier.log_responsibilities(points[:, None]))
    np.testing.assert_allclose(found, np.exp(logs - logsumexp(logs, axis=0)), atol=0.03)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 4))
def test_brute_force_of_the_formula(seed, p):
    """Forests say 0 where no tree voted for a source: the clip keeps logarithms finite."""
    rng = np.random.default_rng(seed)
    X, domain = rng.normal(size=(40, 2)), np.r_[np.arange(p), rng.integers(0, p, 40 - p)]
    forest = RandomForestClassifier(3, random_state=0)
    log_r = DomainClassifier(forest).fit(X, domain).log_responsibilities(X)
    P = np.clip(clone(forest).fit(X, domain).predict_proba(X), 1e-7, 1)
    ratios = P / (np.bincount(domain) / 40)
    expected = ratios / ratios.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(log_r), expected.T, rtol=1e-9, atol=1e-15)
    assert np.isfinite(log_r).all()


def test_weights_reach_the_estimator_and_the_sizes():
    X, hospital = patients(90)
    weight = np.where(hospital == "west", 2.0, 1.0)
    plain = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9))
    numbers = X[["age"]].to_numpy()
    found = DomainClassifier(plain).fit(numbers, hospital, sample_weight=weight)
    assert found.log_prior_ == pytest.approx(np.log([0.25, 0.25, 0.5]))
    own = clone(plain).fit(numbers, hospital, logisticregression__sample_weight=weight)
    np.testing.assert_allclose(found.model_.predict_proba(numbers), own.predict_proba(numbers))
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight"):
        DomainClassifier(KNeighborsClassifier()).fit(numbers, hospital, sample_weight=weight)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_boosted_trees_come_back_from_their_arrays(p):
    rng = np.random.default_rng(p)
    domain = np.arange(300) % p
    X = rng.normal(size=(300, 3)) + domain[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    classifier = DomainClassifier(TREES).fit(X, domain)
    arrays = classifier.to_arrays()
    again = DomainClassifier.from_arrays(arrays, 3)
    expected = classifier.log_responsibilities(X)
    np.testing.assert_array_equal(again.log_responsibilities(X), expected)
    np.testing.assert_allclose(
        np.exp(expected), _by_hand(classifier, X, domain), rtol=1e-6, atol=1e-9
    )
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name])
    assert again.reveals() == classifier.reveals()
    assert again.reveals().endswith("no row.")


def _by_hand(classifier, X, domain):
    P = np.clip(classifier.model_.predict_proba(X), 1e-7, 1) / np.bincount(domain)
    return (P / P.sum(axis=1, keepdims=True)).T


def test_words_travel_with_the_trees():
    X, hospital = patients()
    classifier = DomainClassifier(TREES).fit(X, hospital)
    arrays = classifier.to_arrays()
    again = DomainClassifier.from_arrays(arrays, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = again.log_responsibilities(X)
    np.testing.assert_array_equal(found, classifier.log_responsibilities(X))
    for what, broken in damaged(arrays):
        if what == "no columns":
            continue  # trees that are asked with numbers alone
        with pytest.raises(ValueError, match=r"\w") as caught:
            DomainClassifier.from_arrays(broken, 3)
        assert "\n" not in str(caught.value), what
    for d in (2, 4):
        with pytest.raises(ValueError, match=rf"there are {d} features"):
            DomainClassifier.from_arrays(arrays, d)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "not described as they must be"),
        (b'{"names": ["a"], "categories": [null]}', "describes 1 columns"),
        (b'{"names": ["a", "a", "b"], "categories": [null, null, null]}', "not described as"),
    ],
)
def test_columns_of_strangers(content, words):
    arrays = DomainClassifier(TREES).fit(*patients()).to_arrays()
    arrays["columns"] = np.frombuffer(content, np.uint8)
    with pytest.raises(ValueError, match=words):
        DomainClassifier.from_arrays(arrays, 3)


def test_trees_of_another_number_of_domains_are_refused():
    X, hospital = patients()
    arrays = DomainClassifier(TREES).fit(X, hospital).to_arrays()
    arrays["log_prior"] = np.log(np.full(4, 0.25))
    with pytest.raises(ValueError, match="has 3 scores, where 4 domains need 4"):
        DomainClassifier.from_arrays(arrays, 3)


def test_bad_input_speaks():
    X, hospital = patients()
    with pytest.raises(InputError, match=r"column 'drug' holds words.*HistGradientBoosting"):
        DomainClassifier().fit(X, hospital)
    with pytest.raises(InputError, match="LinearSVC has no predict_proba"):
        DomainClassifier(LinearSVC()).fit(X[["age"]], hospital)
    forest = DomainClassifier(RandomForestClassifier(2)).fit(X[["age"]], hospital)
    with pytest.raises(InputError, match="RandomForestClassifier cannot be packed; give Domain"):
        forest.to_arrays()


def test_the_tuned_trees_route_a_curved_border():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    domain = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(int)
    classifier = DomainClassifier.boosted(random_state=0).fit(X[:2000], domain[:2000])
    found = classifier.log_responsibilities(X[2000:]).argmax(axis=0)
    assert (found == domain[2000:]).mean() > 0.95
    assert clone(classifier).estimator.random_state == 0
