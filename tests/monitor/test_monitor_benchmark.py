"""The benchmark speaks when its data are absent, and its helpers do what they say."""

import numpy as np
import pytest

from anymix.monitor import Scores
from benchmarks import monitor
from benchmarks import monitor_coverage as coverage


def test_absent_data_are_named_in_one_sentence(tmp_path, capsys):
    assert monitor.main(quick=True, data=tmp_path) == []
    assert "--data or ANYMIX_DATA" in capsys.readouterr().out


def test_a_split_uses_each_row_once():
    domain = np.repeat([0, 1], [50, 20])
    split = monitor.split_rows(domain, (0.4, 0.3), np.random.default_rng(0))
    assert sorted(np.concatenate(split)) == list(range(70))
    assert [len(part) for part in split] == [28, 21, 21]
    assert np.bincount(domain[split.train]).tolist() == [20, 8]


def test_measures_a_toy_with_three_separate_domains():
    class Toy:
        name, shares, domain_names = "toy", (0.4, 0.3), ["a", "b", "c"]
        domain = np.repeat([0, 1, 2], 200)
        x = np.random.default_rng(0).normal(6.0 * domain)

        def scorer(self, train, sources):
            def score(rows):
                log_d = -((self.x[rows] - 6.0 * np.array(sources)[:, None]) ** 2) / 2
                return log_d, log_d

            return score

    row = monitor.measure(Toy(), range(1), 3, n_alarm=50)
    assert row["inversion"] < 0.1
    assert row["rings"] == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert 0.0 <= row["false_alarms"] <= 1.0


def test_rows_are_drawn_from_their_source():
    pool = Scores(np.zeros((2, 6)), np.arange(6.0))
    at = monitor.Stage(pool, np.zeros(6, dtype=int), pool, np.array([0, 0, 1, 1, 1, -1]))
    rows = at.draw([9, 2], np.random.default_rng(0), replace=False)
    assert at.pool_domain[rows].tolist() == [0, 0, 1, 1]
    assert at.traffic(rows).novelty.tolist() == rows.tolist()


CELLS = [
    coverage.Cell(2, "inside", 20, 100, "large"),
    coverage.Cell(3, "vertex", 20, 3000, "small"),
    coverage.Cell(5, "edge", 40, 100, "small"),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: " ".join(map(str, cell)))
def test_intervals_hold_as_often_as_they_say(cell):
    runs = 120
    row = coverage.measure(cell, runs, old_runs=5)
    # Three standard errors: a cell whose coverage is 0.95 fails once in a thousand seeds.
    least = 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)
    assert min(row[name] for name in coverage.FIGURES if name != "skewed loss") > least
    assert row["skewed loss"] > 0.85


def test_resampled_mixtures_did_not_hold_at_a_corner():
    """Twenty rows of a source do not show how its rarest ones look; resampled, they never do."""
    row = coverage.measure(CELLS[1], 25)
    assert row["old"] < 0.5
    assert row["worst share"] > 0.9


def test_all_cells_are_asked_for_and_the_worst_are_told(capsys):
    asked = coverage.cells()
    assert len(asked) == len(set(asked)) == 8 * 4 * 2 * 2
    rows = [
        {"cell": cell, "ratio": 1.0, "width": 0.1, "old": 0.8} | dict.fromkeys(coverage.FIGURES, c)
        for cell, c in zip(CELLS, (0.96, 0.90, 0.95), strict=True)
    ]
    table = coverage.summary(coverage.show(iter(rows)))
    assert len(table) == 2 + len(CELLS)
    assert "| 20 | 3000 | small | 0.900 |" in table[3]
    assert "3 vertex 20 3000 small 1.0: 0.900" in capsys.readouterr().out
    found = coverage.short(rows, 1000)
    assert found["share"] == ["3 vertex 20 3000 small 1.0: 0.900"]
