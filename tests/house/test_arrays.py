"""What every room needs of numpy: labels, sources and rows are found, or the fault is named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix._arrays import named_sources, positions, source_numbers


@given(st.permutations(list("abcde")), st.lists(st.sampled_from("abcde"), max_size=20))
def test_positions_of_labels_in_any_order_of_classes(classes, labels):
    found = positions(np.array(labels, dtype="<U1"), np.array(classes))
    assert [classes[i] for i in found] == labels


def test_names_come_before_positions():
    assert named_sources([2, 1, 1], [1, 2]).tolist() == [1, 0, 0]
    assert named_sources([0, 1, 1], ["a", "b"]).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="names '1', but the sources are"):
        named_sources([1, 1], [0, 2])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0.0, 1.0], "whole numbers, the source of each point; got float64"),
        ([0, 1, 1], "must hold 2 whole numbers"),
        ([0, 2], "must lie in 0..1"),
        ([0, -1], "must lie in 0..1"),
        ([0, 0], "source 1 has 0 point"),
    ],
)
def test_source_numbers_are_checked(given, words):
    with pytest.raises(ValueError, match=words):
        source_numbers(given, 2, 2)
