"""The exported file predicts as `predict` does, where only onnxruntime is installed."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anymix import Source
from anymix.core import Combination
from anymix.densities import BigramModel
from anymix.exchange import pack_source, read_sources
from anymix.exchange.onnx_graph import export_onnx
from anymix.models import load
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
        load(made.model),
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
    received = read_sources([tmp_path / name for name in NAMES[:2]])
    half = Combination(np.array([0.5, 0.5]), 1e-3)
    with pytest.raises(ValueError, match="'bigram', which cannot be written as ONNX"):
        export_onnx(received, half)
    with pytest.raises(ValueError, match="the rule 'normalised' cannot be written"):
        export_onnx(received, replace(half, rule="normalised"))
