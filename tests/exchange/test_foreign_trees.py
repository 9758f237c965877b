"""XGBoost, LightGBM, CatBoost and forests as graphs: every row takes the path that it took."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anymix
from anymix import DistributionWeightedClassifier, Source
from anymix.densities import GaussianMixtureDensity
from anymix.estimators._source_training import fit_with_weight
from anymix.exchange import pack_source
from anymix.exchange.contents import cells_of
from anymix.exchange.conversion import graphs_of, safe_graphs
from anymix.exchange.foreign_trees import foreign_kinds, forest_of, learned_from_missing, trees_of
from anymix.sources import CodedLabels, made_to_fit

N_ROWS = 10_000
rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 5))
X[:, 3] = rng.integers(0, 5, 1500)
X[rng.random(X.shape) < 0.1] = np.nan
SCORE = np.nansum(np.sin(X[:, :3]), axis=1)
# Rows that the trees were trained on lie at their thresholds; others have categories never seen.
NEW = rng.normal(size=(N_ROWS, 5))
NEW[:, 3] = rng.integers(0, 9, N_ROWS)
NEW[rng.random(NEW.shape) < 0.15] = np.nan
NEW[:1500] = X
TARGETS = {
    "words": np.where(SCORE > 0, "yes", "no"),
    "three": np.digitize(SCORE, [-0.7, 0.7]),
    "codes": (SCORE > 0).astype(int),
    "numbers": 1000 * SCORE + 5e4,
    "counts": np.exp(SCORE),
}


def _cases():
    trees = {"n_estimators": 25}
    quiet = {"verbose": -1, "n_jobs": 1, **trees}
    cat = {"verbose": 0, "iterations": 25, "thread_count": 1, "allow_writing_files": False}
    xgb = {"n_jobs": 1, **trees}
    return [
        ("xgboost", "XGBClassifier", xgb, "codes"),
        ("xgboost", "XGBClassifier", xgb, "three"),
        ("xgboost", "XGBClassifier", {**xgb, "num_parallel_tree": 3, "subsample": 0.5}, "three"),
        ("xgboost", "XGBRegressor", xgb, "numbers"),
        ("xgboost", "XGBRegressor", {**xgb, "objective": "count:poisson"}, "counts"),
        ("lightgbm", "LGBMClassifier", quiet, "words"),
        ("lightgbm", "LGBMClassifier", quiet, "three"),
        ("lightgbm", "LGBMRegressor", quiet, "numbers"),
        ("lightgbm", "LGBMRegressor", {**quiet, "objective": "poisson"}, "counts"),
        (
            "lightgbm",
            "LGBMClassifier",
            {**quiet, "boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
            "words",
        ),
        ("catboost", "CatBoostClassifier", cat, "words"),
        ("catboost", "CatBoostClassifier", cat, "three"),
        ("catboost", "CatBoostRegressor", cat, "numbers"),
        ("catboost", "CatBoostRegressor", {**cat, "nan_mode": "Max"}, "numbers"),
    ]


def _made(library, kind, settings):
    module = pytest.importorskip(library)
    return getattr(module, kind)(**settings, random_state=0)


def _answers(model, rows):
    method = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return np.reshape(method(rows), (len(rows), -1))


def _check_graphs(model):
    source = Source("a", model)
    graphs = safe_graphs(source, graphs_of(source, 5, False, "nearest"), 5)
    due = _answers(model, NEW)
    for graph in graphs:
        rows = NEW.astype(graph.dtype)
        scale = max(1.0, np.abs(due).max())
        np.testing.assert_allclose(graph(rows), due, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize(("library", "kind", "settings", "target"), _cases())
def test_graphs_answer_as_the_model_does(library, kind, settings, target):
    model = _made(library, kind, settings).fit(X, TARGETS[target])
    _check_graphs(model)
    foreign = trees_of(model)
    raw = foreign.trees.raw_predict(NEW)
    found = {
        "identity": lambda: raw,
        "exp": lambda: np.exp(raw),
        "sigmoid": lambda: np.hstack([expit(-raw), expit(raw)]),
        "softmax": lambda: softmax(raw, axis=1),
    }[foreign.link]()
    due = _answers(model, NEW)
    np.testing.assert_allclose(found, due, rtol=0, atol=1e-6 * max(1.0, np.abs(due).max()))


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(7, min_samples_leaf=2),
        ExtraTreesClassifier(7, min_samples_leaf=2),
        RandomForestRegressor(7, min_samples_leaf=2),
        ExtraTreesRegressor(7, min_samples_leaf=2),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_forests_send_missing_values_where_scikit_learn_does(model, seed):
    """It is skl2onnx that does not, or that does not end, after missing values in training."""
    model = clone(model).set_params(random_state=seed)
    targets = ("words", "three") if hasattr(model, "predict_proba") else ("numbers",)
    for target in targets:
        model.fit(X, TARGETS[target])
        _check_graphs(model)
        assert learned_from_missing(model)
        assert not learned_from_missing(clone(model).fit(np.nan_to_num(X), TARGETS[target]))
        total = forest_of(model).raw_predict(NEW)
        due = _answers(model, NEW)
        np.testing.assert_allclose(total, due[:, -total.shape[1] :], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("library", "kind", "settings", "says"),
    [
        ("xgboost", "XGBRegressor", {"booster": "gblinear"}, "booster 'gblinear' is not written"),
        ("xgboost", "XGBRegressor", {"objective": "reg:squaredlogerror"}, "link that is not known"),
        ("lightgbm", "LGBMRegressor", {"zero_as_missing": True, "verbose": -1}, "zero_as_missing"),
        (
            "catboost",
            "CatBoostRegressor",
            {"grow_policy": "Depthwise", "verbose": 0, "iterations": 3},
            "grow_policy='SymmetricTree'",
        ),
    ],
)
def test_what_is_not_written_is_said(tmp_path, monkeypatch, library, kind, settings, says):
    monkeypatch.chdir(tmp_path)
    model = _made(library, kind, settings)
    model.fit(np.nan_to_num(X), TARGETS["counts"])
    with pytest.raises(ValueError, match=says):
        trees_of(model)


def test_pipelines_are_written_too():
    lightgbm = pytest.importorskip("lightgbm")
    model = make_pipeline(StandardScaler(), lightgbm.LGBMRegressor(n_estimators=5, verbose=-1))
    model.fit(X, SCORE)
    source = Source("a", model)
    (graph,) = graphs_of(source, 5, False, "nearest")
    # The scaled numbers are rounded, so that a few rows may fall on the other side.
    apart = np.abs(graph(NEW)[:, 0] - model.predict(NEW)) > 1e-6
    assert apart.mean() < 0.01


AWKWARD = ["age of patient", "dose [mg]", "a<b", "ward", 'with "quotes"']


@pytest.mark.parametrize(
    ("library", "kind", "settings"),
    [(c[0], c[1], c[2]) for c in _cases() if "Classifier" in c[1] and c[3] in ("codes", "words")],
)
def test_sites_with_words_as_labels_and_a_class_missing(tmp_path, library, kind, settings):
    """fit, save, load and export, on columns that the libraries do not like the names of."""
    domain = np.repeat(["north", "south"], len(X) // 2)
    labels = np.array(["low", "mid", "high"])[TARGETS["three"]]
    labels[(domain == "north") & (labels == "high")] = "mid"
    table = pd.DataFrame(X, columns=AWKWARD)
    model = DistributionWeightedClassifier(
        estimator=_made(library, kind, settings), random_state=0, generalist=None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table, labels, sample_domain=domain)
    due = model.predict_proba(table)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    anymix.save(model, tmp_path / "model")
    loaded = anymix.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(table), due, rtol=0, atol=1e-6)


def test_leaves_of_few_rows_are_counted(tmp_path):
    model = _made("xgboost", "XGBRegressor", {"n_estimators": 3, "min_child_weight": 1})
    rows, y = np.nan_to_num(X), TARGETS["numbers"]
    model.fit(rows, y)
    cells = cells_of(model, rows)
    assert cells["leaves"] == sum(line.count("leaf=") for line in model.get_booster().get_dump())
    assert cells["few"] > 0
    assert not cells_of(model)["leaves"]
    broad = _made("xgboost", "XGBRegressor", {"n_estimators": 3, "min_child_weight": 40})
    broad.fit(rows, y)
    manifest = pack_source(
        Source("a", broad, GaussianMixtureDensity().fit(rows)), tmp_path / "a", rows=rows, targets=y
    )
    assert "leaves of its trees holds fewer than 5 rows" in manifest.reveals


def test_only_what_needs_it_is_wrapped():
    plain = RandomForestClassifier()
    assert made_to_fit(plain, X, TARGETS["words"]) is plain
    model = _made("xgboost", "XGBClassifier", {"n_estimators": 3})
    assert made_to_fit(model, X, TARGETS["codes"]) is model
    assert isinstance(made_to_fit(model, X, TARGETS["words"]), CodedLabels)
    assert type(model) in foreign_kinds()


def test_weights_reach_the_steps_of_a_wrapped_pipeline():
    model = make_pipeline(StandardScaler(), _made("xgboost", "XGBClassifier", {"n_estimators": 3}))
    weight = np.where(TARGETS["codes"] > 0, 1e-9, 1.0)
    fitted = fit_with_weight(model, np.nan_to_num(X), TARGETS["words"], weight)
    assert set(fitted.predict(np.nan_to_num(X))) == {"no"}
