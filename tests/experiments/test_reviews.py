import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from anymix.densities import SharedVocabulary
from anymix.estimators import KernelMeanMatching
from experiments.kmm_reviews import RIDGE, MeanMatcher
from experiments.reviews import (
    EPSILON,
    GAMMA,
    C,
    fit_and_evaluate,
    fit_svr,
    held_out,
    rbf,
    read_corpus,
)


@pytest.fixture
def corpus(reviews):
    return read_corpus(reviews)


def domains(corpus):
    return [np.flatnonzero(corpus.domain == k) for k in range(4)]


def test_a_view_has_the_words_that_occur_twice_in_each_domain(reviews, corpus):
    view = corpus.view()
    words = SharedVocabulary(min_count=2).fit(reviews.texts, sample_domain=reviews.domain)
    assert view.vocabulary == words.vocabulary_
    np.testing.assert_array_equal(view.counts, words.transform(reviews.texts).toarray())


def test_a_view_of_training_rows_does_not_know_the_others_words(reviews):
    texts = list(reviews.texts)
    for k in range(4):
        texts[60 * k + 59] = "secret secret"
    rows = np.flatnonzero(np.arange(240) % 60 != 59)
    changed = read_corpus(reviews._replace(texts=texts))
    assert "secret" in changed.view().vocabulary
    assert "secret" not in changed.view(rows).vocabulary


def test_without_a_shared_word_the_view_says_so(reviews):
    alone = [f"word{chr(97 + k)}" for k in reviews.domain]
    with pytest.raises(ValueError, match="every domain"):
        read_corpus(reviews._replace(texts=alone)).view()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6))
def test_the_kernel_is_scikit_learns(seed, n, m):
    rng = np.random.default_rng(seed)
    A, B = (rng.integers(0, 30, (k, 7)).astype(np.float32) for k in (n, m))
    expected = rbf_kernel(A.astype(float), B.astype(float), gamma=GAMMA)
    np.testing.assert_allclose(rbf(A, B), expected, rtol=2e-6)


def test_the_regressor_is_scikit_learns(corpus):
    view, rows = corpus.view(), domains(corpus)[1]
    ours = fit_svr(view, rows).predict(view.kernel[:, rows])
    svr = SVR(kernel="rbf", gamma=GAMMA, C=C, epsilon=EPSILON)
    theirs = svr.fit(view.counts[rows], corpus.ratings[rows]).predict(view.counts)
    np.testing.assert_allclose(ours, theirs, atol=5e-3)


def test_a_weight_is_a_price_of_errors(corpus):
    view, rows = corpus.view(), domains(corpus)[1]
    twice = fit_svr(view, np.r_[rows, rows[:9]]).predict(view.kernel[:, np.r_[rows, rows[:9]]])
    weights = np.where(np.arange(len(rows)) < 9, 2.0, 1.0)
    weighted = fit_svr(view, rows, weights=weights).predict(view.kernel[:, rows])
    np.testing.assert_allclose(weighted, twice, atol=0.02)
    plain = fit_svr(view, rows).predict(view.kernel[:, rows])
    assert np.abs(weighted - plain).max() > 0.05


BOOKS = (0.0, 0.0, 1.0, 0.0)


def matched(corpus, mixtures=(BOOKS,)):
    view, parts = corpus.view(), domains(corpus)
    train, target = [p[:40] for p in parts], [p[40:] for p in parts]
    matcher = MeanMatcher(view, train, target, mixtures)
    X, y = view.counts[matcher.rows], corpus.ratings[matcher.rows]
    return matcher, X, y, view.counts[target[2]]


def test_kernel_mean_matching_is_the_estimators(corpus):
    matcher, X, y, target = matched(corpus)
    other = KernelMeanMatching(SVR(), gamma=GAMMA, tol=1e-6).fit(X, y, X_target=target)
    b = matcher.weights(BOOKS)
    K, kappa = rbf_kernel(X.astype(float), gamma=GAMMA), matcher.kappa[2]
    np.testing.assert_allclose(
        kappa, len(X) * rbf_kernel(X.astype(float), target.astype(float), GAMMA).mean(axis=1), 1e-5
    )
    assert 0.5 * b @ K @ b - kappa @ b <= other.objective_ * (1 - 1e-5), "a lower objective"


@pytest.mark.parametrize("early", [False, True])
def test_what_is_fitted_to_the_weighted_rows_is_scikit_learns(corpus, early):
    matcher, X, y, _ = matched(corpus)
    b = matcher._early[BOOKS] if early else matcher.weights(BOOKS)
    svr = SVR(kernel="rbf", gamma=GAMMA, C=C, epsilon=EPSILON).fit(X, y, sample_weight=b)
    ours = matcher.fit_early(BOOKS) if early else matcher.fit(BOOKS)
    found = ours.predict(matcher.view.kernel[:, ours.rows])
    np.testing.assert_allclose(found, svr.predict(matcher.view.counts), atol=0.02)


def test_kernel_mean_matching_with_a_ridge_is_the_estimators(corpus):
    matcher, X, y, target = matched(corpus)
    other = KernelMeanMatching(SVR(), gamma=GAMMA, tol=1e-4).fit(X, y, X_target=target)
    fitted = matcher.ridge(BOOKS)
    b = other.weights_
    centre = np.average(y, weights=b)
    ridge = KernelRidge(kernel="rbf", gamma=GAMMA, alpha=len(b) * RIDGE)
    ridge.fit(X.astype(float), y - centre, sample_weight=b)
    theirs = ridge.predict(matcher.view.counts.astype(float)) + centre
    ours = fitted.predict(matcher.view.kernel[:, fitted.rows])
    np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_weights_are_as_good_whichever_target_came_before(corpus):
    first, second = matched(corpus)[0], matched(corpus)[0]
    first.weights((1.0, 0.0, 0.0, 0.0))
    values = [m._program(BOOKS).objective(m.weights(BOOKS)) for m in (first, second)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_the_target_of_a_mixture_is_the_mixture_of_the_targets(corpus):
    view, parts = corpus.view(), domains(corpus)
    train = [p[:40] for p in parts]
    both = np.concatenate([parts[0][40:], parts[3][40:]])
    mixed = MeanMatcher(view, train, [p[40:] for p in parts]).ridge((0.5, 0.0, 0.0, 0.5))
    pooled = MeanMatcher(view, train, [both] * 4).ridge((1.0, 0.0, 0.0, 0.0))
    np.testing.assert_allclose(
        mixed.predict(view.kernel[:, mixed.rows]),
        pooled.predict(view.kernel[:, pooled.rows]),
        atol=0.02,
    )


def test_held_out_rows_are_judged_once_and_by_strangers(corpus):
    view, train = corpus.view(), [p[:50] for p in domains(corpus)]
    found = held_out(view, train)
    assert sorted(found.rows) == sorted(np.concatenate(train))
    row = train[2][7]
    copies = corpus.text % 5 == corpus.text[row] % 5
    others = [rows[~copies[rows]] for rows in train]
    alone = fit_and_evaluate(view, others, np.array([row]))
    i = int(np.flatnonzero(found.rows == row)[0])
    np.testing.assert_allclose(found.predictions[:, i], alone.predictions[:, 0], rtol=1e-6)
    np.testing.assert_allclose(found.log_densities[:, i], alone.log_densities[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.log_classifier[:, i], alone.log_classifier[:, 0], atol=1e-4)


def test_copies_of_a_text_have_one_number(corpus):
    assert corpus.text[0] == corpus.text[1]
    assert len(set(corpus.text)) < len(corpus.text)
