"""The benchmark speaks when its data are absent, and its helpers do what they say."""

import numpy as np

from anymix.monitor import Scores
from benchmarks import monitor


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
