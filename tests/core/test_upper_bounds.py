"""What each half of a certificate claims, on which ground, and that clipping in parts is sound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anymix.core import Assumptions, BoundOptions, LossSummary, certify
from anymix.core.guarantees.confidence import Moments, mean_upper_bound
from anymix.core.guarantees.upper_bounds import MANY, UpperBounds, clip_of, upper_bounds
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
    assert few == UpperBounds(reason=few.reason)
    assert few.reason.startswith("Nothing is claimed: source 1 has 199 rows, and 200 are needed")
    assert many.loss_ground == many.regret_ground == "asymptotic"
    taught = upper_bounds(evidence(MANY), BoundOptions(0.05, claims=False, loss_bound=1e6))
    assert taught == UpperBounds(reason=taught.reason)
    held_out = upper_bounds(evidence(61, K=5), BoundOptions(0.05, names=("a", "b")))
    assert "a has 61 held-out rows, and 200 are needed; certify on new rows" in held_out.reason


def test_what_is_not_fresh_is_never_exact():
    found = upper_bounds(evidence(5000, K=5), BoundOptions(0.05, known_bound=50.0, fresh=False))
    assert found.loss_ground == found.regret_ground == "asymptotic"


def test_more_rows_never_change_to_another_ground():
    """From 200 rows on a fit is asymptotic; new rows with a clip or a bound are always exact."""
    for n in (200, 2000, 50_000):
        inside = upper_bounds(evidence(n, K=5), BoundOptions(0.05, known_bound=20.0, chance=1.0))
        assert inside.loss_ground == inside.regret_ground == "asymptotic"
        assert (inside.clip is None) == (20 * np.log(40) / n <= 0.05)
        new = upper_bounds(evidence(n), BoundOptions(0.05, clip=4.0))
        assert new.loss_ground == new.regret_ground == "exact"
    small = evidence(190, K=5, draw=lambda rng, n: rng.beta(1, 9, n))
    found = upper_bounds(small, BoundOptions(0.05, known_bound=1.0, chance=0.5))
    assert found.loss_ground == "exact"


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_the_same_rows_twice_never_make_a_bound_worse(kept):
    rng = np.random.default_rng(kept)
    losses, own = rng.exponential(size=(2, 250)), rng.exponential(size=(2, 250))
    for options in (BoundOptions(0.05, clip=3.0), BoundOptions(0.05, loss_bound=20.0)):
        bounds = []
        for copies in (1, 2, 4):
            rows = [np.tile(x.ravel(), copies) for x in (losses, own)]
            domain = np.tile(np.repeat([0, 1], 250), copies)
            found = upper_bounds(LossSummary.of_rows(*rows, domain), options)
            bounds.append((found.loss, found.regret, found.share or 0.0))
        assert (np.diff(bounds, axis=0) <= 1e-9).all()


def test_a_fold_without_rows_counts_for_what_it_is_at_most():
    given = evidence(100, p=2, K=2)
    first = given.samples[0]
    gone = first._replace(fold=np.zeros(100, dtype=int))
    found = (
        LossSummary([gone, given.samples[1]], 2)
        .exact_uppers("loss", 9.0, 0.1, "hoeffding")
        .max(axis=1)
        .mean()
    )
    due = [
        max(mean_upper_bound(s.losses[s.fold == 0], 0.05, "hoeffding", (0, 9)) for s in pair)
        for pair in [(gone, given.samples[1])]
    ]
    assert found == pytest.approx((due[0] + 9.0) / 2)


def test_the_exact_bound_of_a_fit_takes_the_worst_source_of_each_fold():
    given = evidence(300, p=3, K=3)
    found = given.exact_uppers("regret", 20.0, 0.06, "hoeffding").max(axis=1).mean()
    table = [
        [
            np.mean((s.losses - s.own)[s.fold == t]) + 40 * np.sqrt(np.log(50) / 200)
            for s in given.samples
        ]
        for t in range(3)
    ]
    assert found == pytest.approx(np.mean(np.max(table, axis=1)))


def test_sources_of_a_fit_share_the_error_as_sidak_says():
    """Losses that z has made equal: the worst source is chosen by noise."""
    fit, new = evidence(400, p=10, K=5), evidence(400, p=10)
    each = 1 - (1 - 0.05 / 3) ** (1 / 10)
    found = upper_bounds(fit, BoundOptions(0.05))
    assert found.loss == pytest.approx(fit.asymptotic_uppers("loss", found.clip, each).max())
    assert found.regret == pytest.approx(fit.asymptotic_uppers("regret", found.clip, each).max())
    assert found.rarest == pytest.approx(np.log(1 / each) / 400)
    other = upper_bounds(new, BoundOptions(0.05))
    assert other.loss == pytest.approx(new.asymptotic_uppers("loss", other.clip, 0.05 / 3).max())


def test_the_clip_sees_all_sources_and_what_is_judged():
    rng = np.random.default_rng(0)
    losses = np.r_[0.1 * rng.random(5000), 90 + rng.random(200)]
    rows = LossSummary.of_rows(losses, 0.01 * losses, np.repeat([0, 1], [5000, 200]))
    assert clip_of(rows) == pytest.approx(np.quantile(losses[5000:], 0.95))
    assert clip_of(rows, least=200.0) == 200.0
    assert clip_of(rows, 50.0) == 50.0


def test_the_share_above_the_clip_is_that_of_clopper_and_pearson():
    given = evidence(300)
    found = upper_bounds(given, BoundOptions(0.05, clip=2.5))
    counts = [int((s.losses > 2.5).sum()) for s in given.samples]
    due = max(stats.binomtest(k, 300).proportion_ci(1 - 2 * 0.05 / 3, "exact").high for k in counts)
    assert found.share == pytest.approx(due)
    assert found.share > max(counts) / 300


def test_nothing_is_claimed_where_the_clip_says_it_all():
    rng = np.random.default_rng(0)
    rows = np.repeat([0, 1], 200)
    flat = LossSummary.of_rows(1 - 0.01 * rng.random(400), rng.random(400), rows)
    found = upper_bounds(flat, BoundOptions(0.05))
    assert (found.loss, found.loss_ground) == (None, "measured")
    assert found.reason.startswith("No bound on the loss is claimed")
    assert found.regret_ground == "asymptotic"
    many_above = upper_bounds(flat, BoundOptions(0.05, clip=0.5))
    assert many_above == UpperBounds(reason=many_above.reason)
    assert "100 % of a source's rows may lose more than 0.5" in many_above.reason


@given(
    rate=st.floats(0.001, 0.05),
    n=st.integers(20, 2000),
    events=st.integers(0, 6),
    delta=st.floats(1e-4, 0.1),
)
def test_rare_harm_is_bounded_as_poisson_counts_it(rate, n, events, delta):
    """0 but for a few values c: as high as n p may be where so few were seen."""
    c, x = 2.0, np.zeros(n)
    x[: min(events, n // 4)] = c
    j = int((x > 0).sum())
    found = Moments.of(x, np.ones(n)).upper(delta, c, (float(j), c * j))
    limit = stats.chi2.isf(delta, 2 * j + 2) / 2
    due = x.mean() + (c - x.mean()) * (limit - j) / n if j else c * np.log(1 / delta) / n
    assert found >= due * (1 - 1e-9)
    assert stats.poisson.cdf(j, limit) == pytest.approx(delta, rel=1e-6)


def test_an_exact_bound_is_the_mean_of_the_folds_at_a_share_of_the_error():
    given = evidence(400, p=1, K=4)
    home = given.samples[0]
    found = upper_bounds(given, BoundOptions(0.08, "hoeffding", loss_bound=20.0))
    parts = [home.losses[home.fold == t] for t in range(4)]
    due = np.mean([x.mean() + 20 * np.sqrt(np.log(4 / 0.04) / (2 * x.size)) for x in parts])
    assert found.loss == pytest.approx(due)


def test_a_clip_that_others_chose_is_exact_with_few_rows():
    given, c, each = evidence(60), 3.0, 0.05 / 3
    found = upper_bounds(given, BoundOptions(0.05, clip=c))
    due = max(
        mean_upper_bound(np.minimum(home.losses, c), each, "betting", (0, c), rng=0)
        for home in given.samples
    )
    assert (found.loss_ground, found.clip) == ("exact", c)
    assert found.loss == pytest.approx(due)
    pairs = [np.minimum(h.losses, c) - np.minimum(h.own, c) for h in given.samples]
    due = max(mean_upper_bound(x, each, "betting", (-c, c), rng=0) for x in pairs)
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
    t = stats.t.isf(0.05 / 3, 399)
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
    for clip in (None, 0.0):
        found = upper_bounds(LossSummary.of_rows(zero, zero, rows), BoundOptions(0.05, clip=clip))
        assert found == UpperBounds(reason="Nothing is claimed: nearly all losses are 0.")
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


@pytest.mark.parametrize("p", [10, 30])
def test_sources_that_z_has_made_equal_fail_as_seldom_as_they_may(p):
    """Measured losses coincide, and noise chooses the worst source: 1 − .975^p without Šidák."""
    runs, n, failed, before = 200, 200, 0, 0
    domain = np.repeat(np.arange(p), n)
    for seed in range(runs):
        rng = np.random.default_rng([seed, p])
        x = rng.uniform(size=(p, n))
        truth = (1.0 - x.mean(axis=1)).max()
        x += 0.5 - x.mean(axis=1, keepdims=True)
        fold = np.tile(np.arange(n) % 5, p)
        rows = LossSummary.of_rows(x.ravel(), 0 * x.ravel(), domain, None, fold)
        failed += rows.asymptotic_uppers("loss", 1.2, 1 - 0.975 ** (1 / p)).max() < truth
        before += rows.asymptotic_uppers("loss", 1.2, 0.025).max() < truth
    assert failed <= (0.025 + 2 * np.sqrt(0.025 * 0.975 / runs)) * runs
    assert before > 0.1 * runs


@pytest.mark.parametrize(("rate", "new"), [(0.005, False), (0.01, False), (0.005, True)])
def test_rare_harm_of_the_combination_alone_is_allowed_for(rate, new):
    """Student's bound alone fails wherever no harmful row was drawn: in .37 of runs at .005."""
    runs, n, failed = 200, 200, 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, int(1000 * rate)])
        own = rng.exponential(0.1, size=2 * n)
        harm = (rng.random(2 * n) < rate) & (np.arange(2 * n) < n)
        fold = np.zeros(2 * n, dtype=int) if new else np.arange(2 * n) % 5
        rows = LossSummary.of_rows(own + harm, own, np.repeat([0, 1], n), None, fold)
        found = upper_bounds(rows, BoundOptions(0.05, clip=1.0 if new else None))
        draws = np.random.default_rng(seed).exponential(0.1, size=20_000)
        c = found.clip
        truth = rate * np.mean(np.minimum(draws + 1, c) - np.minimum(draws, c))
        failed += found.regret is not None and found.regret < truth
    assert failed <= (0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)) * runs


def test_rows_of_groups_count_as_one_draw():
    """Groups of ten rows, correlation .8: bounds on rows fail often, those on groups do not."""
    failed, asymptotic = np.zeros(2), BoundOptions(0.05, "student", clip=5.0)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(200), 10)
        common, own = rng.normal(size=200)[groups], rng.normal(size=2000)
        losses = np.exp(0.5 * (np.sqrt(0.8) * common + np.sqrt(0.2) * own)) / 4
        known = losses, np.full(2000, 0.2), np.zeros(2000, dtype=int)
        both = [LossSummary.of_rows(*known), LossSummary.of_rows(*known, groups=groups)]
        # E exp(X/2)/4, X standard normal; hardly any loss is above the clip.
        failed += [upper_bounds(rows, asymptotic).loss < np.exp(1 / 8) / 4 for rows in both]
    assert failed[0] > 6
    assert failed[1] <= 3
    rows = both[1]
    assert (rows.n_rows, rows.alike) == (pytest.approx(200), True)
    np.testing.assert_allclose(rows.source_losses, losses.mean())
    # The same as of the groups' means, where nothing is clipped.
    means = losses.reshape(200, 10).mean(axis=1), np.full(200, 0.2), np.zeros(200, dtype=int)
    options = BoundOptions(0.05, clip=5.0)
    found, due = (upper_bounds(x, options) for x in (rows, LossSummary.of_rows(*means)))
    assert (found.loss, found.regret) == pytest.approx((due.loss, due.regret))
    assert found.loss_ground == "exact"
    # Groups of different sizes have weights, and no bet is exact.
    sizes = np.repeat(np.arange(200), np.arange(200) % 3 + 1)
    assert not LossSummary.of_rows(*(x[: sizes.size] for x in known), groups=sizes).alike
