"""Every exported density that can travel is packed, read, audited and written as ONNX."""

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("safetensors")

import onnx
import onnxruntime
from scipy.stats import laplace
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from anymix import Source, densities
from anymix.densities import DomainClassifier
from anymix.densities.density import Density, Travels, check_arrays, check_shapes, refuse_unless
from anymix.exchange import (
    AuditError,
    density_from_arrays,
    density_to_arrays,
    dump_arrays,
    load_arrays,
    pack_source,
    read_sources,
)
from anymix.exchange.manifest import travelling
from anymix.exchange.onnx_graph import Graph
from tests.densities import density_checks
from tests.densities.density_cases import cases, training_rows
from tests.exchange.hostile_folders import edit_arrays

TRAVELLERS = [case for case in cases() if hasattr(case.make(1), "kind")]


def by_name(cases):
    return {"argvalues": cases, "ids": [case.name for case in cases]}


def source_of(case):
    rows, density = training_rows(case.takes, 2, n=200), case.fitted(2)
    if case.takes == "numbers":
        return Source("north", Ridge().fit(rows, rows[:, 0]), density)
    texts = [" ".join(["start", *words]) for words in rows]
    words = make_pipeline(CountVectorizer(token_pattern=r"\w+"), LogisticRegression())
    return Source("north", words.fit(texts, np.arange(200) % 2), density)


def asked(case, rows):
    return rows if case.takes == "numbers" else [" ".join(words) for words in rows]


def comes_back_from_a_folder(case, folder):
    """Read again, it scores to the last digit as the one that was packed."""
    source, rows = source_of(case), training_rows(case.takes, 2, n=100, seed=1)
    manifest = pack_source(source, folder, keep_rows=True)
    assert manifest.density == source.density.kind
    assert manifest.reveals.startswith(source.density.reveals())
    again = read_sources([folder])[0]
    found = again.source.log_density(asked(case, rows))
    np.testing.assert_array_equal(found, source.density.score_samples(rows))
    # What was read can be packed in its turn.
    density = again.source.density
    assert density.shareable().kind == manifest.density
    assert density.reveals()
    kind, arrays = density_to_arrays(density)
    assert kind == manifest.density
    np.testing.assert_equal(arrays, load_arrays((folder / "density.safetensors").read_bytes()))


@pytest.mark.parametrize("case", **by_name(TRAVELLERS))
def test_comes_back_from_a_folder(case, tmp_path):
    comes_back_from_a_folder(case, tmp_path / "north")


@pytest.mark.parametrize("case", **by_name(TRAVELLERS))
def test_damaged_arrays_are_refused_by_name(case, tmp_path):
    pack_source(source_of(case), tmp_path / "north")

    def drop(arrays):
        del arrays[min(arrays)]

    edit_arrays(tmp_path / "north", drop)
    with pytest.raises(AuditError, match="must hold") as caught:
        read_sources([tmp_path / "north"])
    assert caught.value.where == str(tmp_path / "north" / "density.safetensors")


WRITES_GRAPHS = [case for case in TRAVELLERS if hasattr(case.make(1), "log_density_graph")]


@pytest.mark.parametrize("case", **by_name(WRITES_GRAPHS))
def test_the_onnx_graph_scores_alike(case):
    density, graph, make = case.fitted(2), Graph(), onnx.helper
    out = density.log_density_graph(graph)
    double = onnx.TensorProto.DOUBLE
    ends = [
        [make.make_tensor_value_info(graph.rows, double, ["n", 2])],
        [make.make_tensor_value_info(out, double, ["n", 1])],
    ]
    whole = make.make_graph(graph.nodes, "density", *ends, graph.weights)
    versions = graph.versions
    opsets = [make.make_opsetid(domain, version) for domain, version in versions.items()]
    model = make.make_model(whole, opset_imports=opsets, ir_version=10)
    rows = training_rows("numbers", 2, n=100, seed=1) * 3
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = session.run(None, {graph.rows: rows})[0][:, 0]
    np.testing.assert_allclose(found, density.score_samples(rows), rtol=1e-9, atol=1e-4)


def test_numbers_can_be_written_as_graphs():
    assert len(WRITES_GRAPHS) >= 6


class Laplace(Travels, Density):
    """Independent double exponentials: all that a new density has to write."""

    kind = "laplace"

    def fit(self, X, y=None):
        X = np.asarray(X)
        self.centre_ = np.median(X, axis=0)
        self.scale_ = np.abs(X - self.centre_).mean(axis=0)
        self.n_features_in_ = X.shape[1]
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        return laplace.logpdf(X, self.centre_, self.scale_).sum(axis=1)

    def sample(self, n_samples=1, random_state=None):
        rng = np.random.RandomState(random_state)
        return rng.laplace(self.centre_, self.scale_, (n_samples, self.n_features_in_))

    def to_arrays(self):
        return {"centre": self.centre_, "scale": self.scale_}

    @classmethod
    def from_arrays(cls, arrays, n_features):
        check_arrays(arrays, {"centre", "scale"})
        check_shapes(arrays, centre=(n_features,), scale=(n_features,))
        refuse_unless(arrays["scale"].min() > 0, "has a scale of zero or less")
        density = cls()
        density.centre_, density.scale_ = arrays["centre"], arrays["scale"]
        density.n_features_in_ = n_features
        return density

    def reveals(self):
        return "medians and mean distances of the columns; no row."


@pytest.fixture
def exported(monkeypatch):
    """One line in `__all__`."""
    monkeypatch.setattr(densities, "Laplace", Laplace, raising=False)
    monkeypatch.setattr(densities, "__all__", [*densities.__all__, "Laplace"])
    return next(case for case in cases() if case.name == "Laplace-plain")


def test_a_new_density_takes_one_file_and_its_line(exported, tmp_path):
    assert travelling(routers=False)["laplace"] is Laplace
    comes_back_from_a_folder(exported, tmp_path / "north")
    for check in (*density_checks.CHECKS, *density_checks.TRAVEL_CHECKS):
        check(exported)


def test_unknown_again_once_it_is_not_exported(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="a density of type Laplace cannot be packed; use Bigram"):
        density_to_arrays(Laplace().fit(np.eye(3)))
    with pytest.raises(AuditError, match=r"weights.st is of the kind 'laplace'; known are \('bigr"):
        density_from_arrays("laplace", {}, 1, "weights.st")


def test_a_density_that_packs_itself_wrongly_is_not_written(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(Laplace, "to_arrays", lambda self: {"centre": self.centre_})
    with pytest.raises(AuditError, match="the density Laplace must hold the arrays"):
        pack_source(source_of(exported), tmp_path / "north")
    assert not (tmp_path / "north").exists()


@pytest.mark.parametrize("p", [1, 2, 3])
def test_routers_come_back_to_the_last_digit(p):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(90, 4)), np.arange(90) % p
    router = DomainClassifier().fit(X, codes)
    kind, arrays = density_to_arrays(router)
    again = density_from_arrays(kind, load_arrays(dump_arrays(arrays)), 4, "router.safetensors")
    assert kind == "domain_classifier"
    np.testing.assert_array_equal(again.log_responsibilities(X), router.log_responsibilities(X))
    with pytest.raises(AuditError) as caught:
        density_from_arrays(kind, arrays, 5, "router.safetensors")
    assert caught.value.where == "router.safetensors"
