"""SharedVocabulary: against plain loops and scikit-learn's CountVectorizer."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from anymix.densities.bigram import BigramModel
from anymix.densities.text_density import SharedVocabulary

REVIEWS = Path(__file__).parents[3] / "shared/data/sentiment/amazon_reviews_8000.jsonl.gz"
TEXTS = ["Good book, good plot", "a good pan!", "The plot is good.", "Good? It's a pan", ""]
DOMAINS = ["books", "kitchen", "books", "kitchen", "books"]

texts = st.lists(st.text("abAB' .", max_size=20), min_size=1, max_size=10)


@given(docs=texts, min_count=st.integers(1, 3), seed=st.integers(0, 1000))
def test_vocabulary_and_counts_equal_plain_loops(docs, min_count, seed):
    domain = np.random.default_rng(seed).integers(0, 3, len(docs))
    counts = {d: Counter() for d in domain.tolist()}
    for text, d in zip(docs, domain.tolist(), strict=True):
        counts[d].update(re.findall("[a-z']+", text.lower()))
    often = [{w for w, n in c.items() if n >= min_count} for c in counts.values()]
    shared = sorted(set.intersection(*often))
    model = SharedVocabulary(min_count)
    if not shared:
        with pytest.raises(ValueError, match="no word occurs"):
            model.fit(docs, sample_domain=domain)
        return
    found = model.fit(docs, sample_domain=domain).transform(docs)
    assert model.vocabulary_ == shared
    peer = CountVectorizer(vocabulary=shared, token_pattern="[a-z']+").transform(docs)
    np.testing.assert_array_equal(found.toarray(), peer.toarray())


@given(docs=texts, min_count=st.integers(1, 3), seed=st.integers(0, 1000))
def test_the_union_equals_scikit_learn_s_words_of_all_documents(docs, min_count, seed):
    domain = np.random.default_rng(seed).integers(0, 3, len(docs))
    model = SharedVocabulary(min_count, words="any")
    if not re.search("[a-z']", " ".join(docs).lower()):
        return
    peer = CountVectorizer(token_pattern="[a-z']+")
    often = np.ravel(peer.fit_transform(docs).sum(axis=0)) >= min_count
    expected = peer.get_feature_names_out()[often].tolist()
    if not expected:
        with pytest.raises(ValueError, match="all domains together"):
            model.fit(docs, sample_domain=domain)
        return
    assert model.fit(docs, sample_domain=domain).vocabulary_ == expected
    assert all(
        set(SharedVocabulary(min_count).fit(docs[k : k + 1]).vocabulary_) <= set(expected)
        for k in range(len(docs))
        if any(n >= min_count for n in Counter(re.findall("[a-z']+", docs[k].lower())).values())
    )


@pytest.mark.parametrize("words", ["every", "any"])
@pytest.mark.parametrize("min_documents", [1, 2])
def test_sites_find_the_words_of_documents_in_one_place(words, min_documents):
    """The union of counts that travelled as JSON is that of the documents without rare words."""
    model = SharedVocabulary(1, words=words)
    sites = [[t for t, d in zip(TEXTS, DOMAINS, strict=True) if d == name] for name in set(DOMAINS)]
    counts = [model.word_counts(site, min_documents) for site in sites]
    found = model.fit_counts(json.loads(json.dumps(counts))).vocabulary_
    met = [
        Counter(w for t in site for w in set(re.findall("[a-z']+", t.lower()))) for site in sites
    ]
    kept = [{word for word, n in one.items() if n >= min_documents} for one in met]
    assert found == sorted(set.intersection(*kept) if words == "every" else set.union(*kept))


@pytest.mark.parametrize(
    "counts",
    [
        ["good"],
        {"good": "2"},
        {"good": True},
        {"good": 0},
        {"two words": 3},
        {"<s>": 3},
        {"": 3},
        {"a" * 10_000: 3},
        {"good": 10**400},
        {3: 3},
    ],
)
def test_counts_of_strangers_that_are_none_are_refused_in_one_sentence(counts):
    with pytest.raises(ValueError, match="site 1") as caught:
        SharedVocabulary().fit_counts([{"good": 2}, counts])
    assert len(str(caught.value)) < 300


def test_tokens_keep_their_order():
    model = SharedVocabulary(1, output="tokens").fit(TEXTS, sample_domain=DOMAINS)
    assert model.vocabulary_ == ["good"]
    assert model.transform(TEXTS) == [["good", "good"], ["good"], ["good"], ["good"], []]


def test_works_in_pipelines():
    lm = make_pipeline(SharedVocabulary(2, output="tokens"), BigramModel("witten_bell"))
    lm.fit(TEXTS, sharedvocabulary__sample_domain=None)
    assert lm.score_samples(TEXTS).shape == (5,)
    ridge = make_pipeline(SharedVocabulary(1), Ridge()).fit(TEXTS, np.arange(5.0))
    assert ridge.predict(TEXTS).shape == (5,)


def test_feature_names_are_the_columns():
    model = SharedVocabulary().fit(TEXTS)
    assert model.get_feature_names_out().tolist() == ["a", "good", "pan", "plot"]
    assert model.transform(["pan PAN plot"]).toarray().tolist() == [[0, 0, 2, 1]]


def test_is_a_scikit_learn_citizen():
    model = SharedVocabulary(3, token_pattern="[0-9]", lowercase=False, output="tokens")
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "vocabulary_")
    assert SharedVocabulary().fit_transform(TEXTS, sample_domain=None).shape == (5, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: SharedVocabulary().fit("good book"), TypeError, "got str"),
        (lambda: SharedVocabulary().fit([["good"]]), TypeError, "got list"),
        (lambda: SharedVocabulary().fit(TEXTS, sample_domain=[0]), ValueError, "5 rows"),
        (lambda: SharedVocabulary(output="x").fit(TEXTS), ValueError, "output must be .* not 'x'"),
        (
            lambda: SharedVocabulary(words="all").fit(TEXTS),
            ValueError,
            "words must be .* not 'all'",
        ),
        (lambda: SharedVocabulary(9, words="any").fit(TEXTS), ValueError, "all domains together"),
        (lambda: SharedVocabulary().word_counts(TEXTS, 0), ValueError, "min_documents is 0"),
        (lambda: SharedVocabulary().fit_counts([]), ValueError, "no word occurs"),
        (
            lambda: SharedVocabulary(0).fit(TEXTS),
            ValueError,
            "min_count must be a whole number of 1 or more, not 0",
        ),
        (lambda: SharedVocabulary().fit([]), ValueError, "no word occurs"),
        (lambda: SharedVocabulary(token_pattern="(a)(b)").fit(TEXTS), ValueError, "groups"),
        (lambda: SharedVocabulary().transform(TEXTS), NotFittedError, "not fitted"),
    ],
)
def test_failures_name_cause_and_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.skipif(not REVIEWS.is_file(), reason="the reviews are not beside the project")
def test_the_reviews_share_about_2500_words():
    """The paper has 2500 words; the review texts give 2492, with their titles 2555."""
    with gzip.open(REVIEWS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    domain = [row["domain"] for row in rows]
    text = [row["text"] for row in rows]
    titled = [row["title"] + " " + row["text"] for row in rows]
    assert len(SharedVocabulary(2).fit(text, sample_domain=domain).vocabulary_) == 2492
    assert len(SharedVocabulary(2).fit(titled, sample_domain=domain).vocabulary_) == 2555
