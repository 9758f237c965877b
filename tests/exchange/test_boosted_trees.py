"""Boosted trees answer, as arrays and as graphs, what scikit-learn answers.

The witnesses are scikit-learn's own predictions, a walk in plain Python, and onnxruntime.
"""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix import Source
from anymix.core import Combination
from anymix.densities import GaussianKDE
from anymix.densities.boosted_graph import CATEGORY, GAPS_LEFT, ensemble_attributes
from anymix.densities.boosted_trees import BoostedTrees
from anymix.exchange import export_onnx, pack_source, read_source, read_sources
from anymix.exchange.contents import cells_of
from anymix.exchange.conversion import NoSafeGraph, graphs_of
from anymix.exchange.onnx_graph import Graph
from anymix.exchange.predictor import audit
from anymix.sandbox import open_session
from tests.exchange.boosted_cases import (
    CASES,
    CATEGORIES,
    EFFECTS,
    LABELS,
    MIXED,
    X,
    Z,
    asked,
    fitted,
    table,
)

PREPARED = {
    "scaled": StandardScaler(),
    "filled": SimpleImputer(strategy="median"),
    "some": ColumnTransformer([("s", StandardScaler(), [2, 0]), ("k", "passthrough", [1, 3, 4])]),
}


def answers(model, rows):
    method = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return method(rows).reshape(len(rows), -1)


def as_graph(model, own=None, dtype="float32"):
    """Return what a reader would run."""
    (graph,) = graphs_of(Source("s", model), 5, False, dtype)
    own = X[:40] if own is None else own
    n_columns = len(getattr(model, "classes_", "1"))
    return audit(graph.content, graph.dtype, 5, n_columns if n_columns > 1 else None, own)


def by_hand(trees, row):
    """Walk all trees for one row: the rule in plain Python."""
    raw, ends = trees.baseline.copy(), np.cumsum(trees.n_categories)
    for t, start in enumerate(trees.starts[:-1]):
        i = start
        while not trees.kinds[i] & 1:
            j, kind = trees.features[i], trees.kinds[i]
            known = trees.categories[ends[j] - trees.n_categories[j] : ends[j]].tolist()
            gap = np.isnan(row[j]) or (bool(kind & 2) and row[j] not in known)
            if gap:
                left = bool(kind & 4)
            elif kind & 2:
                code = known.index(row[j])
                left = bool(trees.sets[trees.set_of[i], code // 8] >> code % 8 & 1)
            else:
                left = bool(kind & 8) or row[j] <= trees.values[i]
            i = start + (trees.left if left else trees.right)[i]
        raw[t % trees.n_scores] += trees.values[i]
    return raw


@pytest.mark.parametrize("name", CASES)
def test_arrays_answer_as_the_model_to_the_last_digit(name):
    model, rows = fitted(name), asked(2000, 2)
    trees = BoostedTrees.from_arrays(BoostedTrees.of(model).to_arrays(), 5)
    found = trees.raw_predict(rows)
    assert np.array_equal(found, model._raw_predict(rows))
    assert np.array_equal(found[:100], [by_hand(trees, row) for row in rows[:100]])


def test_arrays_are_of_types_that_can_be_stored():
    kinds = {array.dtype.str for array in BoostedTrees.of(fitted("squared")).to_arrays().values()}
    assert kinds == {"<f8", "<i8", "|u1"}


@pytest.mark.parametrize("name", CASES)
def test_graphs_answer_as_the_model(name):
    model, rows = fitted(name), asked(5000, 3)
    graph, due = as_graph(model), answers(model, rows)
    assert graph.dtype == "float64"
    np.testing.assert_allclose(graph(rows), due, rtol=1e-6, atol=1e-6 * np.abs(due).mean())


def test_a_hundred_thousand_rows():
    model, rows = fitted("two classes"), asked(100_000, 4)
    due = model.predict_proba(rows)
    assert np.abs(as_graph(model)(rows) - due).max() < 1e-6
    found = BoostedTrees.of(model).raw_predict(rows)[:, 0]
    assert np.abs(1 / (1 + np.exp(-found)) - due[:, 1]).max() < 1e-12


@pytest.mark.parametrize("name", PREPARED)
def test_pipelines(name):
    many = [2, 3, 4] if name == "some" else [] if name == "scaled" else list(CATEGORIES)
    boosted = HistGradientBoostingClassifier(max_iter=20, categorical_features=many or None)
    model = make_pipeline(PREPARED[name], boosted).fit(X, LABELS)
    rows = table(3000, 5)[0]
    rows[::7, 1] = 5000
    assert np.abs(as_graph(model)(rows) - model.predict_proba(rows)).max() < 1e-6


def test_categories_may_be_any_numbers():
    codes = np.array([-3.0, 0.0, 0.5, 1.0, 63.0, 64.0, 126.0, 127.0, 1008.0, 1009.0, 1e9])
    rng = np.random.default_rng(6)
    rows = np.column_stack([rng.choice(codes, 3000), rng.normal(size=(3000, 4))])
    y = EFFECTS[np.searchsorted(codes, rows[:, 0])]
    model = HistGradientBoostingRegressor(categorical_features=[0], max_iter=20).fit(rows, y)
    around = np.concatenate([codes, codes + 63, codes - 63, codes + 1e-9, codes - 1e-20, [np.nan]])
    rows = np.column_stack([around, rng.normal(size=(around.size, 4))])
    due = model.predict(rows)
    assert np.array_equal(BoostedTrees.of(model).raw_predict(rows)[:, 0], due)
    np.testing.assert_allclose(as_graph(model, rows)(rows)[:, 0], due, rtol=1e-6, atol=1e-6)


def test_numbers_are_not_rounded_though_the_nearest_is_asked_for():
    graphs = graphs_of(Source("s", fitted("squared")), 5, False, "nearest")
    assert [graph.dtype for graph in graphs] == ["float64"]


def test_a_split_that_splits_none_is_written_as_it_is():
    """Beside gaps scikit-learn may learn one, and sends all rows to the right of it."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.where(rng.random(200) < 0.1, np.nan, 0.0), rng.normal(size=200)])
    y = X[:, 1] + np.isnan(X[:, 0]) + 0.3 * rng.normal(size=200)
    model = HistGradientBoostingRegressor(categorical_features=[0], min_samples_leaf=10)
    trees = BoostedTrees.of(model.fit(X, y))
    arrays = trees.to_arrays()
    idle = arrays | {
        "sets": np.zeros_like(arrays["sets"]),
        "kinds": arrays["kinds"] & (255 - GAPS_LEFT),
    }
    trees = BoostedTrees.from_arrays(idle, 2)
    assert not trees.asked_sets(np.flatnonzero(trees.kinds & CATEGORY)).any()
    rows = np.vstack([X, [[7.0, 0.0], [np.nan, 0.0], [1e300, 0.0]]])
    content = written(trees, 2, 1)
    found = audit(content, "float64", 2)(rows)
    np.testing.assert_allclose(found, trees.raw_predict(rows), rtol=1e-6, atol=1e-6)


def test_words_as_categories_are_refused_in_a_sentence():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.Categorical(["x", "y"] * 50), "b": np.arange(100.0)})
    model = HistGradientBoostingRegressor(categorical_features=["a"]).fit(frame, frame["b"])
    with pytest.raises(NoSafeGraph, match="column 0 holds categories that are words"):
        graphs_of(Source("s", model), 2, False, "float32")


def test_what_was_packed_predicts_as_before(tmp_path):
    whole = table(4000, 1, gaps=0.0)[0]
    model = HistGradientBoostingClassifier(**MIXED).fit(whole, LABELS)
    source = Source("north", model, GaussianKDE(1.0).fit(whole[:500]))
    manifest = pack_source(source, tmp_path / "north", rows=whole, targets=LABELS)
    assert "None of the 2480 leaves of its trees holds fewer than 5 rows" in manifest.reveals
    again = read_source(tmp_path / "north")
    assert np.abs(again.predictor(whole) - model.predict_proba(whole)).max() < 1e-6


def test_leaves_of_few_rows_are_counted():
    few = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=1, max_leaf_nodes=None)
    few.fit(X[:30, [0]], Z[:30])
    sizes = [t.nodes["count"][t.nodes["is_leaf"] == 1] for (t,) in few._predictors]
    found = cells_of(make_pipeline(StandardScaler(), few))
    assert found["leaves"] == sum(map(len, sizes))
    assert found["few"] == sum((part < 5).sum() for part in sizes)
    assert found["single"] == (sizes[0] == 1).sum() > 0
    assert found["rest"] == sum((part == 1).sum() for part in sizes[1:]) > 0


def test_a_graph_of_trees_has_one_parent_for_each_node_but_those_of_chains():
    attributes = ensemble_attributes(BoostedTrees.of(fitted("two classes")))
    modes = Counter(attributes["nodes_modes"])
    assert modes["BRANCH_EQ"] > modes["BRANCH_LEQ"] > 0
    assert len(attributes["target_ids"]) == modes["LEAF"]


def written(trees, n_features, n_scores):
    onnx, graph = pytest.importorskip("onnx"), Graph()
    scores = trees.add_to(graph, graph.rows)
    make, double = onnx.helper, onnx.TensorProto.DOUBLE
    given = make.make_tensor_value_info("X", double, ["n", n_features])
    out = make.make_tensor_value_info(scores, double, ["n", n_scores])
    whole = make.make_graph(graph.nodes, "g", [given], [out], graph.weights)
    opsets = [make.make_opsetid(*one) for one in graph.versions.items()]
    model = make.make_model(whole, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def test_trees_can_be_part_of_a_graph():
    trees, rows = BoostedTrees.of(fitted("four classes")), asked(500, 8)
    found = audit(written(trees, 5, 4), "float64", 5, 4)(rows)
    np.testing.assert_allclose(found, trees.raw_predict(rows), rtol=1e-6, atol=1e-6)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match="5 columns are needed"):
        BoostedTrees.of(fitted("squared")).raw_predict(np.zeros((3, 4)))


def test_a_model_of_boosted_and_other_trees_is_exported(tmp_path):
    rows, y = np.nan_to_num(X), (Z > 0).astype(int)
    boosted = HistGradientBoostingClassifier(**MIXED).fit(rows, y)
    forest = RandomForestClassifier(5, min_samples_leaf=20, random_state=0).fit(rows, y)
    density = GaussianKDE(1.0).fit(rows[:300])
    for name, model in (("north", boosted), ("south", forest)):
        pack_source(Source(name, model, density), tmp_path / name, rows=rows)
    received = read_sources([tmp_path / "north", tmp_path / "south"])
    content = export_onnx(received, Combination(np.array([0.7, 0.3]), 0.0))
    found = open_session(content).run(["probabilities"], {"X": rows[:500]})[0]
    # The densities are the same, so that the weights are z.
    due = 0.7 * boosted.predict_proba(rows[:500]) + 0.3 * forest.predict_proba(rows[:500])
    np.testing.assert_allclose(found, due, atol=1e-5)


def test_another_scikit_learn_is_refused_in_one_sentence(monkeypatch):
    model = fitted("two classes")
    monkeypatch.delattr(model, "_baseline_prediction")
    with pytest.raises(ImportError, match="boosted trees can be read of scikit-learn"):
        BoostedTrees.of(model)
