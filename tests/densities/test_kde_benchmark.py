"""The benchmark runs at small sizes, and its helpers measure what they say."""

import time

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

from benchmarks import kde


def test_quick_benchmark_prints_a_row_for_each_size(capsys):
    table = kde.main(quick=True)
    printed = capsys.readouterr().out
    for row in table:
        assert "{:>5} {:>6} |".format(*row["size"]) in printed
        assert row["off"] < 1e-4
        assert min(row[name] for name in ("cv", "sklearn cv", "floor", "score", "memory")) > 0


def test_truth_is_a_kernel_density():
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(50, 3)), rng.normal(size=(7, 3))
    theirs = KernelDensity(bandwidth=0.6).fit(rows).score_samples(queries)
    np.testing.assert_allclose(kde.truth(queries, rows, 0.6), theirs, rtol=1e-9)


def test_seconds_a_row_come_from_a_part():
    seen = []

    def score(part):
        seen.append(len(part))
        time.sleep(0.002 * len(part))

    assert kde.per_row(score, np.zeros((10_000, 1)), budget=0.04) >= 0.002
    assert max(seen) == 8


@pytest.mark.parametrize(
    ("value", "least", "most", "answer"),
    [(50, 40, 50, "yes"), (30, 40, 30, "NO"), (2, 2, 3, "yes"), (4, 4, 3, "NO")],
)
def test_promises_are_judged(value, least, most, answer):
    assert kde.promise("ratio", value, least, most).endswith(answer)
