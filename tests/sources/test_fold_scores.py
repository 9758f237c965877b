"""New rows and held-out rows have the same distribution of scores."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from anymix import DistributionWeightedRegressor, Source
from anymix.densities import GaussianKDE
from anymix.sources import FoldDensities, FoldScores, Novelty


def test_novelty_of_held_out_rows_is_that_of_new_rows():
    """Ranked among the other rows, and not among themselves, they are uniform as new rows are."""
    rng, held_out, new = np.random.default_rng(0), [], []
    for _ in range(400):
        log_masses, domain = rng.normal(size=(1, 20)), np.zeros(20, dtype=int)
        held_out.append(Novelty.of_each(log_masses, domain))
        new.append(Novelty((np.sort(log_masses[0]),)).score(rng.normal(size=(1, 5))))
    above = [np.mean(np.concatenate(each) > 0.9499) for each in (held_out, new)]
    assert above[0] == pytest.approx(1 / 20, abs=1e-12)
    assert above[1] == pytest.approx(1 / 21, abs=0.015)


def test_rows_of_other_sources_are_ranked_as_new_ones():
    log_masses = np.array([[1.0, 2.0, 1.5, 0.0], [-9.0, -9.0, 3.0, 4.0]])
    domain = np.array([0, 0, 1, 1])
    found = Novelty.of_each(log_masses, domain)
    np.testing.assert_allclose(found, [0.5, 0.0, 1 / 3, 0.0])


def fitted(n, **settings):
    rng = np.random.default_rng(n)
    domain = np.repeat([0, 1], n)
    X = rng.normal(2.0 * domain[:, None], 1.0, (2 * n, 3))
    model = DistributionWeightedRegressor(density=GaussianKDE(bandwidth=0.2), random_state=0)
    return model.set_params(**settings).fit(X, X.sum(axis=1), sample_domain=domain)


def test_scores_of_new_rows_are_those_of_held_out_rows():
    """A narrow kernel density in use scores new rows far from where its folds scored old ones."""
    model, rng = fitted(100), np.random.default_rng(1)
    new = rng.normal(np.repeat([[0.0], [2.0]], 3000, axis=0), 1.0, (6000, 3))
    scores = model.result_.evidence.fold_scores
    log_r, novelty = model.fold_scores(new, rng=0)
    before = model.combination_.log_responsibilities(model.tables_.log_masses[:, scores.rows])
    assert ks_2samp(novelty, scores.novelty).pvalue > 0.01
    assert ks_2samp(log_r[0], before[0]).pvalue > 0.01
    assert kstest(novelty, model.novelty(new)).pvalue < 0.01


def test_folds_are_kept_until_they_hold_enough_rows():
    fold, domain = np.arange(3000) % 5, np.repeat([0, 1], 1500)
    learned = {t: FoldDensities((None, None), "router") for t in range(5)}
    kept = FoldScores.of(learned, fold, domain, None)
    assert len(kept.learned) == 1
    assert np.array_equal(kept.rows, np.flatnonzero(fold == 0))
    few = FoldScores.of(learned, fold[:1600], domain[:1600], None)
    assert len(few.learned) == 5
    assert FoldScores.of({}, fold, domain, None) is None
    masses = np.where(fold == 1, 0.0, np.nan)[None] * np.ones((2, 1))
    assert np.array_equal(
        FoldScores.of(learned, fold, domain, masses).rows, np.flatnonzero(fold == 1)
    )


def test_given_densities_need_no_folds():
    X = np.random.default_rng(0).normal(size=(60, 1))
    sources = [
        Source(name, lambda X: X[:, 0], GaussianKDE(0.5).fit(X + k)) for k, name in enumerate("ab")
    ]
    model = DistributionWeightedRegressor.from_sources(sources)
    model.fit(X, X[:, 0], np.repeat(["a", "b"], 30))
    assert model.result_.evidence.fold_scores is None


def test_members_keep_no_folds():
    for member in fitted(60, refit=False, cv=3).members_:
        assert member.result_.evidence.fold_scores is None
