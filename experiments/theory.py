"""The theorems as studies: what averages must pay, and how far each bound is from the truth.

Every distribution here is a table of masses, so that losses and divergences are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import (
    Problem,
    Solution,
    best_hoelder,
    hoelder,
    nearest_mixture,
    one_input_example,
    renyi_ratio,
    solve,
)
from experiments.runner import Progress, Result
from experiments.synthetic import paper_regression

SIZES = (2, 4, 8, 16, 32)
ETAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
NOISES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
ORDERS = {"α = 2": 2.0, "α = ∞": np.inf}
N_POINTS = 1000
# What the paper does not have.
CROSS, BEST = "bound, cross-losses for M", "bound, best α"

Cell = tuple[str, float, float, float | None]


def run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study; it needs no data."""
    yield from study(seeds, progress)


def rehearse(seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on few points and shares, and the lower bounds for few sources."""
    yield from study(seeds, progress, n_points=20, sizes=SIZES[:2], shares=SHARES[:2])


def study(
    seeds: Sequence[int],
    progress: Progress,
    n_points: int = N_POINTS,
    sizes: Sequence[int] = SIZES,
    shares: Sequence[float] = SHARES,
) -> Iterator[Result]:
    """Run all parts; the lower bounds have nothing random, so that they are run once."""
    once = {"Lemma 7": averages_squared, "Lemma 8": averages_cross_entropy}
    once["App. C"] = distinct_conditionals
    drawn: dict[str, Callable[..., Iterator[Cell]]] = {
        "Cor. 2": mixtures_bound,
        "Cor. 10": partial(outside_bound, shares=shares),
        "Cor. 11": estimated_bound,
    }
    for table, cells in once.items():
        yield from _records(table, seeds[0], cells(sizes))
    for i, seed in enumerate(seeds):
        problem = paper_regression(n_points, np.random.default_rng(seed))
        for table, part in drawn.items():
            yield from _records(table, seed, part(problem, np.random.default_rng([seed, 1])))
        progress(i + 1, len(seeds), f"seed {seed}")


def _records(table: str, seed: int, cells: Iterator[Cell]) -> Iterator[Result]:
    name = dict.fromkeys(("Lemma 7", "Lemma 8", "App. C"), ", number of sources")
    name |= {"Cor. 2": ", η", "Cor. 10": ", share of the target outside"}
    name |= {"Cor. 11": ", error of the log-densities"}
    for method, column, value, paper in cells:
        yield Result(
            "theory",
            table + name[table],
            "beyond" if method in (CROSS, BEST) else "as published",
            method,
            f"{column:g}",
            "worst loss",
            seed,
            value,
            paper=paper,
        )


def averages_squared(sizes: Sequence[int] = SIZES) -> Iterator[Cell]:
    """p points, labels 0 and 1 in turn; source k has one point and says its label everywhere.

    Paper: Lemma 7.
    """
    for p in sizes:
        y = np.arange(p) % 2.0
        h = np.repeat(y[:, None], p, axis=1)
        yield from _best_average_beside_dw(Problem(np.eye(p), h, y, eta=1e-6), 0.25)


def averages_cross_entropy(sizes: Sequence[int] = SIZES) -> Iterator[Cell]:
    """p points with p labels; source k has the k-th of both and is certain of it everywhere.

    Paper: Lemma 8.
    """
    for p in sizes:
        # A probability of zero would cost an infinite loss; the least number stands for it.
        h = np.clip(np.eye(p), 1e-300, 1)
        problem = Problem(np.eye(p), h, None, loss="cross_entropy", eta=1e-6)
        yield from _best_average_beside_dw(problem, float(np.log(p)))


def distinct_conditionals(sizes: Sequence[int] = SIZES) -> Iterator[Cell]:
    """One input, p labels; source k has the k-th and is certain of it: log p once normalised.

    Paper: App. C.
    """
    for p in sizes:
        example = one_input_example(p, eta=1e-6)
        h = example.proba[:, np.arange(p), np.arange(p)]
        joint = Problem(example.masses, h, None, "cross_entropy", 1e-6, weights=np.eye(p))
        z = solve(joint, "robust").z
        yield "normalised rule", p, example.robust_loss(z), float(np.log(p))
        yield "joint rule, not normalised", p, joint.robust_loss(z), None


def _best_average_beside_dw(problem: Problem, lower: float) -> Iterator[Cell]:
    """An average is the rule with equal densities everywhere, so that one solver finds both."""
    p = problem.n_sources
    average = Problem(
        np.ones_like(problem.masses),
        problem.predictions,
        problem.targets,
        problem.loss,
        eta=1e-12,
        weights=problem.masses,
    )
    yield "best average", p, solve(average, "robust").robust_loss, lower
    yield "DW", p, solve(problem, "robust").robust_loss, None


def mixtures_bound(problem: Problem, rng: np.random.Generator) -> Iterator[Cell]:
    """max_λ L(D_λ, h_z) = max_k L_k(z) beside ε + ηM + γ, as η grows.

    And beside ε + η [(1/p) Σ_k L(U, h_k) − L(U, h_z)] + γ, U the mean density.

    Paper: Cor. 2.
    """
    for eta in ETAS:
        here = Problem(problem.masses, problem.predictions, problem.targets, eta=eta)
        found = solve(here, "gamma")
        yield "worst mixture", eta, found.robust_loss, None
        yield "bound ε + ηM + γ", eta, _within(here, found), None
        P = here.measure.rows()
        crossed = [P @ here.loss.value(h, here.targets) for h in here.predictions]
        spared = here.loss_bound - np.mean(crossed) + found.source_losses.mean()
        yield CROSS, eta, _within(here, found) - eta * float(spared), None


def _within(problem: Problem, found: Solution) -> float:
    """ε + ηM + γ, which holds on every mixture."""
    return float(found.own_losses.max()) + problem.eta * problem.loss_bound + found.gamma


def outside_bound(
    problem: Problem, rng: np.random.Generator, shares: Sequence[float] = SHARES
) -> Iterator[Cell]:
    """A share of the target's mass moves to where h_z errs most: loss beside Hölder's bound.

    Paper: Cor. 10.
    """
    found = solve(problem, "gamma")
    loss = problem.loss.value(problem.combined(found.z), problem.targets)
    centre = problem.masses.mean(axis=0)
    away = centre * loss / (centre @ loss)
    for share in shares:
        target = (1 - share) * centre + share * away
        yield "target", share, float(target @ loss), None
        for name, alpha in ORDERS.items():
            d = nearest_mixture(target, problem.masses, alpha).value
            bound = hoelder(_within(problem, found), d, alpha, problem.loss_bound)
            yield f"bound, {name}", share, bound, None
        yield BEST, share, _best_order(problem, found, target), None


def _best_order(problem: Problem, found: Solution, target: FloatArray) -> float:
    """The least of Hölder's bounds over α."""

    def divergence(alpha: float) -> float:
        return nearest_mixture(target, problem.masses, alpha).value

    return best_hoelder(_within(problem, found), divergence, problem.loss_bound).value


def estimated_bound(problem: Problem, rng: np.random.Generator) -> Iterator[Cell]:
    """Log-densities with Gaussian errors: the true worst loss beside the bound with ε̂.

    Paper: Cor. 11.
    """
    noise = rng.standard_normal(problem.masses.shape)
    for sigma in NOISES:
        masses = problem.masses * np.exp(sigma * noise)
        masses /= masses.sum(axis=1, keepdims=True)
        here = Problem(masses, problem.predictions, problem.targets, eta=problem.eta)
        found = solve(here, "gamma")
        true = problem.masses @ problem.loss.value(here.combined(found.z), problem.targets)
        yield "worst mixture", sigma, float(true.max()), None
        for name, alpha in ORDERS.items():
            yield f"bound, {name}", sigma, _estimated(problem, here, found, alpha), None


def _estimated(problem: Problem, here: Problem, found: Solution, alpha: float) -> float:
    """[(ε̂ + ηM + γ) d(D_k, mixtures of D̂)]^((α−1)/α) M^(1/α), the largest over k."""
    M = here.loss_bound
    pairs = zip(here.masses, problem.masses, strict=True)
    errors = [renyi_ratio(estimated, true, alpha) for estimated, true in pairs]
    own = float(problem.own_losses.max())
    within = hoelder(own, errors, alpha, M) + here.eta * M + found.gamma
    away = [nearest_mixture(D, here.masses, alpha).value for D in problem.masses]
    return hoelder(within, away, alpha, M)
