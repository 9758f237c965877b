"""Leaves as columns, splits of few rows, and trees with other values in their leaves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from anymix.densities import BoostedTrees, joined_trees, leaf_columns
from anymix.densities.boosted_graph import LEAF


def rows(seed=0, n=300, words=5):
    """Rows with gaps, the last column of categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(words, size=n)
    return X, np.nan_to_num(X[:, 0]) * X[:, 3] + rng.normal(size=n)


def models(classes=0):
    """Trees of two sources, of which one has seen fewer categories."""
    found = []
    for seed, words in ((0, 5), (1, 3)):
        X, y = rows(seed, words=words)
        kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        y = np.digitize(y, np.linspace(-2, 2, classes + 1)[1:-1]) if classes else y
        options = {"max_iter": 6, "max_leaf_nodes": 6, "min_samples_leaf": 5}
        model = kind(**options, categorical_features=[3], random_state=0).fit(X, y)
        found.append((model, BoostedTrees.of(model)))
    return found


def leaf_values(trees):
    return trees.values[(trees.kinds & LEAF) != 0]


@pytest.mark.parametrize("classes", [0, 2])
def test_values_of_leaves_give_the_scores(classes):
    (_, one), (_, other) = models(classes)
    X, _ = rows(2)
    values = np.concatenate([leaf_values(one), leaf_values(other)])
    columns = leaf_columns([one, other], X)
    scores = np.sqrt(12) * (columns @ values)
    expected = sum(trees.raw_predict(X)[:, 0] - trees.baseline for trees in (one, other))
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert columns.shape == (300, values.size)
    np.testing.assert_allclose(columns.sum(axis=1), np.sqrt(12))


@pytest.mark.parametrize("k", [1, 3])
def test_joined_trees_have_the_scores_of_the_linear_model(k):
    pair = [trees for _, trees in models()]
    X, _ = rows(3)
    X[:5, 3] = 77.0
    columns = leaf_columns(pair, X)
    values, baseline = np.random.default_rng(0).normal(size=(k, columns.shape[1])), np.arange(k)
    joined = joined_trees(pair, values / np.sqrt(12), baseline)
    np.testing.assert_allclose(joined.raw_predict(X), columns @ values.T + baseline, atol=1e-12)
    again = BoostedTrees.from_arrays(joined.to_arrays(), 4)
    np.testing.assert_array_equal(again.raw_predict(X), joined.raw_predict(X))


def test_the_first_rounds_are_those_of_a_shorter_model():
    X, y = rows()
    options = {"max_leaf_nodes": 6, "categorical_features": [3], "random_state": 0}
    long, short = (HistGradientBoostingRegressor(max_iter=n, **options).fit(X, y) for n in (9, 4))
    first = BoostedTrees.of(long).first(4)
    np.testing.assert_array_equal(first.raw_predict(X)[:, 0], short.predict(X))


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_no_column_is_about_few_rows(seed, least):
    """Whatever the site adds up over a column is of no row, or of so many at least."""
    (_, one), (_, other) = MODELS
    X, _ = rows(seed, 60)
    merged = leaf_columns([one, other], X, least)
    dense = np.asarray(merged @ np.eye(merged.shape[1]))
    count = (dense > 0).sum(axis=0)
    assert ((count == 0) | (count >= min(least, 60))).all()
    # Differences of two columns, too: rows that are in one of them and not in the other.
    for tree in np.split(np.arange(dense.shape[1]), cuts([one, other])):
        kinds, size = np.unique(dense[:, tree], axis=0, return_counts=True)
        assert size.min() >= least or len(kinds) == 1
        np.testing.assert_allclose(kinds.sum(axis=1), 1 / np.sqrt(12))


def cuts(pair):
    """Where the leaves of each tree begin."""
    each = []
    for trees in pair:
        leaf = (trees.kinds & LEAF) != 0
        each += [leaf[a:b].sum() for a, b in zip(trees.starts, trees.starts[1:], strict=False)]
    return np.cumsum(each)[:-1]


def test_merged_leaves_share_the_rows_of_their_node():
    """By hand: each row's shares are even over the leaves of the lowest node that may be told."""
    _, trees = MODELS[0]
    X, _ = rows(5, 40)
    least, leaves = 8, trees.leaves(X)
    dense = np.asarray(leaf_columns([trees], X, least) @ np.eye(leaf_values(trees).size))
    column = np.cumsum((trees.kinds & LEAF) != 0) - 1

    def below(node, root):
        if trees.kinds[node] & LEAF:
            return [node]
        return below(root + trees.left[node], root) + below(root + trees.right[node], root)

    expected = np.zeros_like(dense)
    for t, root in enumerate(trees.starts[:-1]):
        nodes, cells = [root], []
        while nodes:
            node = nodes.pop()
            if not trees.kinds[node] & LEAF:
                sides = [root + trees.left[node], root + trees.right[node]]
                counts = [np.isin(leaves[:, t], below(side, root)).sum() for side in sides]
                if all(n == 0 or n >= least for n in counts):
                    nodes += sides
                    continue
            cells.append(below(node, root))
        for cell in cells:
            inside = np.isin(leaves[:, t], cell)
            expected[np.ix_(inside, column[cell])] = 1 / len(cell) / np.sqrt(trees.n_trees)
    np.testing.assert_allclose(dense, expected, atol=1e-12)


MODELS = models()
