import numpy as np
import pytest
from scipy.stats import betabinom, chi2

from anymix.monitor import Scores, alarm, mixture_alarm, novelty_scores
from anymix.monitor.mixture import confusion_matrix, invert, whitener

DOMAIN = np.repeat([0, 1, 2], 60)


def evidence(planar, X):
    return Scores(planar.log_responsibilities(X), planar.novelty(X))


def mixed(planar, rng, n=200):
    return planar.rows(rng.choice(3, n, p=rng.dirichlet(np.ones(3))), rng)


def test_false_alarms_are_as_rare_as_was_asked_for(planar):
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(150):
        reference = evidence(planar, planar.rows(DOMAIN, rng))
        traffic = evidence(planar, mixed(planar, rng))
        p_values.append(mixture_alarm(traffic, reference, DOMAIN, 0.1, 99, rng).p_value)
    # Binomial of 150 draws, four sigma to both sides: quiet, yet no test that never rings.
    assert 0.02 < np.mean(np.array(p_values) <= 0.1) < 0.2
    assert 0.34 < np.mean(np.array(p_values) <= 0.5) < 0.66


@pytest.mark.parametrize("centre", [(5.0, 5.0), (1.2, 1.2), (-2.0, -2.0)])
def test_rings_for_a_source_that_was_left_out(planar, centre):
    rng = np.random.default_rng(1)
    reference = evidence(planar, planar.rows(DOMAIN, rng))
    left_out = evidence(planar, rng.normal(centre, size=(300, 2)))
    answer = mixture_alarm(left_out, reference, DOMAIN)
    assert answer.rings
    assert answer.p_value < 1 / 501
    assert answer.distance > 0.1


def test_rings_for_rows_that_are_not_strange_one_by_one(planar):
    """All at the very centres: no row is novel, but a mixture would scatter."""
    rng = np.random.default_rng(1)
    reference = evidence(planar, planar.rows(DOMAIN, rng))
    traffic = evidence(planar, mixed(planar, rng) * 0.0)
    assert mixture_alarm(traffic, reference, DOMAIN).rings


def test_calibrated_novelty_works_with_the_reference_that_made_it(planar):
    rng = np.random.default_rng(3)
    log_d = planar.log_densities(planar.rows(DOMAIN, rng))
    rings = []
    for X in (mixed(planar, rng, 400), rng.normal(6.0, size=(400, 2))):
        ours, home = (novelty_scores(t, log_d, DOMAIN) for t in (planar.log_densities(X), log_d))
        traffic = Scores(planar.log_responsibilities(X), ours)
        reference = Scores(log_d - np.logaddexp.reduce(log_d, axis=0), home)
        rings.append(mixture_alarm(traffic, reference, DOMAIN).rings)
    assert rings == [False, True]


def test_gaps_are_differences_of_distribution_functions(planar):
    rng = np.random.default_rng(0)
    there = alarm._scores(evidence(planar, planar.rows(DOMAIN, rng)), "reference")
    here = alarm._scores(evidence(planar, mixed(planar, rng)), "traffic")
    gap, weight, null, _ = alarm._gaps(here, there, DOMAIN, 7, rng)
    W = whitener(here[:3], there[:3], DOMAIN)
    mixture = invert(W, confusion_matrix(there[:3], DOMAIN), here[:3].mean(axis=1))
    levels = (np.arange(15) + 0.5) / 15
    both = [np.quantile(part, levels, axis=1) for part in (here, there)]
    thresholds = np.sort(np.vstack(both).T, axis=1)
    at = 0
    for s in range(4):
        for t in thresholds[s]:
            F = np.mean(here[s] <= t)
            at_home = [np.mean(rows <= t) for rows in there[s].reshape(3, 60)]
            G = mixture @ at_home
            assert gap[at] == pytest.approx(F - G, abs=1e-12)
            mean = np.clip((F + G) / 2, 0.5 / 200, 1 - 0.5 / 200)
            assert weight[at] == pytest.approx(1 / (mean * (1 - mean)))
            at += 1
    assert null.shape == (7, at)


def test_the_order_of_novelty_is_all_that_counts(planar):
    rng = np.random.default_rng(4)
    parts = [evidence(planar, planar.rows(DOMAIN, rng)), evidence(planar, mixed(planar, rng, 199))]
    reference, traffic = parts
    # Quantiles between two rows are not kept by a bent scale; equal steps of it are.
    scaled = [Scores(e.log_r, 1e6 * e.novelty - 3.0) for e in parts]
    one, two = mixture_alarm(traffic, reference, DOMAIN), mixture_alarm(*scaled[::-1], DOMAIN)
    assert (one.p_value, one.distance) == (two.p_value, pytest.approx(two.distance))


def test_many_rows_are_thinned_and_chunked_without_changing_the_answer(planar, monkeypatch):
    rng = np.random.default_rng(0)
    reference = evidence(planar, planar.rows(DOMAIN, rng))
    traffic = evidence(planar, mixed(planar, rng))
    whole = mixture_alarm(traffic, reference, DOMAIN)
    monkeypatch.setattr(alarm, "CHUNK", 1000)
    assert mixture_alarm(traffic, reference, DOMAIN).distance == pytest.approx(whole.distance)
    monkeypatch.setattr(alarm, "MOST_ROWS", 40)
    every, gaps, seen = alarm._scores(reference, "reference"), alarm._gaps, []
    monkeypatch.setattr(alarm, "_gaps", lambda *given: seen.append(given[1:3]) or gaps(*given))
    assert not mixture_alarm(traffic, reference, DOMAIN).rings
    ((table, domain),) = seen
    assert np.bincount(domain).tolist() == [40, 40, 40]
    for row, k in zip(table.T, domain, strict=True):
        assert (every[:, k == DOMAIN] == row[:, None]).all(axis=0).any()


def test_a_single_source_has_an_alarm_too():
    rng = np.random.default_rng(0)
    home, away = (Scores(np.zeros((1, 200)), rng.normal(c, size=200)) for c in (0.0, 2.0))
    again = Scores(np.zeros((1, 200)), rng.normal(size=200))
    domain = np.zeros(200, dtype=int)
    assert mixture_alarm(away, home, domain).rings
    assert not mixture_alarm(again, home, domain).rings


def test_bad_input_gets_a_sentence(planar):
    good = evidence(planar, planar.rows(DOMAIN, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="too few resamples"):
        mixture_alarm(good, good, DOMAIN, level=0.01, n_bootstrap=50)
    with pytest.raises(ValueError, match="novelty of traffic must hold 180 finite numbers"):
        mixture_alarm(good._replace(novelty=good.novelty[:-1]), good, DOMAIN)
    with pytest.raises(ValueError, match="novelty of reference must hold"):
        mixture_alarm(good, good._replace(novelty=good.novelty * np.inf), DOMAIN)
    with pytest.raises(ValueError, match="one row for each source in both"):
        mixture_alarm(Scores(np.zeros((1, 5)), np.zeros(5)), good, DOMAIN)


def test_few_gross_outliers_ring_and_are_counted(planar):
    """2 % of the rows lie 6 σ from every source: their distribution alone hardly shows them."""
    rings = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        reference = evidence(planar, planar.rows(np.repeat([0, 1, 2], 500), rng))
        X = mixed(planar, rng, 500)
        X[:10] = 9.0
        answer = mixture_alarm(evidence(planar, X), reference, np.repeat([0, 1, 2], 500), 0.05, 99)
        rings.append(answer.rings)
        assert 10 <= answer.n_outliers <= 20
    assert np.mean(rings) > 0.8


def test_outliers_of_one_source_have_the_p_value_of_ranks():
    """Above the (a + 1)-th of exchangeable held-out rows the count is beta-binomial."""
    domain = np.zeros(400, dtype=int)
    for share, count in ((0.0, 3), (0.01, 9), (0.05, 40)):
        reference, novelty = np.arange(400.0), np.r_[np.zeros(200 - count), np.full(count, 1e3)]
        a = int(share * 400)
        exact = betabinom.sf(count - 1, 200, a + 1, 400 - a)
        found = alarm.outlier_p_value(novelty, reference, domain, np.ones(1), share)
        assert exact <= found <= exact**0.85  # Poisson in place of binomial: a little too large


@pytest.mark.parametrize("share", alarm.ABOVE)
def test_outliers_of_mixtures_are_no_more_frequent_than_is_said(share):
    rng, p_values = np.random.default_rng(0), []
    for _ in range(2000):
        p = rng.integers(1, 6)
        sizes, mixture = rng.integers(20, 300, p), rng.dirichlet(np.full(p, 0.5))
        scale = rng.uniform(1, 2, p)
        domain = np.repeat(np.arange(p), sizes)
        reference = rng.exponential(scale[domain])
        novelty = rng.exponential(scale[rng.choice(p, 300, p=mixture)])
        p_values.append(alarm.outlier_p_value(novelty, reference, domain, mixture, share))
    for level in (0.1, 0.01):
        assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level / 2000)


def test_beyond_all_resamples_the_p_value_follows_the_tail():
    null = chi2(3).rvs(2000, random_state=0)
    for value, least in ((6.0, 0.1), (11.0, 0.005), (20.0, 1e-4), (30.0, 1e-6)):
        found = alarm.tail_p_value(value, null)
        assert least <= found < 0.2
        assert found >= chi2(3).sf(value) * 0.8  # the tail is no lighter than the true one
    values = np.linspace(0, 60, 200)
    assert (np.diff([alarm.tail_p_value(value, null) for value in values]) <= 0).all()


def test_all_looks_together_ring_no_more_often_than_one(planar):
    rng = np.random.default_rng(0)
    reference = evidence(planar, planar.rows(DOMAIN, rng))
    X = rng.normal([[1.0, 1.0]], 0.7, size=(80, 2))
    traffic = evidence(planar, X)
    first = mixture_alarm(traffic, reference, DOMAIN, 0.05)
    for look in (1, 2, 10, 100):
        answer = mixture_alarm(traffic, reference, DOMAIN, 0.05, look=look)
        assert answer.p_value == first.p_value
        assert answer.rings == (first.p_value <= 0.05 * 6 / (np.pi * look) ** 2)
    assert sum(6 / (np.pi * t) ** 2 for t in range(1, 10_000)) < 1.0
    with pytest.raises(ValueError, match="look"):
        mixture_alarm(traffic, reference, DOMAIN, 0.05, look=0)
