"""Learn from tables alone: calibrate, find z, certify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from scipy.special import log_softmax

from anymix._arrays import FloatArray
from anymix.core import (
    Certificate,
    Loss,
    Objective,
    Problem,
    Solution,
    certify,
    combine,
    get_loss,
    solve,
)
from anymix.densities import TemperatureScaling
from anymix.sources import Tables

# Powers of calibrated responsibilities that are tried.  The temperature that tells domains apart
# best is often too high for predictions: a strange model costs more than a wrong domain does.
SHARPNESS = (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Weighing:
    """log q_k = sharpness · calibrated log r_k, normalised; no scaling leaves the densities raw."""

    scaling: TemperatureScaling | None = None
    sharpness: float = 1.0

    def transform(self, log_masses: FloatArray) -> FloatArray:
        """Return log-responsibilities (p, n) from log-densities (p, n)."""
        if self.scaling is None:
            # A row that every source calls impossible says nothing: all sources alike.
            log_masses = np.where(np.isneginf(log_masses).all(axis=0), 0.0, log_masses)
            return np.asarray(log_softmax(self.sharpness * log_masses, axis=0))
        log_r = self.scaling.transform(log_masses)
        return log_r if self.sharpness == 1 else np.asarray(log_softmax(self.sharpness * log_r, 0))


@dataclass(frozen=True)
class Goal:
    """What z is to achieve: loss, η, rule, objective, shrinkage."""

    loss: str | Loss
    eta: float
    rule: str
    objective: str
    shrinkage: float | str

    def solve(self, tables: Tables) -> Solution:
        """Find z on these tables."""
        problem = tables.problem(get_loss(self.loss), self.eta, self.rule)
        shrinkage = 0.0 if self.objective == "gamma" else self.shrinkage
        return solve(problem, cast(Objective, self.objective), shrinkage=shrinkage)

    def value(self, solution: Solution) -> float:
        """Return what a weighing is judged by: the mean loss over sources, or the worst loss.

        For a given z the mean of the regrets is the mean loss up to a constant, and the mean is far
        less noisy than the largest, which picked a worse weighing on held-out real rows.
        """
        if self.objective == "robust":
            return solution.robust_loss
        return float(solution.source_losses.mean())

    def certify(
        self, tables: Tables, z: FloatArray, confidence: float, choices: int
    ) -> Certificate:
        """Certify z, which was fitted on these rows together with one of several weighings.

        The error probability is shared among the weighings that could have been chosen.
        """
        problem = tables.problem(get_loss(self.loss), self.eta, self.rule)
        if self.rule == "normalised":
            problem = NormalisedRule.of(tables, self.loss, self.eta)
        return certify(problem, z, confidence=confidence, held_out=False, choices=choices)


class NormalisedRule(Problem):
    """The joint rule's problem, judged by what is predicted: h_z(x, y) / Σ_y' h_z(x, y').

    Its Jacobian is not that of the quotient: to be certified, not solved.

    Paper: Thm 3.
    """

    log_joint: FloatArray
    proba: FloatArray

    @classmethod
    def of(cls, tables: Tables, loss: str | Loss, eta: float) -> Self:
        """Build it from tables with probabilities (p, m, c)."""
        h = tables.predictions
        log_joint = tables.log_masses[:, :, None] + np.log(h)
        at_label = log_joint[:, np.arange(tables.n_points), tables.targets]
        domain, weight = tables.sample_domain, tables.sample_weight
        self = cls.from_log_densities(at_label, h, tables.targets, loss, eta, domain, weight)
        assert isinstance(self, cls)
        assert self._order is not None
        self.log_joint, self.proba = log_joint[:, self._order], h[:, self._order]
        return self

    def ratio(self, z: FloatArray, block: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return the normalised h_z at the labels, and K_z.

        Paper: Thm 3.
        """
        joint, K = super().ratio(z, block)
        log_d, h = self.log_joint[:, block], self.proba[:, block]
        total = combine(log_d, h, z, self.eta, rule="joint").sum(axis=1)
        return np.asarray(joint / total), K


def weighings(tables: Tables, calibrate: bool) -> Iterator[Weighing]:
    """Yield the ways of weighing that are tried: own and shared temperatures, some sharper."""
    if not calibrate:
        yield Weighing()
        return
    for temperature in ("own", "shared"):
        scaling = TemperatureScaling(temperature).fit(
            tables.log_masses, cast(Any, tables.sample_domain), tables.sample_weight
        )
        yield from (Weighing(scaling, sharpness) for sharpness in SHARPNESS)


def choose_weighing(
    tables: Tables, goal: Goal, calibrate: bool
) -> tuple[Weighing, Tables, Solution, int]:
    """Find z for every weighing, and keep the one that serves the goal best on held-out rows.

    Returns the weighing, the tables weighed by it, the solution, and how many there were.
    """
    tried = []
    for weighing in weighings(tables, calibrate):
        weighed = replace(tables, log_masses=weighing.transform(tables.log_masses))
        tried.append((weighing, weighed, goal.solve(weighed)))
    best = min(tried, key=lambda one: goal.value(one[2]))
    return (*best, len(tried))
