"""TextDensity: against counts by hand, scikit-learn's naive Bayes, and BigramModel; its manners."""

import re
from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from anymix.densities import BigramModel, SharedVocabulary, TextDensity

BOOKS = ["A good plot, a good end.", "The plot was bad", "Good plot", ""]
PANS = ["A good pan for eggs!", "The pan was bad: eggs stick", "good pan"]
TEXTS = BOOKS + PANS
texts = st.lists(st.text("abcAB' .,", max_size=20), min_size=1, max_size=8)


def tokens(text):
    return re.findall("[a-z']+", text.lower())


@given(train=texts, others=texts, min_count=st.integers(1, 3))
def test_scores_equal_counts_by_hand(train, others, min_count):
    """log P = Σ_w log c(w) / C, c at least one half, ends of documents counted as a word."""
    total = Counter(word for text in train + others for word in tokens(text))
    words = {word for word, n in total.items() if n >= min_count}
    density = TextDensity(min_count=min_count)
    if not words:
        with pytest.raises(ValueError, match="no word occurs"):
            density.with_shared(train + others)
        return
    shared = density.with_shared(train + others)
    assert shared.vocabulary == sorted(words)
    met = Counter(word for text in train for word in tokens(text) if word in words)
    counts = {word: max(met[word], 0.5) for word in words} | {"end": len(train)}
    whole = sum(counts.values())
    expected = [
        sum(log(counts[word] / whole) for word in [*filter(words.__contains__, tokens(t)), "end"])
        for t in others
    ]
    np.testing.assert_allclose(shared.fit(train).score_samples(others), expected, rtol=1e-12)


def test_sources_are_told_apart_as_by_naive_bayes():
    """Where all words are met in all sources, only the end of a document differs from sklearn's."""
    sources = [["a a b", "b b a c"], ["c c c a", "b c a"]]
    shared = TextDensity().with_shared(sources[0] + sources[1])
    logs = [clone(shared).fit(own).score_samples(["a b", "c c a"]) for own in sources]
    peer = MultinomialNB(alpha=0, force_alpha=True, fit_prior=False)
    # An end is one more word, as in the model.
    counter = CountVectorizer(token_pattern=r"\S+")
    peer.fit(counter.fit_transform([f"{t} ." for own in sources for t in own]), [0, 0, 1, 1])
    theirs = peer.predict_log_proba(counter.transform(["a b .", "c c a ."]))
    np.testing.assert_allclose(logs[0] - logs[1], theirs[:, 0] - theirs[:, 1], rtol=1e-9)


@pytest.mark.parametrize("smoothing", ["katz", "absolute", "unigram"])
def test_is_the_bigram_model_of_the_tokens(smoothing):
    density = TextDensity(smoothing, min_count=1).fit(BOOKS)
    cut = [tokens(text) for text in TEXTS]
    peer = BigramModel(smoothing).fit(cut[: len(BOOKS)])
    np.testing.assert_array_equal(density.score_samples(TEXTS), peer.score_samples(cut))
    np.testing.assert_array_equal(density.score_samples(cut), peer.score_samples(cut))
    np.testing.assert_array_equal(density.score_samples(iter(TEXTS)), peer.score_samples(cut))
    assert density.perplexity(BOOKS) == peer.perplexity(cut[: len(BOOKS)])
    drawn = density.sample(20, random_state=0)
    assert [tokens(text) for text in drawn] == peer.sample(20, random_state=0)
    again = clone(density).fit(cut[: len(BOOKS)])
    assert again.sample(20, random_state=0) == peer.sample(20, random_state=0)


def test_the_union_has_the_words_that_tell_sources_apart():
    books, pans = (clone(TextDensity().with_shared(TEXTS)).fit(own) for own in (BOOKS, PANS))
    assert books.vocabulary_ == pans.vocabulary_
    gap = books.score_samples(["plot", "pan", "eggs"]) - pans.score_samples(["plot", "pan", "eggs"])
    assert (gap > 0).tolist() == [True, False, False]


def test_a_given_vocabulary_stays_and_copies_are_not_fitted():
    density = TextDensity(vocabulary=["good", "bad"]).fit(BOOKS)
    copy = density.with_shared(TEXTS, sample_domain=[0, 0, 0, 0, 1, 1, 1])
    assert copy.vocabulary == ["good", "bad"]
    with pytest.raises(NotFittedError):
        copy.score_samples(TEXTS)


@pytest.mark.parametrize("form", ["series", "frame", "array", "column"])
def test_takes_documents_in_every_form(form):
    pandas = pytest.importorskip("pandas")
    array = np.array(TEXTS, dtype=object)
    forms = {
        "series": pandas.Series(TEXTS, index=range(5, 5 + len(TEXTS))),
        "frame": pandas.DataFrame({"review": TEXTS}),
        "array": array,
        "column": array[:, None],
    }
    found = TextDensity().with_shared(forms[form]).fit(forms[form]).score_samples(forms[form])
    np.testing.assert_array_equal(found, TextDensity().fit(TEXTS).score_samples(TEXTS))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TextDensity().fit("a text"), TypeError, "list of str; got str"),
        (
            lambda: TextDensity().fit(["a text", None]),
            TypeError,
            "got NoneType: write a missing text",
        ),
        (lambda: TextDensity().fit([["a"], "b"]), TypeError, "got str"),
        (lambda: TextDensity().fit([]), ValueError, "corpus is empty"),
        (lambda: TextDensity().fit(["a b"]), ValueError, "no word occurs 2 times"),
        (
            lambda: TextDensity("good").with_shared(TEXTS),
            ValueError,
            "smoothing must be .* not 'good'",
        ),
        (lambda: TextDensity(token_pattern="(a)(b)").fit(TEXTS), ValueError, "groups"),
        (
            lambda: TextDensity(token_pattern=r"\w+").fit(TEXTS).to_arrays(),
            ValueError,
            r"token_pattern='.*' cannot be packed",
        ),
    ],
)
def test_failures_name_cause_and_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_two_columns_are_refused():
    frame = pytest.importorskip("pandas").DataFrame({"a": TEXTS, "b": TEXTS})
    with pytest.raises(TypeError, match="got DataFrame"):
        TextDensity().fit(frame)


def test_what_is_handed_over_knows_no_rare_word_and_no_pair():
    rows = ["a good pan"] * 6 + ["secret pan"]
    density = TextDensity(vocabulary=["good", "never", "pan", "secret"]).fit(rows)
    assert len(density.table_.keys) == 0
    shared = density.shareable()
    assert shared.vocabulary_ == density.vocabulary_
    assert shared.table_.log_unigram[1] == shared.table_.log_unigram[3]
    assert "each met in 5 documents or more, or in none" in shared.reveals()
    # 6 good, 7 pan, 7 ends, and two words of half a meeting.
    np.testing.assert_allclose(np.exp(shared.table_.log_unigram[[0, 2]]), [6 / 21, 7 / 21])
    assert isinstance(shared.sample(1, random_state=0)[0], str)


def test_sites_agree_on_words_without_their_documents():
    words = SharedVocabulary(words="any")
    counts = [words.word_counts(site, min_documents=2) for site in (BOOKS, PANS)]
    density = TextDensity(vocabulary=words.fit_counts(counts).vocabulary_)
    assert density.fit(BOOKS).vocabulary_ == ["eggs", "good", "pan", "plot"]
