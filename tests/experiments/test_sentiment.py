import numpy as np
import pytest

from anymix.core import simplex
from experiments import review_rivals, sentiment
from experiments.loaders import Reviews, load_reviews
from experiments.made_up import made_up_reviews
from experiments.reviews import fit_bigrams, fit_svr, read_corpus
from experiments.runner import quiet
from experiments.sentiment import mixture, part, sampled_z, split, study, targets
from tests.experiments.study_cases import rehearsal


def test_there_are_27_columns_and_two_figures_and_all_are_mixtures():
    found = targets()
    assert sum(t.table.startswith("Table") for t in found) == 27
    assert sum(t.table.startswith("Fig. 1") for t in found) == 22
    assert len({t.mixture for t in found if t.table.startswith("Table")}) == 25
    for target in found:
        simplex.check(target.mixture, 4)
    assert mixture("KDE") == pytest.approx((1 / 3, 1 / 3, 0, 1 / 3))


@pytest.mark.xdist_group("sentiment")
def test_the_study_on_made_up_reviews():
    results = rehearsal("sentiment").alone
    rows = {(r.method, r.protocol) for r in results}
    assert len(rows) == 10 + 11 + 4
    assert len(results) == len(rows) * len(targets())
    matched = {"KMM", "KMM, tolerance 1e-4", "KMM, kernel ridge"}
    assert {r.method for r in results if r.privileged} == {*matched, "λ-comb", "joint"}
    value = {(r.method, r.protocol, r.table, r.target): r.value for r in results}
    for name in ("K", "unif", "DW"):
        one = [value[name, "clean", "Table 1", d] for d in "KDBE"]
        assert value[name, "clean", "Table 1", "KDBE"] == pytest.approx(np.mean(one))
        assert value[name, "clean", "Table 6", "kDbe"] == pytest.approx(
            np.dot(one, (0.2, 0.4, 0.2, 0.2))
        )
    for way in ("as published", "clean"):
        assert value["λ-comb", way, "Table 1", "B"] == pytest.approx(
            value["B", way, "Table 1", "B"]
        )


@pytest.mark.xdist_group("sentiment")
def test_rows_that_run_alone_are_those_of_the_whole_study():
    names = ["KMM", "KMM, kernel ridge", "anymix"]
    whole = [r for r in rehearsal("sentiment").alone if r.method in names]
    assert [*part(read_corpus(made_up_reviews(30)), [0], quiet, names)] == whole


def test_a_split_is_four_to_one_in_each_domain_and_new_for_each_seed(reviews):
    corpus = read_corpus(reviews)
    (train, test), (other, _) = split(corpus, 0), split(corpus, 1)
    assert [len(rows) for rows in train] == [48] * 4
    assert sorted(np.concatenate(train + test)) == list(range(240))
    assert not np.array_equal(train[0], other[0])


def test_the_clean_protocol_tests_no_text_that_it_has_trained_on(monkeypatch, reviews):
    texts = [text if i % 3 else "good good bad" for i, text in enumerate(reviews.texts)]
    corpus = read_corpus(reviews._replace(texts=texts))
    seen = []
    monkeypatch.setattr(sentiment, "published_methods", lambda *a: [])

    def spy(view, train, test):
        seen.append(np.intersect1d(*(corpus.text[np.concatenate(r)] for r in (train, test))).size)
        return []

    monkeypatch.setattr(sentiment, "clean_methods", spy)
    assert not list(study(corpus, [0], quiet))
    assert seen == [0]


def test_sampled_sentences_leave_z_where_it_starts_unless_they_tell(monkeypatch, reviews):
    corpus = read_corpus(reviews)
    view = corpus.view()
    parts = [np.flatnonzero(corpus.domain == k) for k in range(4)]
    regressors, bigrams = [fit_svr(view, rows) for rows in parts], fit_bigrams(view, parts)
    monkeypatch.setattr(sentiment, "GAMMA_TOLERANCE", 10.0)
    z = sampled_z(view, regressors, bigrams, 0, n_sentences=200)
    np.testing.assert_array_equal(z, simplex.uniform(4))
    monkeypatch.setattr(sentiment, "GAMMA_TOLERANCE", 0.0)
    z = sampled_z(view, regressors, bigrams, 0, n_sentences=200)
    simplex.check(z, 4)
    assert not np.allclose(z, 0.25)


def test_a_small_real_study_keeps_the_order_of_the_methods(monkeypatch, real_data):
    # Nothing is asked of KMM here, which would take most of the time.
    monkeypatch.setattr(review_rivals, "matching_methods", lambda *given: [])
    whole = load_reviews(real_data)
    rows = np.concatenate([np.flatnonzero(whole.domain == k)[::5] for k in range(4)])
    some = Reviews([whole.texts[i] for i in rows], whole.ratings[rows], whole.domain[rows])
    results = list(study(read_corpus(some), [0], quiet, n_sentences=300))
    value = {
        (r.method, r.protocol): r.value
        for r in results
        if (r.table, r.target) == ("Table 1", "KDBE")
    }
    singles = [value[d, "clean"] for d in "KDBE"]
    assert value["joint", "beyond"] < value["DW, calibrated", "beyond"] < min(singles)
