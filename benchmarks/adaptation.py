"""Is z for the mixture of today better there than the robust z?  Worlds of `benchmarks.worlds`.

    python -m benchmarks.adaptation [--quick]

Three sources, 300 labelled rows of each, and 2000 unlabelled rows of traffic with shares of 90, 5
and 5 %.  Expected losses on that mixture: of the robust z, of `adapt_z` (towards λ̂), and of the
z with the least loss on the worst mixture in the joint intervals of λ, as `Monitor.adapt` finds it;
and how often that loses more, clipped, than its certificate allows.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np

from anymix.core import ShareRange, SolverWarning
from anymix.monitor import adapt_z, estimate_mixture
from anymix.sources import LearningSettings, combined_predictions, learn
from benchmarks.certificate_worlds import PlaneCase
from benchmarks.worlds import LABELS, NUMBERS, World

SHARES, NAMES = np.array([0.9, 0.05, 0.05]), ("a", "b", "c")
WAYS = "robust z", "towards λ̂", "worst of the interval"
# Of the intervals and of the bounds: both hold with 95 %.
EACH = 0.975


def losses(noise: str, seed: int, n: int = 300, n_test: int = 4000) -> list[float]:
    """What each way loses on the traffic; and 1 if its certificate fails, else 0."""
    rng, world = np.random.default_rng(100 + seed), World.draw(3, noise, seed)
    X, y, domain = world.sample(n, rng)
    tables = world.tables(X, y, domain)
    settings = LearningSettings(loss="cross_entropy" if world.labels else "squared", names=NAMES)
    used = learn(tables, settings).combination
    drawn = rng.multinomial(2000, SHARES)
    traffic = np.concatenate([world.rows(k, int(m), rng) for k, m in enumerate(drawn)])
    log_r = used.log_responsibilities(tables.log_masses)
    log_r_traffic = used.log_responsibilities(world.tables(traffic).log_masses)
    estimate = estimate_mixture(log_r_traffic, log_r, domain, confidence=EACH)
    ends = np.transpose(estimate.intervals(simultaneous=True)).tolist()
    mixtures = tuple(ShareRange(name, *pair) for name, pair in zip(NAMES, ends, strict=True))
    known = {"objective": "robust", "shrinkage": 0.0, "mixtures": mixtures, "confidence": EACH}
    found = learn(tables, replace(settings, **known))
    adapted, certificate = found.combination, found.evidence.certificate
    tests = [world.rows(k, n_test, rng) for k in range(3)]

    def lost(combination):
        at = [(combined_predictions(world.tables(rows), combination), rows) for rows in tests]
        return float(SHARES @ [world.expected(h, rows).mean() for h, rows in at])

    ways = used, used.with_z(adapt_z(used.z, estimate)), adapted
    truth = PlaneCase(noise, world).truth(adapted, certificate.clip)["loss"]
    failed = certificate.loss_upper is not None and SHARES @ truth > certificate.loss_upper
    return [*map(lost, ways), float(failed)]


def main(quick: bool = False) -> dict[str, list[list[float]]]:
    warnings.simplefilter("ignore", SolverWarning)
    seeds = range(1 if quick else 6)
    cases = {"numbers": [(noise, seed) for noise in NUMBERS for seed in seeds]}
    cases["labels"] = [(LABELS, seed) for seed in range(4 * len(seeds))]
    table = {name: [losses(*case) for case in each] for name, each in cases.items()}
    for name, rows in table.items():
        values, failed = np.array(rows)[:, :-1], int(np.array(rows)[:, -1].sum())
        worse = (values > values[:, :1] + 1e-12).sum(axis=0)
        said = zip(WAYS, values.mean(axis=0), worse, strict=True)
        parts = [f"{way} {mean:.3f} (worse in {n})" for way, mean, n in said]
        print(f"{name}, {len(rows)} cases: {', '.join(parts)}; certificate fails in {failed}")
    return table


if __name__ == "__main__":
    main("--quick" in sys.argv)
