"""Source folders: what is packed comes back, and says what it reveals."""

import json

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("safetensors")

from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix import Source
from anymix.densities import (
    BigramModel,
    DomainClassifier,
    GaussianKDE,
    GaussianMixtureDensity,
    KnownDensity,
)
from anymix.exchange import OwnLoss, pack_source, read_source, read_sources
from anymix.exchange.tensors import density_from_arrays, density_to_arrays, dump_arrays, load_arrays
from anymix.storage import replacing, write_folder

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
LABEL = np.where(X[:, 0] > 0, "yes", "no")


def test_a_classifier_comes_back(tmp_path):
    model = RandomForestClassifier(10, random_state=0).fit(X, LABEL)
    source = Source("north", model, GaussianMixtureDensity(2, random_state=0).fit(X), n_rows=200)
    manifest = pack_source(source, tmp_path / "north", own_loss=OwnLoss("cross_entropy", 0.3, 50))
    again = read_sources([tmp_path / "north"])[0]
    assert again.manifest == manifest
    rows = RNG.normal(size=(5000, 3)).astype(np.float32)
    classes = np.array(["no", "yes"])
    np.testing.assert_allclose(
        again.source.predict_proba(rows, classes), source.predict_proba(rows, classes), atol=1e-5
    )
    np.testing.assert_allclose(again.source.log_density(rows), source.log_density(rows), atol=1e-9)
    assert again.source.own_loss == 0.3
    assert again.source.n_rows == 200
    assert again.source.labels.tolist() == ["no", "yes"]


def test_a_regressor_comes_back_from_its_onnx_file(tmp_path):
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, X @ [1.0, 2.0, 3.0])
    density = GaussianKDE(0.5).fit(X)
    pack_source(Source("a", model, density), tmp_path / "a", keep_rows=True)
    onnx_file = tmp_path / "a" / "predictor.onnx"
    manifest = pack_source(Source("b", onnx_file, density), tmp_path / "b", keep_rows=True)
    again = read_source(tmp_path / "b")
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-5)
    np.testing.assert_allclose(again.log_density(X), density.score_samples(X), atol=1e-9)
    assert manifest.task == "regression"
    assert manifest.reveals.startswith("200 training rows, exactly as they are.")
    assert manifest.reveals.endswith("none stands in the predictor as it is, 200 in the density.")


def test_text_comes_back(tmp_path):
    docs = ["the cat sat on the mat", "a dog ran to the cat", "dogs and cats ran off"] * 10
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(docs, [0, 1, 0] * 10)
    density = BigramModel(min_count=2).fit([doc.split() for doc in docs])
    manifest = pack_source(Source("shop", model, density), tmp_path / "shop")
    again = read_source(tmp_path / "shop")
    asked = ["The cat ran!", "a mat"]
    np.testing.assert_allclose(
        again.predict_proba(asked, np.array([0, 1])), model.predict_proba(asked), atol=1e-5
    )
    np.testing.assert_allclose(
        again.log_density(asked), density.score_samples([["the", "cat", "ran"], ["a", "mat"]])
    )
    assert "each met in 5 documents or more" in manifest.reveals


@pytest.mark.filterwarnings("ignore")
def test_a_network_comes_back(tmp_path):
    torch = pytest.importorskip("torch")
    layers = [torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2), torch.nn.Softmax(1)]
    model = torch.nn.Sequential(*layers)
    source = Source("a", model, GaussianKDE(0.5).fit(X), classes=["no", "yes"])
    pack_source(source, tmp_path / "a")
    with torch.no_grad():
        due = model(torch.tensor(X, dtype=torch.float32)).numpy()
    found = read_source(tmp_path / "a").predict_proba(X, np.array(["no", "yes"]))
    np.testing.assert_allclose(found, due, atol=1e-5)


def test_rows_are_not_handed_over_unless_asked(tmp_path):
    density = GaussianKDE(0.5).fit(X)
    pack_source(Source("a", Ridge().fit(X, X[:, 0]), density), tmp_path / "a")
    centres = load_arrays((tmp_path / "a" / "density.safetensors").read_bytes())["centres"]
    assert np.abs(centres[:, None] - X).max(axis=2).min() > 1e-6
    # the density stays close to the one that was chosen
    apart = read_source(tmp_path / "a").log_density(X) - density.score_samples(X)
    assert np.abs(apart).mean() < 0.5


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixtures_of_every_shape(kind):
    density = GaussianMixtureDensity(3, covariance_type=kind, random_state=0).fit(X)
    name, arrays = density_to_arrays(density)
    again = density_from_arrays(name, load_arrays(dump_arrays(arrays)), 3)
    np.testing.assert_array_equal(again.score_samples(X), density.score_samples(X))


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_kernels_are_what_the_arrays_say(n, d, seed):
    rng = np.random.default_rng(seed)
    arrays = {
        "centres": rng.normal(size=(n, d)),
        "weights": rng.dirichlet(np.ones(n)) * 0.9 + 0.1 / n,
        "variances": rng.random(n),
        "bandwidth": rng.random(1) + 0.1,
    }
    density = density_from_arrays("gaussian_kernels", load_arrays(dump_arrays(arrays)), d)
    rows = rng.normal(size=(4, d))
    due = sum(
        w * multivariate_normal(c, (arrays["bandwidth"][0] ** 2 + v) * np.eye(d)).pdf(rows)
        for c, w, v in zip(arrays["centres"], arrays["weights"], arrays["variances"], strict=True)
    )
    np.testing.assert_allclose(density.score_samples(rows), np.log(due), rtol=1e-6, atol=1e-6)


def test_centres_stand_for_five_rows_or_more():
    shared = GaussianKDE(0.5).fit(X).shareable(n_centres=30)
    assert (shared.weights_ * 200 > 4.5).all()
    assert shared.shareable() is shared


@pytest.mark.parametrize(
    ("density", "words"),
    [
        (DomainClassifier(), "a DomainClassifier has seen the rows of all sources"),
        (KnownDensity(lambda X: X[:, 0]), "KnownDensity cannot be packed"),
    ],
)
def test_densities_that_cannot_travel(tmp_path, density, words):
    with pytest.raises(ValueError, match=words):
        pack_source(Source("a", Ridge().fit(X, X[:, 0]), density), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_predictors_that_cannot_travel(tmp_path):
    density = GaussianKDE(0.5).fit(X)
    with pytest.raises(ValueError, match="predictor of type function cannot be packed"):
        pack_source(Source("a", lambda X: X[:, 0], density), tmp_path / "a")
    with pytest.raises(ValueError, match="not an ONNX file"):
        pack_source(Source("a", b"\xff\xff", density), tmp_path / "a")


def test_a_folder_is_not_overwritten(tmp_path):
    write_folder(tmp_path / "a", {"x": b"1"})
    with pytest.raises(ValueError, match="exists already"):
        write_folder(tmp_path / "a", {"x": b"2"})
    assert (tmp_path / "a" / "x").read_bytes() == b"1"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text(f"ne{1 / 0}")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_the_manifest_is_plain_json(tmp_path):
    source = Source(
        "a", Ridge().fit(X, X[:, 0]), GaussianKDE(0.5).fit(X), feature_names=list("uvw")
    )
    pack_source(source, tmp_path / "a")
    data = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert data["schema"] == 1
    assert data["features"][0] == {"name": "u", "dtype": "float32"}
    assert set(data["files"]) == {"predictor.onnx", "density.safetensors"}
