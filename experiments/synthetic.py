"""Problems with known densities: the paper's two artificial data sets, and families like them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LinearRegression, LogisticRegression

from anymix._arrays import FloatArray
from anymix.core import Problem


@dataclass(frozen=True)
class MixtureDomains:
    """p domains, each a mixture of Gaussians of one spread; a component may stand for a class.

    means is (p, c, d), the spread (p,) is a variance.
    """

    means: FloatArray
    variances: FloatArray

    def sample(
        self, k: int, n: int, rng: np.random.Generator
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Draw n points of domain k and the component of each."""
        component = rng.integers(self.means.shape[1], size=n).astype(np.intp)
        noise = rng.standard_normal((n, self.means.shape[2]))
        return self.means[k, component] + np.sqrt(self.variances[k]) * noise, component

    def log_joint(self, X: FloatArray) -> FloatArray:
        """log D_k(x, component c), shape (p, n, c)."""
        p, c, d = self.means.shape
        flat = self.means.reshape(p * c, d)
        squared = (X**2).sum(axis=1)[:, None] + (flat**2).sum(axis=1) - 2 * X @ flat.T
        squared = np.moveaxis(squared.reshape(-1, p, c), 0, 1)
        v = self.variances[:, None, None]
        return np.asarray(-squared / (2 * v) - d / 2 * np.log(2 * np.pi * v) - np.log(c))

    def log_density(self, X: FloatArray) -> FloatArray:
        """log D_k(x), shape (p, n)."""
        return np.asarray(logsumexp(self.log_joint(X), axis=2))


def paper_regression_domains() -> MixtureDomains:
    """Two domains of three unit Gaussians each: g1 g2 g3 and g2 g3 g4.

    Paper: App. E.1.
    """
    g = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    return MixtureDomains(g[[[0, 1, 2], [1, 2, 3]]], np.ones(2))


def paper_classification_domains(rng: np.random.Generator, p: int = 3) -> MixtureDomains:
    """Three classes at random means, turned by a random orthonormal map per domain; .05, .05, .3.

    Paper: App. E.1.
    """
    base = rng.standard_normal((3, 2))
    turns = [np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(p)]
    means = np.stack([base @ turn for turn in turns])
    return MixtureDomains(means, np.resize([0.05, 0.05, 0.3], p))


def _labelled(
    domains: MixtureDomains, m: int, rng: np.random.Generator
) -> tuple[list[FloatArray], list[NDArray[np.intp]]]:
    """Draw m points in all, the same number from each domain, at least one."""
    p = domains.means.shape[0]
    sizes = np.full(p, m // p) + (np.arange(p) < m % p)
    drawn = [domains.sample(k, max(1, int(n)), rng) for k, n in enumerate(sizes)]
    return [X for X, _ in drawn], [c for _, c in drawn]


def regression_problem(
    domains: MixtureDomains, target: FloatArray | None, m: int, rng: np.random.Generator
) -> Problem:
    """Linear regressors on each domain; f(x) = |x|², or a quadratic form plus sines if given."""
    d = domains.means.shape[2]

    def f(X: FloatArray) -> FloatArray:
        if target is None:
            return np.asarray((X**2).sum(axis=1))
        return np.asarray(np.einsum("ni,ij,nj->n", X, target, X) + np.sin(X).sum(axis=1))

    train = [domains.sample(k, max(200, 10 * d), rng)[0] for k in range(domains.means.shape[0])]
    models = [LinearRegression().fit(X, f(X)) for X in train]
    X = np.vstack(_labelled(domains, m, rng)[0])
    h = np.stack([model.predict(X) for model in models])
    return Problem.from_log_densities(domains.log_density(X), h, f(X), loss="squared")


def classification_problem(domains: MixtureDomains, m: int, rng: np.random.Generator) -> Problem:
    """Logistic regressors on each domain, joint densities, the cross-entropy."""
    p = domains.means.shape[0]
    models = []
    for k in range(p):
        X, y = domains.sample(k, 300, rng)
        models.append(LogisticRegression().fit(X, y))
    Xs, ys = _labelled(domains, m, rng)
    X, y = np.vstack(Xs), np.concatenate(ys)
    rows = np.arange(len(y))
    h = np.stack([model.predict_proba(X)[rows, y] for model in models])
    log_joint = domains.log_joint(X)[:, rows, y]
    return Problem.from_log_densities(log_joint, np.clip(h, 1e-12, 1), None, loss="cross_entropy")


def paper_regression(m: int, rng: np.random.Generator) -> Problem:
    """The paper's artificial data for the squared loss.

    Paper: App. E.1.
    """
    return regression_problem(paper_regression_domains(), None, m, rng)


def paper_classification(m: int, rng: np.random.Generator) -> Problem:
    """The paper's artificial data for the cross-entropy.

    Paper: App. E.1.
    """
    return classification_problem(paper_classification_domains(rng), m, rng)


def random_regression(p: int, m: int, rng: np.random.Generator) -> Problem:
    """Draw domains of 3 unit Gaussians at N(0, 4I) centres in 5-d, a quadratic plus sines."""
    domains = MixtureDomains(2 * rng.standard_normal((p, 3, 5)), np.ones(p))
    return regression_problem(domains, rng.standard_normal((5, 5)), m, rng)


def random_classification(p: int, m: int, rng: np.random.Generator) -> Problem:
    """The paper's classification data with p domains."""
    return classification_problem(paper_classification_domains(rng, p), m, rng)


def random_tables(p: int, m: int, rng: np.random.Generator, loss: str = "squared") -> Problem:
    """Dirichlet-like masses, and predictors that are accurate where their source has mass."""
    spread = rng.uniform(0.5, 4.0)
    r = softmax(spread * rng.standard_normal((p, m)), axis=0)
    error = (1 - r) ** rng.uniform(0.3, 3.0, size=(p, 1))
    if loss == "squared":
        y = rng.standard_normal(m)
        h = y + error * rng.standard_normal((p, m)) * rng.uniform(0.5, 3.0, size=(p, 1))
        return Problem(r / r.sum(axis=1, keepdims=True), h, y, loss="squared")
    h = np.clip(1 - error * rng.uniform(0.3, 1.0, size=(p, m)), 1e-6, 1)
    return Problem(r / r.sum(axis=1, keepdims=True), h, None, loss="cross_entropy")
