"""The benchmark of sets runs at a small size, and what it promises holds there."""

import numpy as np
import pytest

from benchmarks import sets


@pytest.mark.parametrize("kind", sets.KINDS)
def test_small_cells_cover_and_are_smaller_than_the_plain_way(kind, capsys):
    (row,) = sets.show([sets.measure(sets.Cell(3, 40, kind), 25)])
    assert sets.short([row]) == []
    for way in sets.WAYS:
        assert 0.88 < row[way, "source"] <= row[way, "mean"] < 1
    assert row["anymix, fresh", "size"] < row["plain, fresh", "size"]
    assert row["anymix, crossed", "size"] < row["plain, crossed", "size"]
    assert f"| 3 | 40 | {kind} |" in capsys.readouterr().out


def test_what_falls_short_is_named():
    row = sets.measure(sets.Cell(3, 20, "gauss"), 8)
    row["plain, fresh", "source"], row["plain, fresh", "source", "short"] = 0.7, 0.1
    assert sets.short([row]) == ["3 20 gauss, plain, fresh, worst source: 0.7000"]


def test_the_oracle_covers_by_knowing_the_source():
    found = [sets.one_run(sets.Cell(3, 40, "gauss"), seed)["oracle"][0] for seed in range(30)]
    assert np.mean(found) == pytest.approx(0.9, abs=0.03)


def test_every_cell_is_asked_for():
    assert len(sets.cells()) == len(sets.SOURCES) * len(sets.ROWS) * len(sets.KINDS)
    assert {cell.p for cell in sets.cells(quick=True)} == {3}
