"""Graphs of strangers: what they may not do, and that what runs is what was checked."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from onnx import load_model_from_string

from anymix.exchange.predictor import OnnxPredictor, audit
from anymix.sandbox import Refused, open_session
from tests.sandbox import graphs, trees

NUMBER = "float32", 2
ROWS = np.random.default_rng(0).normal(size=(50, 2))


def test_an_honest_graph_passes_and_answers():
    predictor = audit(graphs.linear(), *NUMBER, own=ROWS)
    np.testing.assert_allclose(predictor(ROWS)[:, 0], ROWS.sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("name", [*graphs.lies(), *trees.lies()])
def test_lies_are_refused(name):
    with pytest.raises(Refused) as caught:
        audit((graphs.lies() | trees.lies())[name], *NUMBER, own=ROWS)
    assert "not understood" not in str(caught.value)
    assert "crashed" not in str(caught.value)


def test_sets_of_categories_are_chains():
    predictor = audit(trees.asked_in_turn([3, 3, 3], [1, 2, 4]), *NUMBER, own=ROWS)
    asked = np.array([[x, 0.0] for x in (0.0, 1.0, 2.0, 3.0, 4.0, 2.5, np.nan, np.inf)])
    assert predictor(asked)[:, 0].tolist() == [4, 3, 3, 3, 4, 4, 4, 4]


def test_many_ways_through_a_chain_cost_no_more_than_its_nodes():
    steps = 500  # so many ways could not be walked one by one
    predictor = audit(trees.asked_in_turn(*trees.ladder(steps)), *NUMBER, own=ROWS)
    # From the first step 1 and 2 lead on to the second, which asks for 3 and 4.
    first = 2 * steps + 1
    assert predictor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])[:, 0].tolist() == [
        first,
        first + 1,
        first + 1,
    ]


def test_scores_are_no_probabilities():
    scores = graphs.graph(
        [graphs.node("MatMul", ["X", "w"], ["Y"])], [("w", np.eye(2, dtype=np.float32))], columns=2
    )
    with pytest.raises(Refused, match="scores, not probabilities"):
        audit(scores, "float32", 2, 2, ROWS)


def test_what_runs_is_what_was_read(tmp_path):
    """To onnxruntime this file is a graph of random numbers, to onnx a sum."""
    noise = graphs.graph(
        [
            graphs.node("RandomNormalLike", ["X"], ["R"]),
            graphs.node("ReduceSum", ["R", "axis"], ["Y"], keepdims=1),
        ],
        [graphs.AXIS],
    )
    hidden = graphs.as_runtime_format(noise, tmp_path)
    both = graphs.two_in_one(graphs.linear(), hidden)
    assert both[4:8] == hidden[4:8] == b"ORTM"
    with pytest.raises(Refused, match="carries more than a graph"):
        audit(both, *NUMBER)
    # The second format alone would run, were it not for the one that is asked for.
    for content in (both, hidden):
        try:
            found = open_session(content).run(None, {"X": np.ones((3, 2), np.float32)})[0]
        except Refused:
            continue
        np.testing.assert_array_equal(found, np.full((3, 1), 2.0))


def test_the_graph_of_a_graph_is_itself():
    once = audit(graphs.linear(), *NUMBER).content
    assert audit(once, *NUMBER).content == once


def test_nothing_of_the_file_is_kept_that_was_not_understood():
    model = load_model_from_string(graphs.linear())
    model.doc_string = model.graph.doc_string = "secret"
    model.graph.node[0].doc_string = model.producer_name = "secret"
    model.graph.value_info.extend(model.graph.output)
    written = audit(model.SerializeToString(), *NUMBER).content
    assert b"secret" not in written


def test_constants_are_computed_once():
    twice = graphs.graph(
        [
            graphs.node("Add", ["w", "w"], ["v"]),
            graphs.node("Transpose", ["v"], ["t"], perm=[1, 0]),
            graphs.node("Transpose", ["t"], ["u"], perm=[1, 0]),
            graphs.node("MatMul", ["X", "u"], ["Y"]),
        ],
        [("w", np.ones((2, 1), np.float32))],
    )
    predictor = audit(twice, *NUMBER)
    assert [n.op_type for n in load_model_from_string(predictor.content).graph.node] == ["MatMul"]
    np.testing.assert_array_equal(predictor(np.ones((1, 2))), [[4.0]])


def test_blocks_are_smaller_where_a_row_is_wide():
    wide = graphs.graph(
        [
            graphs.node("MatMul", ["X", "w"], ["h"]),
            graphs.node("ReduceSum", ["h", "axis"], ["Y"], keepdims=1),
        ],
        [("w", np.ones((2, 20_000), np.float32)), graphs.AXIS],
    )
    predictor = audit(wide, *NUMBER)
    assert predictor.block == 2**23 // 20_000
    np.testing.assert_allclose(predictor(np.ones((1000, 2))), 40_000.0)


def test_in_process_gives_the_same_numbers():
    predictor = audit(graphs.linear(), *NUMBER)
    here = OnnxPredictor(predictor.content, in_process=True)
    np.testing.assert_array_equal(predictor(ROWS), here(ROWS))


def test_long_documents_have_requests_of_their_own():
    """Documents of a block are filled up to the longest of them."""
    texts = np.array([["short"]] * 4000 + [["long " * 20_000]] + [["short"]] * 10, dtype=object)
    cuts = list(OnnxPredictor(b"", "string", request=2**17)._requests(texts))
    assert [a for a, _ in cuts[1:]] == [b for _, b in cuts[:-1]]
    assert (cuts[0][0], cuts[-1][1]) == (0, len(texts))
    longest = [max(len(text) for text in texts[a:b, 0]) * (b - a) for a, b in cuts]
    assert max(longest) <= 2**22
    assert len(cuts) < 10


@pytest.mark.parametrize("operator", ["Cos", "Sin", "Log", "Softplus", "Exp", "Tanh", "Sigmoid"])
def test_an_answer_does_not_tell_where_a_row_stands(operator):
    """Not in its last digit: what is left over of a batch is often computed in another way."""
    content = graphs.graph(
        [
            graphs.node("Abs", ["X"], ["A"]),
            graphs.node(operator, ["A"], ["F"]),
            graphs.node("Gather", ["F", "second"], ["Y"], axis=1),
        ],
        [("second", np.array([1]))],
    )
    predictor, rows = audit(content, *NUMBER), np.resize(ROWS, (1001, 2))
    together = predictor(rows)
    for i in (0, 1, 17, 500, 999, 1000):
        assert predictor(rows[i : i + 1]) == together[i]
    np.testing.assert_array_equal(predictor(rows[:37]), together[:37])
