"""BigramModel as an estimator: its numbers against brute force, its manners, its edges."""

from collections import Counter
from itertools import chain, pairwise
from math import exp, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from anymix.densities.bigram import BigramModel

SMOOTHINGS = ["katz", "kneser_ney", "witten_bell", "absolute", "unigram"]
DOCS = [["the", "cat", "sat"], ["the", "dog", "sat"], ["the", "cat"], []]

words = st.sampled_from(["a", "b", "c", "d", "e"])
corpora = st.lists(st.lists(words, max_size=8), min_size=1, max_size=12)


def katz_factor(r, times):
    """OpenGrm's Katz factor of a pair that occurs r times; times[r] pairs occur r times."""
    lowest = min((k for k in range(1, 7) if times[k]), default=0)
    m = 6 * times[6] / (lowest * times[lowest]) if lowest else 0.0
    if r > 5:
        return 0.999
    factor = (r + 1) * (times[r + 1] or 1) / (times[r] or 1) / r - m
    factor = factor / (1 - m) if m < 1 else factor
    return factor if 0 < factor < 1 else 0.999


class PlainBigram:
    """The same models written with dictionaries and loops, straight from the definitions."""

    def __init__(self, smoothing, docs):
        steps = [step for doc in docs for step in self.steps(doc)]
        self.smoothing, self.pairs = smoothing, Counter(steps)
        after = [w for _, w in (self.pairs if smoothing == "kneser_ney" else steps)]
        self.unigram = {w: n / len(after) for w, n in Counter(after).items()}
        self.times = Counter(self.pairs.values())

    @staticmethod
    def steps(doc):
        ends = ["<s>", *doc, "</s>"]
        return list(pairwise(ends))

    def kept(self, h, w):
        if self.smoothing == "unigram":
            return 0.0
        c = self.pairs[h, w]
        follow = {v: n for (g, v), n in self.pairs.items() if g == h}
        total = sum(follow.values())
        if self.smoothing == "witten_bell":
            return c / (total + len(follow))
        if self.smoothing == "katz":
            return katz_factor(c, self.times) * c / total
        once, twice = self.times[1], self.times[2]
        discount = once / (once + 2 * twice) if once and twice else 0.6
        return (c - discount) / total

    def prob(self, h, w):
        follow = [v for g, v in self.pairs if g == h]
        if not follow:
            return self.unigram[w]
        reserve = 1 - sum(self.kept(h, v) for v in follow)
        if self.smoothing != "katz":
            return (self.kept(h, w) if w in follow else 0) + reserve * self.unigram[w]
        if len(follow) == len(self.unigram):
            return self.kept(h, w) / (1 - reserve)
        if w in follow:
            return self.kept(h, w)
        return reserve * self.unigram[w] / (1 - sum(self.unigram[v] for v in follow))

    def score(self, doc):
        known = [w for w in doc if w in self.unigram]
        return sum(log(self.prob(h, w)) for h, w in self.steps(known))


def transitions(model):
    """The dense matrix P(w | h); last row begin, last column end."""
    size = model.table_.size
    contexts, nexts = (side.ravel() for side in np.indices((size, size)))
    return np.exp(model.table_.log_prob(contexts, nexts)).reshape(size, size)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(train=corpora, test=corpora)
def test_scores_equal_those_of_plain_loops(smoothing, train, test):
    plain = PlainBigram(smoothing, train)
    scores = BigramModel(smoothing).fit(train).score_samples(test)
    np.testing.assert_allclose(scores, [plain.score(doc) for doc in test], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(
    docs=corpora,
    unknown=st.sampled_from(["drop", "map"]),
    min_count=st.integers(1, 3),
    vocabulary=st.none() | st.just(["a", "c", "never", "met"]),
)
def test_every_context_sums_to_one(smoothing, docs, unknown, min_count, vocabulary):
    often = [w for w, n in Counter(chain(*docs)).items() if n >= min_count]
    assume(vocabulary or often)
    model = BigramModel(smoothing, unknown=unknown, min_count=min_count, vocabulary=vocabulary)
    P = transitions(model.fit(docs))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(model.table_.sums(), 1.0, rtol=0, atol=1e-12)
    assert (P > 0).all()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_documents_sum_to_one_and_samples_score_at_the_entropy(smoothing):
    """With Q the steps among words, visits are e_begin (I - Q)^-1, and entropy is additive."""
    model = BigramModel(smoothing).fit(DOCS)
    P = transitions(model)
    n = len(P) - 1
    visits = P[n, :n] @ np.linalg.inv(np.eye(n) - P[:n, :n])
    assert P[n, n] + visits @ P[:n, n] == pytest.approx(1.0, abs=1e-12)
    of_context = -(P * np.log(P)).sum(axis=1)
    entropy = of_context[n] + visits @ of_context[:n]
    docs = model.sample(20_000, random_state=0)
    surprise = -model.score_samples(docs)
    assert abs(surprise.mean() - entropy) < 4 * surprise.std() / np.sqrt(len(docs))
    lengths = np.array([len(doc) for doc in docs])
    assert abs(lengths.mean() - visits.sum()) < 4 * lengths.std() / np.sqrt(len(docs))


def test_samples_follow_the_seed():
    model = BigramModel().fit(DOCS)
    assert model.sample(20, random_state=3) == model.sample(20, random_state=3)
    assert model.sample(20, random_state=3) != model.sample(20, random_state=4)
    assert model.sample(0) == []


def test_perplexity_is_that_of_words_and_ends():
    model = BigramModel("absolute").fit(DOCS)
    total, steps = model.score_samples(DOCS).sum(), sum(len(doc) + 1 for doc in DOCS)
    assert model.perplexity(DOCS) == pytest.approx(exp(-total / steps))


def test_empty_document_is_begin_to_end():
    model = BigramModel().fit(DOCS)
    end = model.table_.size - 1
    expected = model.table_.log_prob(np.array([end]), np.array([end]))
    assert model.score_samples([[]]) == pytest.approx(expected)


def test_unknown_words_are_dropped_or_mapped():
    dropped = BigramModel().fit(DOCS)
    assert dropped.score_samples([["the", "zebra", "cat"]]) == dropped.score_samples(
        [["the", "cat"]]
    )
    mapped = BigramModel(unknown="map", min_count=2).fit(DOCS)
    assert "dog" not in mapped.vocabulary_
    scores = mapped.score_samples([["the", "zebra"], ["the", "dog"], ["the", "<unk>"]])
    assert np.ptp(scores) == 0.0
    assert np.isfinite(scores).all()


def test_vocabulary_words_that_were_never_met_are_rarer_than_those_met_once():
    model = BigramModel(vocabulary=["the", "dog", "owl"]).fit(DOCS)
    once, never = np.exp(model.table_.log_unigram[[1, 2]])
    assert never == pytest.approx(once / 2)


def test_rare_pairs_and_words_are_not_listed():
    model = BigramModel(min_count=2).fit([*DOCS, ["secret", "plan"]])
    assert not {"secret", "plan", "dog"} & set(model.vocabulary_)
    after = [*model.vocabulary_, "</s>"]
    before = [*model.vocabulary_, "<s>"]
    contexts, nexts = model.table_.pairs
    listed = {(before[h], after[w]) for h, w in zip(contexts, nexts, strict=True)}
    assert listed == {("<s>", "the"), ("the", "cat"), ("sat", "</s>"), ("<s>", "</s>")}


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_one_document_is_enough(smoothing):
    model = BigramModel(smoothing).fit([["a"]])
    assert np.isfinite(model.score_samples([["a", "a"], []])).all()
    model = BigramModel(smoothing).fit([[]])
    assert model.score_samples([[], ["a"]]).tolist() == [0.0, 0.0]
    assert model.sample(2) == [[], []]


def test_no_documents_to_score_are_no_scores():
    assert BigramModel().fit(DOCS).score_samples([]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BigramModel().fit([]), ValueError, "corpus is empty"),
        (lambda: BigramModel().fit("a b"), TypeError, "got str: split"),
        (lambda: BigramModel().fit(["a b"]), TypeError, "got str: split"),
        (lambda: BigramModel().fit(3), TypeError, "got int"),
        (lambda: BigramModel().fit([[1, 2]]), TypeError, "token must be a str; got int"),
        (lambda: BigramModel().fit([["<s>", "a"]]), ValueError, "ends of a document"),
        (lambda: BigramModel("good").fit(DOCS), ValueError, "smoothing must be .* not 'good'"),
        (
            lambda: BigramModel(unknown="keep").fit(DOCS),
            ValueError,
            "unknown must be 'drop' or 'map', not 'keep'",
        ),
        (
            lambda: BigramModel(min_count=0).fit(DOCS),
            ValueError,
            "min_count must be a whole number of 1 or more, not 0",
        ),
        (lambda: BigramModel(min_count=9).fit(DOCS), ValueError, "no word occurs 9 times"),
        (lambda: BigramModel(vocabulary=["a", "a"]).fit(DOCS), ValueError, "'a' twice"),
        (lambda: BigramModel(vocabulary="abc").fit(DOCS), TypeError, "list of str"),
        (lambda: BigramModel().fit(DOCS).perplexity([]), ValueError, "no documents"),
        (lambda: BigramModel().fit(DOCS).sample(-1), ValueError, "negative"),
        (lambda: BigramModel().score_samples(DOCS), NotFittedError, "not fitted"),
    ],
)
def test_failures_name_cause_and_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_is_a_scikit_learn_citizen():
    model = BigramModel("absolute", unknown="map", min_count=2, vocabulary=["a"])
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "table_")
    assert model.set_params(min_count=1).fit([["a"]]) is model


def words_as(text):
    return np.frombuffer(text.encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": words_as("{")}, "list of words that is not plain JSON"),
        ({"words": words_as("[]")}, "no sound list of words"),
        ({"words": words_as('{"words": ["a", "a"], "unknown": "drop"}')}, "invalid or repeated"),
        ({"words": words_as('{"words": ["a"], "unknown": "map"}')}, "do with unknown words"),
        ({"words": np.zeros(3)}, "words that are not text"),
        ({"log_unigram": np.log([0.5, 0.4])}, "do not sum to 1"),
        ({"keys": np.array([3, 1])}, "not in order"),
        ({"keys": np.array([1, 9])}, "not in order"),
    ],
)
def test_arrays_that_are_no_model(change, message):
    half = np.log([0.5, 0.5])
    sound = {
        "log_unigram": half,
        "log_backoff": np.array([np.log(0.2), 0.0]),
        "keys": np.array([1]),
        "log_listed": np.log([0.9]),
        "words": words_as('{"words": ["a"], "unknown": "drop"}'),
    }
    assert BigramModel.from_arrays(sound).score_samples([["a"]]) == pytest.approx(log(0.45))
    wide = {"log_listed": np.log([0.4, 0.5])} if np.size(change.get("keys", 0)) == 2 else {}
    with pytest.raises(ValueError, match=message):
        BigramModel.from_arrays(sound | wide | change)
