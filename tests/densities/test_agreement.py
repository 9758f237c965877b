"""Columns of several sites: one order for all, and warnings of what is written in two ways."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.densities import Reference, Summary, likely_mistakes, site_columns
from anymix.densities.marginals import Marginal

RNG = np.random.default_rng(0)


def table(n=60, **columns):
    age = RNG.normal(50, 5, n)
    return pd.DataFrame(
        {"age": age, "sex": ["f", "m"] * (n // 2), "dose": RNG.normal(size=n)} | columns
    )


def both(*tables, **options):
    return [Summary.of(X, name=name, **options) for X, name in zip(tables, "ab", strict=False)]


def test_sites_may_have_their_columns_in_any_order():
    north, south = table(), table()
    due = Reference.from_summaries(both(north, south, kind="both", random_state=0))
    moved = south[["dose", "sex", "age"]]
    found = Reference.from_summaries(both(north, moved, kind="both", random_state=0))
    assert found.columns == due.columns
    assert found.kind == "both"
    assert found.summaries[1].marginals == due.summaries[1].marginals
    rows = due.columns.encode(south)
    # Centres are found by k-means, whose start depends on the order: means and weights agree.
    ours, theirs = (one.summaries[1].centres for one in (found, due))
    np.testing.assert_allclose(
        ours.weights @ ours.centres, theirs.weights @ theirs.centres, rtol=1e-9
    )
    assert np.isfinite(found.log_density(rows)).all()


def test_a_summary_in_another_order_is_the_same_summary():
    summary = both(table(), kind="both", random_state=0)[0]
    names = ("dose", "age", "sex")
    moved = summary.in_order(names)
    assert moved.columns.names == names
    np.testing.assert_array_equal(moved.centres.centres, summary.centres.centres[:, ::-1])
    assert moved.in_order(summary.columns.names) == summary


def test_what_is_written_alike_is_not_warned_of():
    assert likely_mistakes(both(table(), table())) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sex": ["F", "m"] * 30}, "column 'sex': 'f' at 'a' and 'F' at 'b' differ in capitals"),
        ({"sex": ["f ", "m"] * 30}, "'f' at 'a' and 'f ' at 'b' differ in capitals or blanks"),
        ({"sex": ["1: yes", "0: no"] * 30}, "have no category in common; check that both use one"),
        ({"age": RNG.normal(600, 60, 60)}, "column 'age': 'a' ("),
        ({"age": np.append(np.zeros(2), RNG.normal(600, 60, 58))}, "do not overlap (5 to 95 %"),
    ],
)
def test_likely_mistakes(changed, words):
    (said,) = likely_mistakes(both(table(), table(**changed)))
    assert words in said


def test_the_columns_of_each_site():
    empty = table(dose=np.full(60, np.nan))
    found = {(one.column, one.site): one for one in site_columns(both(table(), empty))}
    assert found["sex", "a"].categories == ("f", "m")
    assert found["dose", "b"].low is None
    assert found["dose", "b"].missing == 1
    assert found["age", "a"].low < 50 < found["age", "a"].high


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=50, max_size=400),
    st.floats(0.05, 0.95),
)
def test_quantiles_are_near_those_of_the_numbers(numbers, level):
    x = np.array(numbers)
    found = Marginal.of(x, min_count=1).quantile(level)
    low, high = np.quantile(x, [max(0, level - 0.06), min(1, level + 0.06)])
    assert low - 1e-6 <= found <= high + 1e-6
