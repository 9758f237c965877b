"""Words are counted once, and models trained on the counts are the ordinary ones."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anymix import DistributionWeightedClassifier
from anymix.densities import CountedTexts, ask, counted, fit_on

RNG = np.random.default_rng(0)
WORDS = np.array(["good", "bad", "plot", "pan", "a", "the", "page", "oven", "Über", "x1"])
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(0, 9))) for _ in range(120)]
LABELS = np.array(["good" in text for text in TEXTS])
MODEL = make_pipeline(TfidfVectorizer(min_df=2, ngram_range=(1, 2)), LogisticRegression())
TRAIN, TEST = np.arange(0, 120, 2), np.arange(1, 120, 2)


def some(rows):
    return [TEXTS[i] for i in rows]


@pytest.mark.parametrize("settings", [{}, {"sublinear_tf": True}, {"norm": None, "min_df": 3}])
def test_the_pipeline_is_the_one_of_the_texts(settings):
    model = clone(MODEL).set_params(**{f"tfidfvectorizer__{k}": v for k, v in settings.items()})
    due = clone(model).fit(some(TRAIN), LABELS[TRAIN])
    texts = counted(TEXTS, [model], training=True)
    assert isinstance(texts, CountedTexts)
    found = fit_on(clone(model), texts.take(TRAIN), LABELS[TRAIN])
    assert found[0].vocabulary_ == due[0].vocabulary_
    np.testing.assert_array_equal(found[0].idf_, due[0].idf_)
    expected = due.predict_proba(some(TEST))
    for proba in (found.predict_proba(some(TEST)), ask(found, "predict_proba", texts.take(TEST))):
        np.testing.assert_allclose(proba, expected, atol=1e-12)
    new = counted(["a good plot", "nothing known", ""], [found])
    due_new = due.predict_proba(["a good plot", "nothing known", ""])
    np.testing.assert_allclose(ask(found, "predict_proba", new), due_new, atol=1e-12)


@pytest.mark.parametrize(
    "other",
    [
        make_pipeline(CountVectorizer(), LogisticRegression()),
        make_pipeline(TfidfVectorizer(ngram_range=(1, 3)), LogisticRegression()),
        make_pipeline(TfidfVectorizer(analyzer="char"), LogisticRegression()),
        make_pipeline(TfidfVectorizer(min_df=1, ngram_range=(1, 2)), LogisticRegression()),
    ],
)
def test_models_that_cut_otherwise_get_the_texts(other):
    texts = counted(TEXTS, [MODEL], training=True)
    due = clone(other).fit(some(TRAIN), LABELS[TRAIN]).predict_proba(some(TEST))
    found = fit_on(clone(other), texts.take(TRAIN), LABELS[TRAIN])
    np.testing.assert_allclose(ask(found, "predict_proba", texts.take(TEST)), due, atol=1e-12)


def test_what_is_no_list_of_texts_stays_as_it_is():
    for odd in (np.zeros((3, 2)), [["a", "b"]], [], None):
        assert counted(odd, [MODEL]) is odd
    assert counted(TEXTS, [LogisticRegression()]) is TEXTS
    with pytest.raises(ValueError, match=r"no terms remain|empty vocabulary"):
        fit_on(clone(MODEL), counted(["", " "], [MODEL]), [0, 1])


def test_fit_and_predict_cut_each_text_once(monkeypatch):
    cut = []
    analyze = TfidfVectorizer.build_analyzer

    def spy(self):
        work = analyze(self)
        return lambda text: [cut.append(text), work(text)][1]

    monkeypatch.setattr(CountVectorizer, "build_analyzer", spy)
    site = np.repeat([0, 1, 2], 40)
    model = DistributionWeightedClassifier(random_state=0).fit(TEXTS, LABELS, sample_domain=site)
    assert sorted(cut) == sorted(TEXTS)
    cut.clear()
    model.predict_proba(some(TEST))
    assert sorted(cut) == sorted(some(TEST))
