import re
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.paper_numbers import TABLES, columns, published
from experiments.runner import Result
from experiments.tables import lines, render, tables
from tests.experiments.real_data import SHARED

PAPER = SHARED / "paper.tex"


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 99), min_size=2, max_size=6))
def test_a_cell_is_mean_and_deviation_over_seeds(values):
    cells = [Result("s", "T", "clean", "DW", "K", "MSE", i, v) for i, v in enumerate(values)]
    mean, sd = map(float, tables(cells)[0].rows[0].ours[0].split("±"))
    assert mean == pytest.approx(statistics.mean(values), abs=0.051, rel=0.006)
    assert sd == pytest.approx(statistics.stdev(values), abs=0.051)


def test_the_paper_stands_once_under_a_method_and_privilege_is_starred():
    cells = [
        Result("s", "T", way, name, "K", "MSE", 0, 1.0, name == "KMM", 1.5, 0.25)
        for name in ("KMM", "DW")
        for way in ("as published", "clean")
    ]
    assert lines(tables(cells)[0]) == [
        ["method", "protocol", "K"],
        ["KMM*", "as published", "1.00"],
        ["", "paper", "1.50±0.25"],
        ["KMM*", "clean", "1.00"],
        ["DW", "as published", "1.00"],
        ["", "paper", "1.50±0.25"],
        ["DW", "clean", "1.00"],
    ]


@pytest.mark.parametrize("style", ["text", "markdown", "latex"])
def test_every_style_shows_every_cell(style):
    cells = [
        Result("s", "T", "clean", method, column, "MSE", 0, value)
        for method, column, value in [("DW", "K", 1.25), ("DW", "D", 2.5), ("unif", "K", 3.75)]
    ]
    shown = render(cells, style)
    assert all(number in shown for number in ("1.25", "2.50", "3.75"))
    assert {"text": "T (MSE)", "markdown": "| DW |", "latex": r"\toprule"}[style] in shown


@pytest.mark.parametrize("table", ["Table 3", "Table 4"])
def test_the_mean_column_is_the_mean_of_the_others(table):
    cells = published(table)
    for method in {method for method, _ in cells}:
        values = [cells[method, column][0] for column in columns(table)[:-1]]
        assert cells[method, "mean"][0] == pytest.approx(statistics.mean(values), abs=0.07)


def test_mixtures_of_the_sentiment_tables_are_averages_of_single_domains():
    cells = published("Table 1")
    for method in ("K", "D", "B", "E", "unif", "DW"):
        for column in columns("Table 1")[4:]:
            parts = [cells[method, domain][0] for domain in column]
            assert cells[method, column][0] == pytest.approx(statistics.mean(parts), abs=0.021)


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not here")
def test_every_number_is_the_papers():
    text = PAPER.read_text(encoding="utf-8").replace("$\\pm$", "±").replace(" ", "")
    for table in TABLES:
        for (_, _), (mean, sd) in published(table).items():
            digits = 2 if mean < 10 else 1
            shown = f"{mean:.{digits}f}" + ("" if sd is None else f"±{sd:.{digits}f}")
            assert re.search(re.escape(shown), text), (table, shown)
