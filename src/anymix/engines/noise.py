"""Gaussian noise on what leaves a site, and what of its privacy is spent by then.

Each row counts with a vector v_i(z) = (ℓ, ∇ℓ[, λ∇²ℓ]) whose length is cut to C, so that adding or
removing a row moves the mean by at most C/n; what leaves is

    (1/n) Σ_i v_i min(1, C/|v_i|) + N(0, (σC/n)²)        one release for each z
    ε(δ) = ρ + 2 √(ρ log 1/δ),   ρ = k/(2σ²)             after k releases
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Problem
from anymix.engines.answering import answer, check_question, home_of
from anymix.engines.messages import need_flower
from anymix.engines.questions import Arrays, Question
from anymix.engines.table_part import TablePart
from anymix.exceptions import InputError

DELTA = 1e-5


@dataclass(frozen=True)
class Noise:
    """σ and C, and how much may be spent: ε at δ, over all runs that a site has ever answered."""

    sigma: float
    clip: float = 1.0
    most: float = inf
    delta: float = DELTA

    def __post_init__(self) -> None:
        if not (self.sigma > 0 and self.clip > 0 and 0 < self.delta < 1):
            raise InputError("noise", "needs a positive sigma and clip, and a delta below 1")

    def answer(self, question: Question, part: TablePart, rng: np.random.Generator) -> Arrays:
        """Answer with noise what can be; the number of rows is taken to be known."""
        check_question(question, len(part.tables.log_masses))
        if question.verb == "count":
            # All else in it is of numbers of rows.
            return answer(question, part) | {"target_sum": np.zeros(())}
        if question.verb == "check":
            return answer(question, part)
        if question.verb not in ("evaluate", "baseline"):
            raise InputError(
                f"the question {question.verb!r}",
                "is not answered with noise; let the server learn with noise=true",
            )
        problem, k = part.problem(question.words, question.arrays), home_of(part)
        assert problem is not None
        n = float(question.arrays["totals"][k])
        if question.verb == "evaluate":
            return self._sums(question.arrays, problem, k, n, rng)
        losses = problem.loss.value(problem.predictions[k], problem.targets)
        own = np.zeros(problem.n_sources)
        own[k] = self._mean(losses[None, None], n, rng)[0, 0]
        return {"n_points": np.array(float(problem.n_points)), "own_losses": own}

    def _sums(
        self, asked: Arrays, problem: Problem, k: int, n: float, rng: np.random.Generator
    ) -> Arrays:
        Z, multipliers = np.asarray(asked["Z"], dtype=float), asked.get("multipliers")
        own = None if multipliers is None else np.asarray(multipliers)[:, k]
        found, (s, p) = self._mean(row_vectors(problem, Z, own), n, rng), Z.shape
        told = {"losses": found[:, 0], "slopes": found[:, 1 : 1 + p]}
        if own is not None:
            bends = found[:, 1 + p :].reshape(s, p, p)
            told["hessians"] = (bends + bends.transpose(0, 2, 1)) / 2
        return told

    def _mean(self, rows: FloatArray, n: float, rng: np.random.Generator) -> FloatArray:
        """Cut rows (s, d, m) to the length C, add them up, and add noise."""
        length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
        cut = rows * np.minimum(1.0, self.clip / np.maximum(length, 1e-300))
        scale = self.sigma * self.clip / n
        return np.asarray(cut.sum(axis=2) / n + rng.normal(0.0, scale, rows.shape[:2]))

    def spent(self, releases: int) -> float:
        """ε at δ after so many releases."""
        return spent(self.sigma, releases, self.delta)

    def check(self, releases: int) -> None:
        """Refuse what would spend more than the site allows."""
        if self.spent(releases) > self.most:
            raise InputError(
                "the privacy of this site",
                f"would be spent: ε would be {self.spent(releases):.3g} where {self.most:.3g} is "
                "allowed",
            )


def spent(sigma: float, releases: int, delta: float = DELTA) -> float:
    """ε at δ of Gaussian releases, by Flower's accountant where it can be had, else by `formula`.

    >>> spent(10.0, 0), 0 < spent(10.0, 100) <= formula(10.0, 100)
    (0.0, True)
    """
    if releases == 0:
        return 0.0
    try:
        return _accounted(sigma, releases, delta)
    except ImportError:
        return formula(sigma, releases, delta)


def formula(sigma: float, releases: int, delta: float = DELTA) -> float:
    """ε at δ by concentrated privacy; an accountant is a little finer.

    >>> round(formula(10.0, 100), 2)
    5.3
    """
    rho = releases / (2.0 * sigma**2)
    return rho + 2.0 * sqrt(rho * log(1.0 / delta))


def _accounted(sigma: float, releases: int, delta: float) -> float:
    need_flower()
    from flwr import serverapp as flower

    relation = flower.NeighboringRelation.ADD_OR_REMOVE_ONE
    without = flower.SamplingMethod.NO_AMPLIFICATION
    config = flower.PrivacyConfig(
        target_delta=delta,
        population_size=1,
        neighboring_relation=relation,
        sampling_method=without,
    )
    accountant = flower.RdpAccountant(config)
    event = flower.GaussianPrivacyEvent(noise_multiplier=sigma, sample_size=1, population_size=1)
    accountant.compose(event, releases)
    return float(accountant.get_epsilon(delta))


def releases_in(question: Question) -> int:
    """Count the releases of one question: one for each z, and one of own losses."""
    if question.verb == "evaluate":
        return len(np.atleast_2d(question.arrays["Z"]))
    return int(question.verb == "baseline")


def row_vectors(problem: Problem, Z: FloatArray, multiplier: FloatArray | None) -> FloatArray:
    """Return ℓ, ∇ℓ and, with λ (s,), λ∇²ℓ of each row, side by side: (s, 1 + p[+ p²], m)."""
    h, K = (np.stack(one) for one in zip(*(problem.ratio(z) for z in Z), strict=True))
    y, D, B, loss = problem.targets, problem.masses, problem.weighted, problem.loss
    value, slope, bend = (
        np.stack([of(one, y) for one in h]) for of in (loss.value, loss.slope, loss.curvature)
    )
    if B.ndim == 2:
        B, h, slope, bend = B[..., None], h[..., None], slope[..., None], bend[..., None]
    s, p, m = len(Z), *D.shape
    # a = (D∘h − h_z D)/K, d = D/K:  ∇ℓ = ℓ' a,  ∇²ℓ = ℓ'' aa' − ℓ'(da' + ad')
    d = D / K[:, None]
    a = B / K[:, None, :, None] - h[:, None] * d[..., None]
    parts = [value[:, None], np.einsum("smc,spmc->spm", slope, a)]
    if multiplier is not None:
        cross = np.einsum("smc,spm,sqmc->spqm", slope, d, a, optimize=True)
        bends = np.einsum("smc,spmc,sqmc->spqm", bend, a, a, optimize=True)
        bends -= cross + cross.transpose(0, 2, 1, 3)
        parts.append((multiplier[:, None, None, None] * bends).reshape(s, p * p, m))
    return np.concatenate(parts, axis=1)
