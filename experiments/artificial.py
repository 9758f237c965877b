"""The paper's two artificial problems: the objective against the iteration, and who pays what.

Paper: App. E.1, Fig. 2, Fig. 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from anymix._arrays import FloatArray
from anymix.core import Problem, Record, dca, simplex, solve
from experiments.runner import Progress, Result, Setup
from experiments.simplex_grid import simplex_grid
from experiments.synthetic import paper_classification, paper_regression

PASSES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
N_POINTS = 3000
PROBLEMS = {
    "Fig. 2": ("squared", paper_regression),
    "Fig. 3": ("cross-entropy", paper_classification),
}


def run(data: Path | None, seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study; it needs no data."""
    yield from study(seeds, progress)


def rehearse(seeds: Sequence[int], progress: Progress) -> Iterator[Result]:
    """Run the study on few points."""
    yield from study(seeds, progress, n_points=90)


def study(seeds: Sequence[int], progress: Progress, n_points: int = N_POINTS) -> Iterator[Result]:
    """Both problems, a new draw for each seed: γ against passes over the data, then the losses.

    Paper: App. E.1, Fig. 2, Fig. 3.
    """
    for i, seed in enumerate(seeds):
        for figure, (loss, make) in PROBLEMS.items():
            rng = np.random.default_rng(seed)
            problem = make(n_points, rng)
            cell = partial(Result, "artificial", seed=seed)
            for curve in convergence(problem, 0, rng):
                way = _protocol(curve.method)
                for n, gamma in _after(curve):
                    yield cell(f"{figure}, passes", way, curve.method, n, "γ", value=gamma)
            table = loss_table(problem, simplex_grid(problem.n_sources, 2))
            for method, column, value in table.cells():
                way = _protocol(method)
                yield cell(f"App. E.1, {loss}", way, method, column, "loss", value=value)
        progress(i + 1, len(seeds), f"seed {seed}")


def _protocol(method: str) -> Setup:
    return "beyond" if "anymix" in method else "as published"


def _after(curve: Curve) -> Iterator[tuple[str, float]]:
    """γ after so many passes over the data, from the first step on."""
    for n in PASSES:
        done = np.searchsorted(curve.n_evaluations, n, side="right")
        if done:
            yield str(n), float(curve.gamma[done - 1])


@dataclass(frozen=True)
class Curve(Record):
    """γ after each iteration of a method from one start, and the evaluations that it had cost."""

    method: str
    start: str
    gamma: FloatArray
    n_evaluations: FloatArray


def convergence(problem: Problem, n_random: int, rng: np.random.Generator) -> list[Curve]:
    """γ against the iteration, for the DCA and the default solver, from 1/p and random starts.

    Paper: Fig. 2, Fig. 3.
    """
    p = problem.n_sources
    starts = {"uniform": simplex.uniform(p)}
    starts |= {f"random {i + 1}": simplex.random(p, rng) for i in range(n_random)}
    curves = []
    for name, z in starts.items():
        runs = {
            "DCA": dca(problem, "gamma", z, tol=1e-9, max_iter=200).trace,
            "anymix": solve(problem, "gamma", start=z).trace,
        }
        for method, trace in runs.items():
            gamma = np.minimum.accumulate([step.gamma for step in trace])
            counts = np.array([step.n_evaluations for step in trace])
            curves.append(Curve(method, name, gamma, counts))
    return curves


@dataclass(frozen=True)
class LossTable(Record):
    """loss[a, t]: method a on mixture t; worst[a] over all mixtures; regret[a] against home."""

    methods: tuple[str, ...]
    mixtures: FloatArray
    loss: FloatArray
    worst: FloatArray
    regret: FloatArray

    @property
    def heads(self) -> list[str]:
        """Name the mixtures by their parts in percent."""
        return ["λ = " + "/".join(f"{100 * x:.0f}" for x in lam) for lam in self.mixtures]

    def cells(self) -> Iterator[tuple[str, str, float]]:
        """Yield method, column and value."""
        columns = [*self.heads, "worst", "regret"]
        values = np.column_stack([self.loss, self.worst, self.regret])
        for method, row in zip(self.methods, values, strict=True):
            for column, value in zip(columns, row, strict=True):
                yield method, column, float(value)


def loss_table(problem: Problem, mixtures: FloatArray) -> LossTable:
    """Each source, the uniform combination, and DW, on a grid of mixtures.

    Paper: App. E.1.
    """
    rows = {f"source {k + 1}": _losses(problem, h) for k, h in enumerate(problem.predictions)}
    rows["uniform"] = _losses(problem, problem.predictions.mean(axis=0))
    rows["DW, paper (γ = 0)"] = solve(problem, "gamma").source_losses
    rows["DW, anymix (regret)"] = solve(problem, "regret").source_losses
    L = np.stack(list(rows.values()))
    regret = (L - problem.own_losses).max(axis=1)
    return LossTable(tuple(rows), mixtures, L @ mixtures.T, L.max(axis=1), regret)


def _losses(problem: Problem, h: FloatArray) -> FloatArray:
    return np.asarray(problem.measure.rows() @ problem.loss.value(h, problem.targets))
