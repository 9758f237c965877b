"""The paper's two artificial studies, small: two tables on the screen, pictures in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from anymix.core import Problem, simplex, solve
from anymix.studies.artificial import convergence, loss_table
from anymix.studies.figures import draw_convergence, draw_mixtures
from anymix.studies.synthetic import paper_classification, paper_regression

STUDIES = {
    "squared": ("squared loss, two domains of Gaussians", paper_regression),
    "cross_entropy": ("cross-entropy, three domains, three classes", paper_classification),
}


def describe(problem: Problem) -> str:
    """One sentence on what was found."""
    found = solve(problem, "regret")
    return (
        f"z = {np.round(found.z, 3)}: at most {found.regret:+.4f} against each source's own model "
        f"at home (the theorem promises {problem.eta * problem.loss_bound:.4f}), found in "
        f"{found.n_evaluations:.0f} evaluations."
    )


def run(folder: Path, m: int = 3000, n_random: int = 5, seed: int = 0) -> list[Path]:
    """Run both studies, write their pictures into the folder, return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (title, make) in STUDIES.items():
        rng = np.random.default_rng(seed)
        problem = make(m, rng)
        coarse = loss_table(problem, simplex.grid(problem.n_sources, 2))
        fine = loss_table(problem, simplex.grid(problem.n_sources, 10))
        sys.stdout.write(f"\n{title}\n\n{coarse.text()}\n\n{describe(problem)}\n")
        curves = convergence(problem, n_random, rng)
        paths += [folder / f"{name}_convergence.png", folder / f"{name}_mixtures.png"]
        draw_convergence(curves, title, paths[-2])
        draw_mixtures(fine, title, paths[-1])
    return paths


def main(folder: str = "demo-output") -> None:
    """Run the demo and say where the pictures are."""
    for path in run(Path(folder)):
        sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main(*sys.argv[1:2])
