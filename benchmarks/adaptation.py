"""Is z for the mixture of today better there than the robust z?  Worlds of `benchmarks.worlds`.

    python -m benchmarks.adaptation [--quick]

Three sources, 300 labelled rows of each, and 2000 unlabelled rows of traffic with shares of 90, 5
and 5 %.  Expected losses on that mixture: of the robust z, of `adapt_z` (towards λ̂), and of the
z with the least loss on the worst mixture in the joint intervals of λ, as `Monitor.adapt` finds it.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np

from anymix.core import SolverWarning, solve
from anymix.monitor import adapt_z, estimate_mixture
from anymix.sources import LearningSettings, learn
from benchmarks.worlds import LABELS, NUMBERS, World

SHARES = np.array([0.9, 0.05, 0.05])
WAYS = "robust z", "towards λ̂", "worst of the interval"


def losses(noise: str, seed: int, n: int = 300, n_test: int = 4000) -> list[float]:
    """What each way loses on the traffic."""
    rng, world = np.random.default_rng(100 + seed), World.draw(3, noise, seed)
    X, y, domain = world.sample(n, rng)
    tables = world.tables(X, y, domain)
    loss = "cross_entropy" if world.labels else "squared"
    used = learn(tables, LearningSettings(loss=loss)).combination
    drawn = rng.multinomial(2000, SHARES)
    traffic = np.concatenate([world.rows(k, int(m), rng) for k, m in enumerate(drawn)])
    log_r = used.log_responsibilities(tables.log_masses)
    log_r_traffic = used.log_responsibilities(world.tables(traffic).log_masses)
    estimate = estimate_mixture(log_r_traffic, log_r, domain)
    heard = replace(tables, log_masses=log_r, predictions=used.heard(tables.predictions))
    problem = heard.problem(loss, used.eta, used.rule)
    box = estimate.intervals(simultaneous=True)
    ways = [
        used.z,
        adapt_z(used.z, estimate),
        solve(problem, "robust", mixtures=box, start=used.z, n_starts=1).z,
    ]
    tests = [world.rows(k, n_test, rng) for k in range(3)]
    told = [world.tables(rows) for rows in tests]
    each = []
    for z in ways:
        combination = used.with_z(z)
        said = [combination.predict(t.log_masses, t.predictions) for t in told]
        lost = [world.expected(h, rows).mean() for h, rows in zip(said, tests, strict=True)]
        each.append(float(SHARES @ lost))
    return each


def main(quick: bool = False) -> dict[str, list[list[float]]]:
    warnings.simplefilter("ignore", SolverWarning)
    seeds = range(1 if quick else 6)
    cases = {"numbers": [(noise, seed) for noise in NUMBERS for seed in seeds]}
    cases["labels"] = [(LABELS, seed) for seed in range(4 * len(seeds))]
    table = {name: [losses(*case) for case in each] for name, each in cases.items()}
    for name, rows in table.items():
        values = np.array(rows)
        worse = (values > values[:, :1] + 1e-12).sum(axis=0)
        said = zip(WAYS, values.mean(axis=0), worse, strict=True)
        parts = [f"{way} {mean:.3f} (worse in {n})" for way, mean, n in said]
        print(f"{name}, {len(rows)} cases: {', '.join(parts)}")
    return table


if __name__ == "__main__":
    main("--quick" in sys.argv)
