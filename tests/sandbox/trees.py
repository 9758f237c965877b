"""Trees as graphs: honest chains of questions, and walks that do not end or double."""

from __future__ import annotations

from typing import Any

from tests.sandbox.graphs import graph, node


def _one_tree(**change: Any) -> bytes:
    tree = {
        "nodes_treeids": [0, 0, 0, 0],
        "nodes_nodeids": [0, 1, 2, 3],
        "nodes_featureids": [0, 0, 0, 0],
        "nodes_values": [50.0, 0.0, 1e30, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF"],
        "nodes_truenodeids": [1, 0, 4, 0],
        "nodes_falsenodeids": [2, 0, 3, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 3],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    return graph(
        [node("TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", **tree | change)]
    )


def asked_in_turn(yes: list[int], no: list[int], **change: Any) -> bytes:
    """One tree: questions x = 1?, x = 2?, ..., then leaves that answer by their place."""
    questions, last = len(yes), max(*yes, *no)
    leaves = list(range(questions, last + 1))
    n, m = last + 1, len(leaves)
    tree = {
        "nodes_treeids": [0] * n,
        "nodes_nodeids": list(range(n)),
        "nodes_featureids": [0] * n,
        "nodes_values": [float(i + 1) for i in range(n)],
        "nodes_modes": ["BRANCH_EQ"] * questions + ["LEAF"] * m,
        "nodes_truenodeids": yes + [0] * m,
        "nodes_falsenodeids": no + [0] * m,
        "target_treeids": [0] * m,
        "target_nodeids": leaves,
        "target_ids": [0] * m,
        "target_weights": [float(i) for i in leaves],
    }
    return _one_tree(**tree | change)


def ladder(steps: int) -> tuple[list[int], list[int]]:
    """Two questions a step, both with the next step for "yes": 2^steps ways to the last leaf."""
    yes = [2 * (i // 2) + 2 for i in range(2 * steps)]
    no = [i + 1 if i % 2 == 0 else 2 * steps + 1 + i // 2 for i in range(2 * steps)]
    return yes, no


def _diamonds(steps: int) -> tuple[list[int], list[int]]:
    """Three questions a step, of which two lead to the next one, whatever the answer."""
    yes = [3 * (i // 3) + (1 if i % 3 == 0 else 3) for i in range(3 * steps)]
    no = [3 * (i // 3) + (2 if i % 3 == 0 else 3) for i in range(3 * steps)]
    return yes, no


def lies() -> dict[str, bytes]:
    """Name trees that must be refused."""
    return {
        "a walk without end": _one_tree(nodes_truenodeids=[1, 0, 0, 0]),
        "a node that is its own child": _one_tree(nodes_truenodeids=[1, 0, 2, 0]),
        "a column that is not there": _one_tree(nodes_featureids=[10**6, 0, 0, 0]),
        "a target that is not there": _one_tree(target_ids=[0, 10**6]),
        "a chain that comes back": asked_in_turn([3, 3, 3], [1, 2, 0]),
        "a chain that comes back by its child": asked_in_turn([0, 0, 0], [1, 2, 3]),
        "a chain that asks itself": asked_in_turn([3, 3, 3], [1, 2, 2]),
        "a chain that is its own child": asked_in_turn([1, 1, 3], [1, 2, 4]),
        "a chain that leads to its own middle": asked_in_turn([2, 2, 3], [1, 2, 4]),
        "two chains to one child": asked_in_turn([4, 2, 4, 4], [1, 3, 5, 6]),
        "a set that is no chain": asked_in_turn(
            [3, 3, 3], [1, 2, 4], nodes_modes=["BRANCH_LEQ"] * 3 + ["LEAF"] * 2
        ),
        "ways that double with each step": asked_in_turn(*_diamonds(40)),
        "two nodes of one name": asked_in_turn([2, 2], [1, 3], nodes_nodeids=[0, 1, 1, 3]),
        "fewer numbers than nodes": asked_in_turn([2, 2], [1, 3], nodes_values=[1.0]),
        "fewer weights than leaves": asked_in_turn([2, 2], [1, 3], target_weights=[1.0]),
    }
