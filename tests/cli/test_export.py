"""The exported file predicts as `predict` does, where only onnxruntime is installed."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anymix import Source
from anymix.cli.model_folder import read_model
from anymix.densities import BigramModel
from anymix.exchange import pack_source, read_sources
from anymix.exchange.onnx_graph import Weights, export_onnx
from tests.cli.organisations import NAMES

RUN = """
import sys
sys.modules["anymix"] = None
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
names = [output.name for output in session.get_outputs()]
found = session.run(None, {"X": np.load(sys.argv[2])})
plain = [array.astype(str) if array.dtype == object else array for array in found]
np.savez(sys.argv[3], **dict(zip(names, plain)))
"""


def run_elsewhere(folder, file, X):
    np.save(folder / "X.npy", X)
    command = [sys.executable, "-c", RUN, file, folder / "X.npy", folder / "out.npz"]
    subprocess.run(list(map(str, command)), check=True, timeout=120)
    with np.load(folder / "out.npz") as found:
        return dict(found)


@pytest.mark.parametrize("which", ["world", "numbers"])
def test_the_file_agrees_with_predict(which, run, tmp_path, request):
    made = request.getfixturevalue(which)
    assert run("export", made.model, tmp_path / "robust.onnx").status == 0
    X = np.random.default_rng(3).normal(size=(10_000, 2)) * 4
    found, model = (
        run_elsewhere(tmp_path, tmp_path / "robust.onnx", X),
        read_model(made.model).model,
    )
    np.testing.assert_allclose(found["weights"], model.source_weights(X), atol=1e-9)
    if which == "numbers":
        np.testing.assert_allclose(found["prediction"], model.predict(X), atol=1e-5)
    else:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)
        assert (found["label"] == model.predict(X)).all()


def test_bigrams_are_refused(tmp_path):
    docs = ["the cat sat", "a dog ran"] * 5
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(docs, [0, 1] * 5)
    density = BigramModel().fit([doc.split() for doc in docs])
    for name in NAMES[:2]:
        pack_source(Source(name, model, density), tmp_path / name)
    audited = read_sources([tmp_path / name for name in NAMES[:2]])
    half = Weights(np.array([0.5, 0.5]), 1e-3, np.ones(2), np.zeros(2), -1e300, 1.0)
    with pytest.raises(ValueError, match="bigram model, which cannot be written as ONNX"):
        export_onnx(audited, half)
