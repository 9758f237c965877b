"""Every large enough subpopulation of every mixture: the theorem, closed forms, and coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

from anymix.core import BoundOptions, LossSummary
from anymix.core.guarantees.upper_bounds import upper_bounds


def summary_of(samples, fold=None):
    domain = np.repeat(np.arange(len(samples)), [len(x) for x in samples])
    losses = np.concatenate(samples).astype(float)
    return LossSummary.of_rows(losses, np.zeros(losses.size), domain, None, fold)


def excess_bound(samples, t, c, share):
    """t + max_k E (min(ℓ, c) − t)₊ / β."""
    return t + max(np.maximum(np.minimum(x, c) - t, 0).mean() for x in samples) / share


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.3, 0.7, 1.0]))
def test_no_subpopulation_of_any_mixture_loses_more(seed, share):
    rng = np.random.default_rng(seed)
    samples = [rng.exponential(size=int(rng.integers(2, 8))) for _ in range(3)]
    mixture, c = rng.dirichlet(np.ones(3)), float(rng.uniform(0.5, 3))
    masses = np.concatenate(
        [np.full(len(x), w / len(x)) for x, w in zip(samples, mixture, strict=True)]
    )
    losses = np.minimum(np.concatenate(samples), c)
    # The subpopulation that loses most: dQ/dD ≤ 1/β, by linear programming.
    limits = [(0, mass / share) for mass in masses]
    worst = -linprog(-losses, A_eq=np.ones((1, losses.size)), b_eq=[1.0], bounds=limits).fun
    assert all(worst <= excess_bound(samples, t, c, share) + 1e-9 for t in np.linspace(0, c, 9))


@pytest.mark.parametrize("share", [0.05, 0.2])
@pytest.mark.parametrize("draw", ["exponential", "normal"])
def test_the_best_threshold_gives_the_closed_form(draw, share):
    n, rng = 400_000, np.random.default_rng(0)
    if draw == "exponential":
        x, due = rng.exponential(size=n), 1 - np.log(share)
    else:
        x, due = 5 + rng.normal(size=n), 5 + stats.norm.pdf(stats.norm.ppf(share)) / share
    samples, c = [x, x[:1000] - x[:1000].mean()], 50.0
    samples[1] = np.maximum(samples[1], 0.0)  # an easier source changes nothing
    t = summary_of(samples).threshold(share, c)
    assert excess_bound(samples, t, c, share) == pytest.approx(due, rel=0.03)


def test_the_smallest_bound_is_that_of_the_worst_mixture():
    rng, share, c = np.random.default_rng(1), 0.3, 10.0
    samples = [rng.exponential(s, size=2000) for s in (1.0, 0.8)] + [rng.normal(2.2, 0.1, 2000)]
    least = min(excess_bound(samples, t, c, share) for t in np.linspace(0, 5, 501))

    def tail_mean(weights):
        masses = np.repeat(weights, 2000) / 2000
        losses = np.concatenate(samples)
        order = np.argsort(-losses)
        before = np.cumsum(masses[order]) - masses[order]
        kept = np.clip(share - before, 0, masses[order])
        return kept @ losses[order] / share

    grid = [(a, b, 1 - a - b) for a in np.linspace(0, 1, 21) for b in np.linspace(0, 1 - a, 21)]
    assert max(map(tail_mean, np.array(grid))) == pytest.approx(least, rel=5e-3)


@pytest.mark.parametrize(("n", "share"), [(100, 0.5), (400, 0.2)])
def test_new_rows_bound_it_exactly(n, share):
    rng, runs, c = np.random.default_rng(n), 300, 4.0
    true = summary_of([rng.exponential(s, size=200_000) for s in (1.0, 0.9)])
    t = true.threshold(share, c)
    due = excess_bound([s.losses for s in true.samples], t, c, share)
    options = BoundOptions.at(0.95, clip=c, share=share, threshold=t, method="betting")
    found = [
        upper_bounds(summary_of([rng.exponential(s, size=n) for s in (1.0, 0.9)]), options).part
        for _ in range(runs)
    ]
    claimed = [bound for bound in found if bound is not None]
    assert np.mean(np.array(claimed) < due) <= 0.05
    assert len(claimed) > runs / 2
    assert np.median(claimed) < 0.9 * c


def test_folds_bound_it_as_rows_become_many():
    rng, share, runs = np.random.default_rng(3), 0.2, 200
    options, wrong = BoundOptions.at(0.95, share=share), 0
    for _ in range(runs):
        samples = [rng.exponential(s, size=1000) for s in (1.0, 1.0, 0.5)]
        found = upper_bounds(summary_of(samples, rng.integers(5, size=3000)), options)
        assert found.loss_ground == "asymptotic"
        # min(x, c) of an exponential: E (min(x, c) − t)₊ = e^−t − e^−c, least at the quantile of β.
        t = -np.log(share)
        wrong += found.part < t + (np.exp(-t) - np.exp(-found.clip)) / share
    assert wrong <= 0.05 * runs + 2 * np.sqrt(0.05 * 0.95 * runs)


def test_wrong_labels_divide_by_the_share():
    wrong = [np.r_[np.ones(3), np.zeros(297)], np.zeros(200)]
    options = BoundOptions.at(0.95, loss_bound=1.0, binary=True, share=0.5, threshold=0.0)
    found = upper_bounds(summary_of(wrong), options)
    assert found.part == pytest.approx(2 * found.loss)


def test_a_clip_that_cuts_much_of_a_subpopulation_is_not_claimed():
    rng = np.random.default_rng(0)
    options = BoundOptions.at(0.95, share=0.02)
    found = upper_bounds(
        summary_of([rng.exponential(size=300)] * 2, rng.integers(5, size=600)), options
    )
    assert found.part is None
    assert found.loss is not None
    assert "No bound on subpopulations of 2 % is claimed" in found.reason
