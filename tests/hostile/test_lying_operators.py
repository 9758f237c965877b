"""Operators that lie are refused by our own rules, whatever the version of onnxruntime does."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from anymix.sandbox.graph import rewritten
from anymix.sandbox.shapes import Refused
from tests.hostile.lying_operators import lying_operators, magic_row
from tests.sandbox.graphs import graph, node

CASES = dict(lying_operators())


@pytest.mark.parametrize("name", CASES)
def test_lists_that_do_not_fit_are_refused_before_anything_runs(name):
    with pytest.raises(Refused) as caught:
        rewritten([CASES[name]], "float32", 2, 1)
    assert "does not run" not in str(caught.value)


@pytest.mark.parametrize("divisor", ["-1", "0"])
def test_a_row_cannot_end_the_process_by_a_division(divisor):
    """It used to pass every check, and to kill whoever ran the exported model."""
    with pytest.raises(Refused, match="Div of whole numbers needs constants other than 0 and -1"):
        rewritten([magic_row(divisor)], "float32", 2, 1)


def test_whole_numbers_may_be_divided_by_constants():
    nodes = [
        node("Cast", ["X"], ["i"], to=7),
        node("Div", ["i", "two"], ["d"]),
        node("Cast", ["d"], ["f"], to=1),
        node("ReduceSum", ["f", "axis"], ["Y"], keepdims=1),
    ]
    weights = [("two", np.array(2, np.int64)), ("axis", np.array([1], np.int64))]
    assert rewritten([graph(nodes, weights)], "float32", 2, 1).block
