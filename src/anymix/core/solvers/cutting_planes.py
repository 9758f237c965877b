"""The worst of the mixtures whose shares lie between bounds, minimised by cutting planes.

    min_z max_{λ ∈ Λ} Σ_k λ_k (L_k(z) − b_k) + ρ KL(u ‖ z)
    Λ = {λ on the simplex: lower ≤ λ ≤ upper}

A maximum over Λ is at one of its vertices, and a maximum over few mixtures is a problem like that
of the sources.  The worst mixture at each z joins at most p working ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from anymix._arrays import FloatArray
from anymix.core.mixtures import worst_mixture
from anymix.core.problem import Problem, gap
from anymix.core.records import Solution, SolverWarning
from anymix.core.set_aside import SetAside
from anymix.core.solvers.oracle import Request, Solvable

# Worst mixtures that are tried, and what may be left, relative to the losses.
MOST_CUTS, CUT_TOL = 50, 1e-8


def solve_mixtures(
    request: Request, bounds: tuple[FloatArray, FloatArray], solve: Callable[..., Solution]
) -> Solution:
    """Return the solution whose z is best on the worst mixture between bounds.

    `solve` minimises the worst of a few mixtures.
    """
    problem, p = request.problem, request.problem.n_sources
    own = problem.own_losses if request.objective == "regret" else np.zeros(p)
    z, lowest, working, n_evaluations = request.first, np.inf, -np.inf, 0.0
    best, cuts, found = z, list[FloatArray](), None
    for _ in range(MOST_CUTS):
        values = problem.source_losses(z) - own
        cut = worst_mixture(values, *bounds)
        value = float(cut @ values) + float(request.penalty.values(z))
        if value < lowest:
            best, lowest = z, value
        # The working mixtures already ask for this much.
        if found is not None and cut @ values <= working + CUT_TOL * float(np.abs(values).max()):
            break
        cuts = [*cuts, cut][-p:]
        means = np.stack(cuts)[np.arange(p) % len(cuts)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SolverWarning)
            found = solve(SetAside(cast(Problem, problem), means=means), start=best)
        z, n_evaluations = found.z, n_evaluations + found.n_evaluations
        working = float(np.max(means @ (problem.source_losses(z) - own)))
    assert found is not None
    return restated(replace(found, z=best, n_evaluations=n_evaluations), problem)


def restated(found: Solution, problem: Solvable) -> Solution:
    """Return a solution for means of the losses, with the losses themselves."""
    z, own = found.z, problem.own_losses
    L = problem.source_losses(z)
    return replace(
        found,
        gamma=gap(L, z),
        robust_loss=float(L.max()),
        regret=float((L - own).max()),
        source_losses=L,
        own_losses=own,
    )
