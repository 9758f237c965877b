"""Small worlds with a known truth: p sources in a plane, models that were trained there, noise.

    numbers    y = sin x_1 + x_2 cos x_1 / 2 + noise; each source has a plane through its own rows
    labels     P(y = 1) = 1/200 + 99/100 σ(8 f(x)): in 1 row of 200 the surest model is wrong

Expected losses at a point are sums over quantiles of the noise, or over both labels: what a model
loses is known without drawing targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import expit

from anymix.sources import PROBABILITY_FLOOR, Tables

Floats = np.ndarray
N_QUANTILES = 101
# 8 in one row of 200, as Gaussian noise.
RARE, SHARE = 8.0, 0.005
NUMBERS: dict[str, Callable[[Floats], Floats]] = {
    "Gaussian": lambda u: 0.5 * stats.norm.ppf(u),
    "t2.1": lambda u: 0.3 * stats.t.ppf(u, 2.1),
    "log-normal": lambda u: 0.3 * (np.exp(stats.norm.ppf(u)) - np.exp(0.5)),
    "rare +8": lambda u: 0.5 * stats.norm.ppf(u),
}
LABELS = "labels"
NOISES = (*NUMBERS, LABELS)


@dataclass(frozen=True)
class World:
    """Where the sources lie, and what each one's model says: coefficients (p, 3)."""

    noise: str
    centres: Floats
    models: Floats

    @classmethod
    def draw(cls, p: int, noise: str, seed: int, n: int = 300) -> World:
        """Place the sources, and train each one's model on rows of its own."""
        rng = np.random.default_rng(seed)
        return cls(noise, 1.5 * rng.normal(size=(p, 2)), np.zeros((p, 3))).trained(n, rng)

    def trained(self, n: int, rng: np.random.Generator) -> World:
        """Train each source's model on n rows of its own."""
        models = np.empty((self.p, 3))
        for k in range(self.p):
            X = self.rows(k, n, rng)
            # Labels have a score that is linear near home, as a logistic regression finds it.
            y = truth(X) + 0.5 * rng.normal(size=n)
            models[k] = np.linalg.lstsq(_design(X), y, rcond=None)[0]
        return World(self.noise, self.centres, models)

    @property
    def p(self) -> int:
        """Number of sources."""
        return len(self.centres)

    @property
    def labels(self) -> bool:
        """Whether labels are to be told."""
        return self.noise == LABELS

    def rows(self, k: int, n: int, rng: np.random.Generator) -> Floats:
        """Draw rows of a source."""
        return self.centres[k] + rng.normal(size=(n, 2))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw n rows of each source: X, y, domain."""
        X = np.concatenate([self.rows(k, n, rng) for k in range(self.p)])
        return X, self.targets(X, rng), np.repeat(np.arange(self.p), n)

    def targets(self, X: Floats, rng: np.random.Generator) -> Floats:
        """Draw what is to be told of rows."""
        if self.labels:
            return (rng.random(len(X)) < chance_of_one(X)).astype(np.intp)
        noise = NUMBERS[self.noise](rng.random(len(X)))
        if self.noise == "rare +8":
            noise = noise + RARE * (rng.random(len(X)) < SHARE)
        return np.asarray(truth(X) + noise)

    def tables(self, X: Floats, y: Floats | None = None, domain: Floats | None = None) -> Tables:
        """What the sources say of rows; densities are a little too sure, as estimates are."""
        said = self.models @ _design(X).T
        classes = None
        if self.labels:
            one = np.clip(expit(8.0 * said), PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
            said, classes = np.stack([1 - one, one], axis=2), np.array([0, 1])
        found = Tables(self.log_masses(X), said, classes=classes)
        return found if y is None or domain is None else found.labelled(y, domain)

    def log_masses(self, X: Floats) -> Floats:
        """Log-densities of the sources, (p, n)."""
        return np.stack([-0.65 * ((X - c) ** 2).sum(axis=1) for c in self.centres])

    def expected(self, h: Floats, X: Floats, clip: float | None = None) -> Floats:
        """E[min(ℓ(h, y), c) | x] at each row: squared error, or cross-entropy."""
        cap = np.inf if clip is None else clip
        if self.labels:
            one = chance_of_one(X)
            losses = np.minimum(-np.log(h), cap)
            return np.asarray((1 - one) * losses[:, 0] + one * losses[:, 1])
        error = (h - truth(X))[:, None]
        if clip is None:
            return np.asarray(error[:, 0] ** 2 - 2 * error[:, 0] * self._mean() + self._square())
        noise, weight = self._quantiles()
        return np.minimum((error - noise) ** 2, cap) @ weight

    def _quantiles(self) -> tuple[Floats, Floats]:
        """Noise at equal steps of probability, and the weight of each."""
        u = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        noise, weight = NUMBERS[self.noise](u), np.full(N_QUANTILES, 1 / N_QUANTILES)
        if self.noise != "rare +8":
            return noise, weight
        return np.r_[noise, noise + RARE], np.r_[(1 - SHARE) * weight, SHARE * weight]

    def _mean(self) -> float:
        return RARE * SHARE if self.noise == "rare +8" else 0.0

    def _square(self) -> float:
        """E noise², in closed form."""
        log_normal = 0.09 * (np.exp(2.0) - np.exp(1.0))
        known = {"Gaussian": 0.25, "t2.1": 0.09 * 21.0, "log-normal": log_normal}
        return known.get(self.noise, 0.25 + SHARE * RARE**2)


def truth(X: Floats) -> Floats:
    """f(x), the same for all sources."""
    return np.asarray(np.sin(X[:, 0]) + 0.5 * X[:, 1] * np.cos(X[:, 0]))


def chance_of_one(X: Floats) -> Floats:
    """P(y = 1 | x): one row of 200 is not what it seems."""
    return np.asarray(SHARE + (1 - 2 * SHARE) * expit(8.0 * truth(X)))


def _design(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])
