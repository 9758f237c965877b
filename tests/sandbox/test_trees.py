"""The rule of trees, against walks through all of a tree."""

from collections import Counter

import numpy as np

from anymix.sandbox.operators import trees
from anymix.sandbox.shapes import N, Node, Refused, Value

MODES = ["LEAF", "BRANCH_LEQ", "BRANCH_EQ"]


def drawn(rng):
    """Return a few nodes with children at random, often those of a chain."""
    n = int(rng.integers(3, 8))
    modes = [MODES[i] for i in rng.choice(3, n, p=[0.35, 0.15, 0.5])]
    no = np.where(rng.random(n) < 0.7, np.arange(n) + 1, rng.integers(0, n + 1, n))
    yes = np.where(rng.random(n) < 0.7, rng.integers(0, n + 1), rng.integers(0, n + 1, n))
    return modes, yes.tolist(), no.tolist()


def accepted(modes, yes, no):
    n = len(modes)
    attributes = {
        "nodes_treeids": [0] * n,
        "nodes_nodeids": list(range(n)),
        "nodes_featureids": [0] * n,
        "nodes_modes": modes,
        "nodes_truenodeids": yes,
        "nodes_falsenodeids": no,
        "target_ids": [0],
    }
    node = Node("TreeEnsembleRegressor", attributes, (Value((N, 1)),), 1, 3)
    try:
        trees(node)
    except Refused:
        return False
    return True


def ends(modes, yes, no):
    """Whether every walk from the root ends; a walk of more steps than nodes does not."""

    def walk(place, steps):
        if place >= len(modes) or modes[place] == "LEAF":
            return True
        return steps < len(modes) and all(walk(c, steps + 1) for c in (yes[place], no[place]))

    return walk(0, 0)


def shared(modes, yes, no):
    """Whether a node has two parents."""
    branches = [i for i, mode in enumerate(modes) if mode != "LEAF"]
    children = [child for i in branches for child in (yes[i], no[i])]
    return len(set(children)) < len(children)


def test_every_walk_through_an_accepted_tree_ends():
    rng, seen = np.random.default_rng(0), Counter()
    for _ in range(6000):
        tree = drawn(rng)
        verdict = accepted(*tree)
        seen[verdict, shared(*tree), ends(*tree)] += 1
        assert ends(*tree) or not verdict, tree
    # Chains are among those that pass, and loops among those that do not.
    assert seen[True, True, True] > 30
    assert seen[False, True, False] > 500
