"""Upper confidence bounds on a mean: how far above it they lie, and how often they fail.

    python -m benchmarks.confidence

Columns: mean distance of the bound above the true mean, and in brackets the share of runs in which
it was below; 2.5 % are allowed.
"""

from collections.abc import Callable

import numpy as np

from anymix.core.guarantees.confidence import Method, mean_upper_bound

Draw = Callable[[np.random.Generator, int], np.ndarray]
METHODS: tuple[Method, ...] = ("betting", "bernstein", "hoeffding", "student")
# Name, limits, true mean, draws: small losses, errors, a long tail, paired differences, rare harm.
POPULATIONS: list[tuple[str, tuple[float, float], float, Draw]] = [
    ("beta(1, 20)", (0, 1), 1 / 21, lambda rng, n: rng.beta(1, 20, n)),
    ("error 5 %", (0, 1), 0.05, lambda rng, n: (rng.random(n) < 0.05) * 1.0),
    ("exp(.1), M = 3", (0, 3), 0.1, lambda rng, n: np.minimum(rng.exponential(0.1, n), 3)),
    ("pairs ±.1, M = 2", (-2, 2), 0.0, lambda rng, n: np.clip(rng.normal(0, 0.1, n), -2, 2)),
    ("error 0.5 %", (0, 1), 0.005, lambda rng, n: (rng.random(n) < 0.005) * 1.0),
]


def row(method: Method, limits: tuple[float, float], mean: float, draw: Draw, n: int) -> str:
    rng = np.random.default_rng(0)
    bounds = np.array(
        [mean_upper_bound(draw(rng, n), 0.025, method, limits, rng=rng) for _ in range(400)]
    )
    return f"{bounds.mean() - mean:.4f} ({100 * np.mean(bounds < mean):.1f} %)"


def main(quick: bool = False) -> None:
    print(f"| {'population':16} | n | " + " | ".join(METHODS) + " |")
    print("|---" * (2 + len(METHODS)) + "|")
    for name, limits, mean, draw in POPULATIONS:
        for n in (50,) if quick else (50, 200, 2000):
            cells = [row(method, limits, mean, draw, n) for method in METHODS]
            print(f"| {name:16} | {n} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
