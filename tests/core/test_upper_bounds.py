"""What each half of a certificate claims, on which ground, and that clipping in parts is sound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anymix.core import Assumptions, BoundOptions, LossSummary, certify
from anymix.core.guarantees.confidence import mean_upper_bound
from anymix.core.guarantees.upper_bounds import MANY, UpperBounds, upper_bounds
from anymix.core.normalised import NormalisedRule


def evidence(n, p=2, K=1, seed=0, draw=None):
    rng = np.random.default_rng(seed)
    losses = rng.exponential(size=p * n) if draw is None else draw(rng, p * n)
    own = losses + 0.1 * rng.normal(size=p * n)
    fold = np.tile(np.arange(n) % K, p)
    return LossSummary.of_rows(losses, np.abs(own), np.repeat(np.arange(p), n), None, fold)


def test_few_rows_claim_nothing_and_many_do():
    few, many = (
        upper_bounds(evidence(MANY - 1), BoundOptions(0.05)),
        upper_bounds(evidence(MANY), BoundOptions(0.05)),
    )
    assert few == UpperBounds()
    assert many.loss_ground == many.regret_ground == "asymptotic"
    taught = upper_bounds(evidence(MANY), BoundOptions(0.05, claims=False, loss_bound=1e6))
    assert taught == UpperBounds()


def test_what_is_not_fresh_is_never_exact():
    found = upper_bounds(evidence(5000, K=5), BoundOptions(0.05, known_bound=50.0, fresh=False))
    assert found.loss_ground == found.regret_ground == "asymptotic"
    fresh = upper_bounds(evidence(50_000, K=5), BoundOptions(0.05, known_bound=20.0))
    assert fresh.loss_ground == fresh.regret_ground == "exact"
    assert fresh.clip is None


def test_an_exact_bound_is_the_mean_of_the_folds_at_a_share_of_the_error():
    given = evidence(400, p=1, K=4)
    home = given.samples[0]
    found = upper_bounds(given, BoundOptions(0.08, "hoeffding", loss_bound=20.0))
    parts = [home.losses[home.fold == t] for t in range(4)]
    due = np.mean([x.mean() + 20 * np.sqrt(np.log(4 / 0.04) / (2 * x.size)) for x in parts])
    assert found.loss == pytest.approx(due)


def test_a_clip_that_others_chose_is_exact_with_few_rows():
    given = evidence(60)
    found = upper_bounds(given, BoundOptions(0.05, clip=1.5))
    due = max(
        mean_upper_bound(np.minimum(home.losses, 1.5), 0.025, "betting", (0, 1.5), rng=0)
        for home in given.samples
    )
    assert (found.loss_ground, found.clip) == ("exact", 1.5)
    assert found.loss == pytest.approx(due)
    pairs = [np.minimum(h.losses, 1.5) - np.minimum(h.own, 1.5) for h in given.samples]
    due = max(mean_upper_bound(x, 0.025, "betting", (-1.5, 1.5), rng=0) for x in pairs)
    assert (found.regret_ground, found.regret) == ("exact", pytest.approx(due))


@given(
    losses=st.lists(st.floats(0, 1e3), min_size=1, max_size=6),
    clip=st.floats(1e-3, 1e3),
)
def test_parts_are_clipped_at_k_times_the_clip(losses, clip):
    """min((1/K) Σ a_t, c) ≤ (1/K) Σ min(a_t, Kc), whatever the losses."""
    a, K = np.array(losses), len(losses)
    assert min(a.mean(), clip) <= np.minimum(a, K * clip).mean() * (1 + 1e-12)


def test_skewed_losses_widen_the_bound_as_edgeworth_says():
    given = evidence(400, p=1)
    found = upper_bounds(given, BoundOptions(0.05, "student", clip=3.0))
    x = np.minimum(given.samples[0].losses, 3.0)
    t = stats.t.isf(0.025, 399)
    plain = x.mean() + t * x.std(ddof=1) / 20
    g = stats.skew(x)
    due = plain + g * (2 * t**2 + 1) * x.std() / (6 * 400)
    assert g > 0
    assert found.loss == pytest.approx(due, rel=1e-12)


def test_wrong_labels_have_the_bound_of_clopper_and_pearson():
    wrong = np.zeros(80)
    wrong[:3] = 1.0
    given = LossSummary.of_rows(wrong, wrong, np.zeros(80, dtype=int))
    found = upper_bounds(given, BoundOptions(0.1, loss_bound=1.0, binary=True))
    assert found.loss == pytest.approx(stats.beta.ppf(0.95, 4, 77))
    # With as many ones the share fails to be larger with probability δ exactly.
    assert stats.binom.cdf(3, 80, found.loss) == pytest.approx(0.05)


def test_weights_must_be_equal_for_what_is_exact():
    w = np.linspace(1, 2, 400)
    x = np.random.default_rng(0).random((2, 400))
    given = LossSummary.of_rows(*x, np.zeros(400, dtype=int), w)
    assert upper_bounds(given, BoundOptions(0.05, loss_bound=2.0)).loss_ground == "asymptotic"
    with pytest.raises(ValueError, match="equal weights"):
        upper_bounds(given, BoundOptions(0.05, "betting", loss_bound=2.0))


@pytest.mark.parametrize("seed", range(3))
def test_the_normalised_rule_is_not_bounded_by_the_sources_own_loss(seed):
    """Three sources on one x, each sure of its own label: its loss is above all that they lose."""
    sure = 0.98
    said = np.full((3, 3), (1 - sure) / 2) + np.eye(3) * (sure - (1 - sure) / 2)
    n = 60
    proba = np.repeat(said[:, None], 3 * n, axis=1)
    domain = np.repeat(np.arange(3), n)
    rule = NormalisedRule.of(np.zeros((3, 3 * n)), proba, domain, sample_domain=domain)
    M = 1.01 * float(-np.log((1 - sure) / 2))
    found = certify(rule, np.full(3, 1 / 3), assumptions=Assumptions(loss_bound=M))
    assert found.robust_loss > -np.log(sure) + 0.5
    assert found.loss_upper >= found.robust_loss
    refuted = [bound for bound in found.bounds if bound.value < found.robust_loss]
    assert all(bound.contradicted for bound in refuted)


def test_losses_that_are_zero_or_negative_claim_no_more_than_they_know():
    zero = np.zeros(400)
    rows = np.arange(400) % 2
    assert upper_bounds(LossSummary.of_rows(zero, zero, rows), BoundOptions(0.05)) == UpperBounds()
    assert (
        upper_bounds(LossSummary.of_rows(zero, zero, rows), BoundOptions(0.05, clip=0.0))
        == UpperBounds()
    )
    rng = np.random.default_rng(0)
    below = rng.normal(size=400)
    for clip in (None, 1.0):
        found = upper_bounds(
            LossSummary.of_rows(below, below + 0.1, rows), BoundOptions(0.05, clip=clip)
        )
        assert "exact" not in (found.loss_ground, found.regret_ground)
    with pytest.raises(ValueError, match="losses ≥ 0"):
        upper_bounds(
            LossSummary.of_rows(below, below, rows), BoundOptions(0.05, "betting", loss_bound=9.0)
        )
