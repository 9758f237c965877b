"""Sources without a density, numbers of other types, and what cannot be packed."""

import json

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("safetensors")

import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from anymix import Source
from anymix.densities import BigramModel, GaussianKDE
from anymix.exceptions import InputError
from anymix.exchange import AuditError, NoSafeGraph, pack_source, read_source, read_sources
from anymix.exchange import conversion as conversion_module
from tests.exchange.hostile_folders import edit_arrays, edit_manifest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) * [1, 10, 100]
Y = X @ [1.0, 0.2, 0.03]
LABEL = np.where(Y > 0, "yes", "no")
KDE = GaussianKDE(0.5).fit(X / X.std(axis=0))


def bare(model, **more):
    return Source("north", model, **more)


def test_a_source_without_density_is_packed_only_where_that_is_allowed(tmp_path):
    source = bare(Ridge().fit(X, Y))
    with pytest.raises(InputError, match="source 'north' has no density; give it a Bigram"):
        pack_source(source, tmp_path / "north")
    manifest = pack_source(source, tmp_path / "north", without_density=True)
    assert (manifest.density, len(manifest.features)) == ("none", 3)
    assert manifest.reveals == (
        "no density. Predictor and density were not compared with the training rows."
    )
    with pytest.raises(AuditError, match="holds no density; ask for a folder with one") as caught:
        read_sources([tmp_path / "north"])
    assert caught.value.where == str(tmp_path / "north" / "density.safetensors")
    again = read_sources([tmp_path / "north"], without_density=True)[0].source
    assert again.density is None
    np.testing.assert_allclose(again.predict(X), source.predict(X), rtol=1e-4)
    edit_arrays(tmp_path / "north", lambda arrays: arrays.update(extra=np.zeros(1)))
    with pytest.raises(AuditError, match="holds arrays, though the manifest names no density"):
        read_sources([tmp_path / "north"], without_density=True)


def test_a_source_with_a_density_keeps_it_where_none_is_allowed(tmp_path):
    source = bare(Ridge().fit(X, Y), density=KDE)
    manifest = pack_source(source, tmp_path / "north", without_density=True)
    assert manifest.density == "gaussian_kernels"


def test_the_number_of_columns_is_found(tmp_path):
    packed = tmp_path / "a" / "predictor.onnx"
    pack_source(bare(Ridge().fit(X, Y)), tmp_path / "a", without_density=True)
    named = bare(packed, feature_names=["u", "v", "w"])
    assert len(pack_source(named, tmp_path / "b", without_density=True).features) == 3
    by_rows = pack_source(bare(packed), tmp_path / "c", without_density=True, rows=X)
    assert len(by_rows.features) == 3
    with pytest.raises(InputError, match="does not say how many columns it takes; give it feat"):
        pack_source(bare(packed), tmp_path / "d", without_density=True)


MODELS = {
    "logistic": LogisticRegression(max_iter=5000),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "network": make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=2000, random_state=0)),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_nearest_graph_of_linear_models_and_networks_has_double_numbers(tmp_path, model):
    source = bare(model.fit(X, LABEL))
    single, double = conversion_module.graphs_of(source, 3, False, "nearest")
    gaps = {g.dtype: np.abs(g(X) - model.predict_proba(X)).max() for g in (single, double)}
    assert gaps["float64"] < 1e-14 < 1e-9 < gaps["float32"] < 1e-5
    assert conversion_module.nearest_graph(source, [single, double], X) is double
    manifest = pack_source(source, tmp_path / "a", without_density=True, dtype="nearest", rows=X)
    assert manifest.features[0].dtype == "float64"
    again = read_sources([tmp_path / "a"], without_density=True)[0].source
    np.testing.assert_array_equal(again.predictor(X), double(X))


def test_forests_compare_alike_in_both_types(tmp_path):
    """They round rows to float32 themselves, so that the smaller type is as near."""
    model = RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(X, Y)
    nearest = pack_source(
        bare(model), tmp_path / "a", without_density=True, dtype="nearest", rows=X
    )
    assert nearest.features[0].dtype == "float32"
    double = pack_source(bare(model), tmp_path / "b", without_density=True, dtype="float64")
    assert double.features[0].dtype == "float64"
    for folder in ("a", "b"):
        again = read_sources([tmp_path / folder], without_density=True)[0].source
        np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)


def test_one_type_that_cannot_be_converted_leaves_the_other(tmp_path, monkeypatch):
    model, convert = Ridge().fit(X, Y), conversion_module._converted

    def single_alone(model, n_features, dtype):
        if dtype == "float64":
            raise NoSafeGraph(model, "there is no double form")
        return convert(model, n_features, dtype)

    monkeypatch.setattr(conversion_module, "_converted", single_alone)
    found = conversion_module.graphs_of(bare(model), 3, False, "nearest")
    assert [graph.dtype for graph in found] == ["float32"]
    with pytest.raises(NoSafeGraph, match="there is no double form"):
        conversion_module.graphs_of(bare(model), 3, False, "float64")


class Unheard(RegressorMixin, BaseEstimator):
    """Not of scikit-learn, so it has no converter."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_an_estimator_without_converter_is_refused(tmp_path):
    with pytest.raises(NoSafeGraph, match=r"Unheard cannot be packed .*skl2onnx says"):
        pack_source(bare(Unheard().fit(X, Y)), tmp_path / "a", without_density=True)


@pytest.mark.parametrize(
    "rows", [X.tolist(), pd.DataFrame(X), sparse.csr_array(X), X], ids=lambda r: type(r).__name__
)
def test_rows_of_every_kind_can_be_compared(tmp_path, rows):
    source = bare(Ridge().fit(X, Y))
    manifest = pack_source(source, tmp_path / "a", without_density=True, dtype="nearest", rows=rows)
    assert manifest.features[0].dtype == "float64"


def test_frames_keep_their_names(tmp_path):
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    source = bare(Ridge().fit(frame, Y))
    manifest = pack_source(
        source, tmp_path / "a", without_density=True, dtype="nearest", rows=frame
    )
    assert [feature.name for feature in manifest.features] == ["u", "v", "w"]


def test_the_nearest_needs_rows(tmp_path):
    source = bare(Ridge().fit(X, Y))
    with pytest.raises(InputError, match="dtype='nearest' needs rows to compare at; pass rows"):
        pack_source(source, tmp_path / "a", without_density=True, dtype="nearest")
    with pytest.raises(InputError, match="dtype='float16' is not known; choose one of"):
        pack_source(source, tmp_path / "a", without_density=True, dtype="float16")


def test_a_graph_that_says_something_else_is_refused(tmp_path, monkeypatch):
    other = Ridge().fit(X, -Y)
    convert = conversion_module._converted
    monkeypatch.setattr(
        conversion_module, "_converted", lambda model, n, dtype: convert(other, n, dtype)
    )
    with pytest.raises(NoSafeGraph, match="differs from the estimator at 100 % of rows"):
        pack_source(bare(Ridge().fit(X, Y), density=KDE), tmp_path / "a")


def test_estimators_without_probabilities_and_unsafe_files_are_refused(tmp_path):
    svm = LinearSVC().fit(X / X.std(axis=0), LABEL)
    with pytest.raises(NoSafeGraph, match=r"LinearSVC cannot be .*it gives no probabilities"):
        pack_source(bare(svm, density=KDE), tmp_path / "a")
    pack_source(bare(Ridge().fit(X, Y), density=KDE), tmp_path / "b")
    wide = GaussianKDE(0.5).fit(RNG.normal(size=(50, 4)))
    file = tmp_path / "b" / "predictor.onnx"
    with pytest.raises(AuditError, match="cannot be trusted: its input must have") as caught:
        pack_source(bare(file, density=wide), tmp_path / "c")
    assert caught.value.where == "the predictor of 'north'"


def test_features_and_columns_must_agree(tmp_path):
    source = bare(Ridge().fit(X, Y), density=KDE, feature_names=["u", "v"])
    with pytest.raises(InputError, match="source 'north' names 2 features for 3 columns"):
        pack_source(source, tmp_path / "a")


def test_a_predictor_that_changed_its_mind_is_told(tmp_path):
    """A graph that was asked with one row alone may still give another number of rows."""
    pack_source(bare(Ridge().fit(X, Y), density=KDE), tmp_path / "a")
    source = read_source(tmp_path / "a")
    source.predictor.in_process, source.predictor._session = True, _Deaf()
    with pytest.raises(
        AuditError, match="the predictor of north cannot be used: its output must hold"
    ):
        source.predict(X)


class _Deaf:
    def get_inputs(self):
        return [type("Input", (), {"name": "X"})]

    def run(self, names, rows):
        return [np.zeros(1)]


def test_where_is_the_path_of_the_file(tmp_path):
    pack_source(bare(Ridge().fit(X, Y), density=KDE), tmp_path / "a")
    edit_manifest(tmp_path / "a", lambda manifest: manifest | {"task": "magic"})
    with pytest.raises(AuditError) as caught:
        read_source(tmp_path / "a")
    assert caught.value.where == str(tmp_path / "a" / "manifest.json")
    assert caught.value.cause.startswith("names the task 'magic'")
    assert json.loads((tmp_path / "a" / "manifest.json").read_text())["task"] == "magic"


@pytest.mark.parametrize("given", [True, False], ids=["rows", "made up"])
def test_a_graph_of_documents_that_differs_is_refused(tmp_path, given):
    docs = ["good good good film", "bad bad film", "good film", "bad film film film film"] * 5
    labels = ["a", "b", "a", "b"] * 5
    density = BigramModel().fit([doc.split() for doc in docs])
    for sublinear in (False, True):
        words = TfidfVectorizer(sublinear_tf=sublinear)
        model = make_pipeline(words, LogisticRegression()).fit(docs, labels)
        source = bare(model, density=density)
        if not sublinear:
            pack_source(source, tmp_path / "a", rows=docs if given else None)
            continue
        with pytest.raises(NoSafeGraph, match=r"differs from the estimator at \d+ % of documents"):
            pack_source(source, tmp_path / "b", rows=docs if given else None)


def test_pairs_of_words_are_refused_where_letters_stand_between(tmp_path):
    """The usual pattern of scikit-learn leaves out single letters, and its graph does not."""
    docs = ["met a cat", "saw a dog", "met the dog", "saw the cat"] * 5
    density = BigramModel().fit([doc.split() for doc in docs])
    for pattern in (r"\w\w+", r"(?u)\b\w\w+\b"):
        words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=pattern)
        source = bare(make_pipeline(words, Ridge()).fit(docs, np.arange(20.0)), density=density)
        if pattern == r"\w\w+":
            pack_source(source, tmp_path / "a", rows=docs)
            continue
        with pytest.raises(NoSafeGraph, match=r"for pairs of words token_pattern=r'.w.w\+'"):
            pack_source(source, tmp_path / "b", rows=docs)


def test_a_network_of_pytorch_is_packed_and_answers_the_same(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    pack_source(bare(model, density=KDE), tmp_path / "a", rows=X)
    with torch.no_grad():
        due = model.eval()(torch.tensor(X, dtype=torch.float32)).numpy()
    found = read_source(tmp_path / "a").predict(X)
    np.testing.assert_allclose(np.ravel(found), due.ravel(), rtol=1e-4, atol=1e-5)


def test_a_network_without_a_graph_says_so(tmp_path):
    torch = pytest.importorskip("torch")

    class Strange(torch.nn.Module):
        def forward(self, rows):
            return torch.linalg.matrix_exp(rows[:, None] * rows[..., None])[:, 0, :1]

    with pytest.raises(NoSafeGraph, match=r"Strange cannot be packed .* \(PyTorch says"):
        pack_source(bare(Strange(), density=KDE), tmp_path / "a")
