"""Worlds in which certificates are tried: rows are drawn, and what a model loses in truth is known.

    Gaussian, t2.1, rare +8, labels   those of `benchmarks.worlds`: sources in a plane
    copies                            Gaussian, but each row occurs three times and says so
    routing                           sources far apart; in one of n rows of the first source
                                      densities point to the second: harm that no own model does
    overlap                           labels; sources look the same and answer differently
    ... + generalist                  the same; sources may consult a model of all sources' rows

The truth is a mean over 1024 quasi-random points of each source, and over the noise exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from scipy import stats
from scipy.special import expit

from anymix.sources import PROBABILITY_FLOOR, Tables, combined_predictions
from benchmarks.worlds import LABELS, NUMBERS, RARE, SHARE, World, chance_of_one, truth

Floats = np.ndarray
PLANE = ("Gaussian", "t2.1", "rare +8", LABELS, "copies", "routing")
WORLDS = (*PLANE, "overlap")
GENERALIST = " + generalist"
WITH_GENERALIST = tuple(name + GENERALIST for name in ("Gaussian", LABELS, "routing", "overlap"))
COPIES, DISTANCE, OTHERS_LABEL = 3, 6.0, 0.5
LOG2_POINTS, N_NOISE, N_ERRORS = 10, 801, 400


class Truth(dict[str, Floats]):
    """What is true of each source: "loss", "own" and "above", (p,) each, of losses clipped at c."""

    def worst(self, half: str) -> float:
        """The largest over sources of a loss, a regret, or a share of rows above c."""
        values = self["loss"] - self["own"] if half == "regret" else self[half]
        return float(np.max(values))


class Case(Protocol):
    """Draws rows, and knows what a combination loses in truth."""

    loss: str

    def draw(self, sizes: list[int], rng: np.random.Generator) -> Tables:
        """Draw so many rows (or groups of them) of each source, evaluated and labelled."""

    def truth(self, combination: Any, clip: float | None) -> Truth:
        """What each source loses in truth, clipped at c."""


def quadratic(X: Floats) -> Floats:
    """The columns of a quadratic model in the plane, (n, 6)."""
    x, y = X.T
    return np.column_stack([np.ones(len(X)), x, y, x * x, x * y, y * y])


@lru_cache(maxsize=2)
def normal_points(log2: int = LOG2_POINTS) -> Floats:
    """Quasi-random points of a standard normal distribution in the plane, (2^log2, 2)."""
    uniform = stats.qmc.Sobol(2, scramble=True, rng=0).random_base2(log2)
    return np.asarray(stats.norm.ppf(uniform))


@dataclass(frozen=True)
class PlaneCase:
    """Sources in a plane; rate is the share of rows of the first that are routed wrongly.

    general are the coefficients (6,) of a quadratic model of rows of all sources, if they may
    consult one.
    """

    name: str
    world: World
    rate: float = 0.0
    general: Floats | None = None

    @classmethod
    def make(cls, name: str, p: int, seed: int, n: int) -> PlaneCase:
        """Draw a world by its seed; n says how rare rare is."""
        if name != "routing":
            return cls(name, World.draw(p, "Gaussian" if name == "copies" else name, seed))
        angle = 2 * np.pi * np.arange(p) / p
        radius = DISTANCE / (2 * np.sin(np.pi / p))
        centres = radius * np.column_stack([np.cos(angle), np.sin(angle)])
        world = World("Gaussian", centres, np.zeros((p, 3)))
        return cls(name, world.trained(300, np.random.default_rng(seed)), 1.0 / n)

    def with_generalist(self) -> PlaneCase:
        """Return the case with a model that was learned from other rows of all sources."""
        rng = np.random.default_rng(self.world.p)
        X = np.concatenate([self.world.rows(k, 300, rng) for k in range(self.world.p)])
        y = truth(X) + 0.5 * rng.normal(size=len(X))
        return replace(self, general=np.linalg.lstsq(quadratic(X), y, rcond=None)[0])

    @property
    def loss(self) -> str:
        """Which loss is certified."""
        return "cross_entropy" if self.world.labels else "squared"

    def draw(self, sizes: list[int], rng: np.random.Generator) -> Tables:
        """See `Case`."""
        world = self.world
        domain = np.repeat(np.arange(world.p), sizes)
        X = world.centres[domain] + rng.normal(size=(domain.size, 2))
        y, group = world.targets(X, rng), None
        if self.name == "copies":
            X, y, domain = (np.repeat(rows, COPIES, axis=0) for rows in (X, y, domain))
            group = np.arange(domain.size) // COPIES
        wrong = (domain == 0) & (rng.random(domain.size) < self.rate)
        return self.routed(X, wrong).labelled(y, domain, groups=group)

    def routed(self, X: Floats, wrong: Floats) -> Tables:
        """Evaluate rows, where densities take some for rows of the second source."""
        world, seen = self.world, X.copy()
        seen[wrong] += world.centres[1] - world.centres[0]
        tables, said = world.tables(X), None
        if self.general is not None:
            said = quadratic(X) @ self.general
            if world.labels:
                one = np.clip(expit(8.0 * said), PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
                said = np.column_stack([1 - one, one])
        return replace(tables, log_masses=world.log_masses(seen), generalist=said)

    @cached_property
    def points(self) -> tuple[Floats, Floats, Floats, Tables, Floats]:
        """Points, their sources and weights, tables, and the own model's predictions there."""
        world, base = self.world, normal_points()
        X = np.concatenate([base + centre for centre in world.centres])
        domain = np.repeat(np.arange(world.p), len(base))
        weight, wrong = np.full(len(X), 1.0 / len(base)), np.zeros(len(X), dtype=bool)
        if self.rate > 0:
            # The rows that are routed wrongly are a stratum of their own.
            weight[domain == 0] *= 1.0 - self.rate
            X, domain = np.r_[X, base + world.centres[0]], np.r_[domain, np.zeros(len(base), int)]
            weight = np.r_[weight, np.full(len(base), self.rate / len(base))]
            wrong = np.r_[wrong, np.ones(len(base), dtype=bool)]
        tables = self.routed(X, wrong)
        return X, domain, weight, tables, tables.predictions[domain, np.arange(domain.size)]

    def truth(self, combination: Any, clip: float | None) -> Truth:
        """See `Case`."""
        X, domain, weight, tables, own = self.points
        said = combined_predictions(tables, combination)
        return self.truth_of(said, own, X, domain, weight, clip)

    def truth_of(
        self, said: Floats, own: Floats, X: Floats, domain: Floats, weight: Floats, c: float | None
    ) -> Truth:
        """What given predictions lose at weighed points."""
        cap = np.inf if c is None else c
        both = [self.expected(h, X, cap) for h in (said, own)]
        columns = {"loss": both[0][0], "own": both[1][0], "above": both[0][1]}
        p = self.world.p
        return Truth({name: np.bincount(domain, weight * x, p) for name, x in columns.items()})

    def expected(self, h: Floats, X: Floats, cap: float) -> tuple[Floats, Floats]:
        """E[min(ℓ, c) | x] and P(ℓ > c | x) at each point."""
        if self.world.labels:
            chance, losses = chance_of_one(X), -np.log(h)
            chances = np.column_stack([1 - chance, chance])
            return (chances * np.minimum(losses, cap)).sum(1), (chances * (losses > cap)).sum(1)
        # Both hang on the error h − f(x) alone: a table of them, and straight lines between.
        error = h - truth(X)
        grid = np.linspace(error.min(), error.max(), N_ERRORS)
        noise, w = noise_points(self.world.noise)
        losses = (grid[:, None] - noise) ** 2
        tables = np.minimum(losses, cap) @ w, (losses > cap) @ w
        return np.interp(error, grid, tables[0]), np.interp(error, grid, tables[1])


@lru_cache(maxsize=8)
def noise_points(name: str) -> tuple[Floats, Floats]:
    """Noise at equal steps of probability, and the weight of each."""
    u = (np.arange(N_NOISE) + 0.5) / N_NOISE
    noise, w = NUMBERS[name](u), np.full(N_NOISE, 1 / N_NOISE)
    if name != "rare +8":
        return noise, w
    return np.r_[noise, noise + RARE], np.r_[(1 - SHARE) * w, SHARE * w]


@dataclass(frozen=True)
class OverlapCase:
    """p sources with the same rows and p labels; source k's label is k half of the time."""

    p: int
    loss: str = "cross_entropy"
    general: bool = False

    @property
    def chances(self) -> Floats:
        """P(y | source), (p, p), which the own models know."""
        Q = np.full((self.p, self.p), OTHERS_LABEL / (self.p - 1))
        np.fill_diagonal(Q, 1 - OTHERS_LABEL)
        return Q

    def tables(self, m: int) -> Tables:
        """What the sources say of m rows."""
        said = np.repeat(self.chances[:, None, :], m, axis=1)
        mean = np.tile(self.chances.mean(axis=0), (m, 1)) if self.general else None
        return Tables(np.zeros((self.p, m)), said, classes=np.arange(self.p), generalist=mean)

    def draw(self, sizes: list[int], rng: np.random.Generator) -> Tables:
        """See `Case`."""
        domain = np.repeat(np.arange(self.p), sizes)
        below = np.cumsum(self.chances, axis=1)[domain]
        y = (rng.random(domain.size)[:, None] > below).sum(axis=1).clip(max=self.p - 1)
        return self.tables(domain.size).labelled(y, domain)

    def truth(self, combination: Any, clip: float | None) -> Truth:
        """See `Case`."""
        Q, cap = self.chances, np.inf if clip is None else clip
        losses = -np.log(combined_predictions(self.tables(1), combination)[0])
        own = (Q * np.minimum(-np.log(Q), cap)).sum(axis=1)
        return Truth(loss=Q @ np.minimum(losses, cap), own=own, above=Q @ (losses > cap))


def make_case(name: str, p: int, seed: int, n: int) -> Case:
    """Return the case of a name; n rows of the first source say how rare rare is."""
    plain = name.removesuffix(GENERALIST)
    if plain == "overlap":
        return OverlapCase(p, general=plain != name)
    case = PlaneCase.make(plain, p, seed, n)
    return case if plain == name else case.with_generalist()
