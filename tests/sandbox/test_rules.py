"""The rules of operators: what they accept keeps rows apart when it is run."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from anymix.sandbox.graph import rewritten
from anymix.sandbox.session import open_session
from anymix.sandbox.shapes import Refused
from anymix.sandbox.worker import check_shapes, in_company
from tests.sandbox.random_graphs import N_FEATURES, random_graph

ROWS = np.random.default_rng(0).normal(size=(40, N_FEATURES)).astype(np.float32)


def verdict(content):
    """Return what becomes of a graph; one that is accepted is run in every company."""
    for columns in (1, 2, 3, 4, 6, 9):
        try:
            graph = rewritten([content], "float32", N_FEATURES, columns)
            break
        except Refused as refusal:
            last = str(refusal)
    else:
        return "refused" if "its output" not in last else "another shape"
    try:
        session = open_session(graph.content)
        check_shapes(graph, "float32", N_FEATURES)
        in_company(session, ROWS, graph.block)
    except Refused as refusal:
        return str(refusal)
    return "accepted"


def test_accepted_graphs_keep_rows_apart():
    seen = Counter(verdict(random_graph(np.random.default_rng([7, i]))) for i in range(3000))
    assert seen["accepted"] > 150
    assert seen["refused"] > 1500
    assert not [text for text in seen if "depends on the other rows" in text], seen


@pytest.mark.slow
def test_many_accepted_graphs_keep_rows_apart():
    seen = Counter(verdict(random_graph(np.random.default_rng([8, i]))) for i in range(100_000))
    assert seen["accepted"] > 5000
    assert not [text for text in seen if "depends on the other rows" in text], seen
