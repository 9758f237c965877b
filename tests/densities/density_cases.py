"""Every exported density and router, with rows that it takes, for the tests that all must pass.

What is listed here is found in `anymix.densities.__all__`: a new density needs no line in this
file, unless it cannot be made without arguments or has forms that are worth a test of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from anymix import densities
from anymix.densities import (
    BigramModel,
    ContrastiveDensity,
    GaussianKDE,
    GaussianMixtureDensity,
    KnownDensity,
    TextDensity,
)

N_TRAINING = 600
# P(next | context) of a, b and the end of a document, in the contexts begin, a and b.
CHAIN = {"begin": (0.5, 0.3, 0.2), "a": (0.2, 0.3, 0.5), "b": (0.3, 0.1, 0.6)}


class Case(NamedTuple):
    """A name, and what makes a density that is not fitted, for rows of so many features."""

    name: str
    make: Callable[[int], Any]

    @property
    def takes(self) -> str:
        return takes(self.make(1))

    @property
    def is_ratio(self) -> bool:
        """Whether scores are log D/U, learned by a classifier, and log D is asked for apart."""
        return "reference" in self.make(1).get_params()

    def log_density(self, rows: Any, d: int = 1) -> Any:
        """Return log D of the fitted density, whatever its scores are."""
        density = self.fitted(d)
        return density.log_density(rows) if self.is_ratio else density.score_samples(rows)

    def fitted(self, d: int = 1) -> Any:
        """Return the density of the training rows, fitted once for all checks."""
        return _fitted(self, d)


@cache
def _fitted(case: Case, d: int) -> Any:
    return case.make(d).fit(training_rows(case.takes, d))


def takes(density: Any) -> str:
    return getattr(density, "takes", "numbers")


def known_normal(d: int) -> KnownDensity:
    return KnownDensity(
        lambda X: norm.logpdf(X).sum(axis=1), lambda n, rng: rng.standard_normal((n, d))
    )


FORMS: dict[str, dict[str, Callable[[int], Any]]] = {
    "KnownDensity": {"normal": known_normal},
    "GaussianKDE": {
        "cv": lambda d: GaussianKDE(random_state=0),
        "centres": lambda d: GaussianKDE("scott", centres=30, random_state=0),
    },
    "GaussianMixtureDensity": {
        kind: lambda d, kind=kind: GaussianMixtureDensity(3, covariance_type=kind, random_state=0)
        for kind in ("full", "tied", "diag", "spherical")
    },
    "BigramModel": {
        smoothing: lambda d, smoothing=smoothing: BigramModel(smoothing)
        for smoothing in ("katz", "kneser_ney", "witten_bell", "absolute")
    },
    "ContrastiveDensity": {
        kind: lambda d, kind=kind: ContrastiveDensity(reference=kind, random_state=0)
        for kind in ("marginals", "centres", "both")
    },
    # Its default takes words for independent, which the documents of these tests are not.
    "TextDensity": {"katz": lambda d: TextDensity("katz", min_count=1)},
}


def plain(exported: type) -> Callable[[int], Any]:
    """Make it without arguments, but for the seed."""

    def make(d: int) -> Any:
        density = exported()
        seeded = "random_state" in density.get_params()
        return density.set_params(random_state=0) if seeded else density

    return make


def cases() -> list[Case]:
    """List every exported density, in each of its forms."""
    found = []
    for name in densities.__all__:
        exported = getattr(densities, name)
        if hasattr(exported, "score_samples"):
            forms = FORMS.get(name, {"plain": plain(exported)})
            found += [Case(f"{name}-{form}", make) for form, make in forms.items()]
    return found


def routers() -> list[Case]:
    """List every exported classifier of sources."""
    exported = [getattr(densities, name) for name in densities.__all__]
    return [Case(r.__name__, plain(r)) for r in exported if hasattr(r, "log_responsibilities")]


def training_rows(kind: str, d: int = 1, n: int = N_TRAINING, seed: int = 0) -> Any:
    """Draw rows of the standard normal, or documents of a Markov chain of two words."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) if kind == "numbers" else [_document(rng) for _ in range(n)]


def true_log_density(kind: str, rows: Any) -> Any:
    """Say what the training rows were drawn from."""
    if kind == "numbers":
        return norm.logpdf(rows).sum(axis=1)
    return np.array([_log_probability(document) for document in rows])


def _document(rng: np.random.Generator) -> list[str]:
    words, context = [], "begin"
    while (word := str(rng.choice(["a", "b", "end"], p=CHAIN[context]))) != "end":
        words.append(word)
        context = word
    return words


def _log_probability(document: list[str]) -> float:
    total, context = 0.0, "begin"
    for word in [*document, "end"]:
        total += np.log(CHAIN[context][("a", "b", "end").index(word)])
        context = word
    return total
