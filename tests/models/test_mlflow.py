"""MLflow itself opens the folders and predicts; `make test-mlflow` brings the library."""

import logging

import numpy as np
import pandas as pd
import pytest

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.models import export_model, load
from tests.models.mixed_rows import clinics, strangers

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def opened(model, place, float32=False):
    """Save a model, export it, and open the folder with MLflow."""
    mlflow = pytest.importorskip("mlflow", reason="make test-mlflow brings MLflow")
    anymix.save(model, place / "model")
    (place / "served").mkdir()
    for name, content in export_model(place / "model", float32=float32).mlflow_files().items():
        (place / "served" / name).write_bytes(content)
    return mlflow.pyfunc.load_model(str(place / "served")), load(place / "model")


@pytest.mark.parametrize("float32", [False, True])
def test_a_table_of_numbers_is_predicted_in_any_order_of_columns(tmp_path, float32):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(c, 1, (90, 2)) for c in (-2, 2)])
    X = pd.DataFrame(rows, columns=["a", "b"])
    model = DistributionWeightedRegressor(density=GaussianKDE(0.5), random_state=0)
    model.fit(X, X["a"].abs(), sample_domain=np.repeat(["north", "south"], 90))
    served, again = opened(model, tmp_path, float32)
    found = served.predict(X[["b", "a"]])
    assert list(found) == ["prediction", "weight(north)", "weight(south)"]
    np.testing.assert_allclose(found["prediction"], again.predict(X), atol=1e-4)
    assert len(served.predict(served.input_example)) == 1
    with pytest.raises(Exception, match="missing input"):
        served.predict(X[["a"]])
    assert served.metadata.metadata["anymix.certificate"] == again.certificate_.sentence


def test_words_and_gaps_go_in_as_they_are(tmp_path, caplog):
    rows, _, labels, clinic = clinics()
    model = DistributionWeightedClassifier(random_state=0)
    model.fit(rows, labels, sample_domain=clinic)
    with caplog.at_level(logging.WARNING):
        served, again = opened(model, tmp_path)
    assert not [record for record in caplog.records if record.name.startswith("mlflow.onnx")]
    frame = strangers()
    # What pandas 3 keeps words in is handed on by MLflow, and onnxruntime takes objects alone.
    given = frame.astype({"ward": object, "smokes": float})
    found = served.predict(given)
    shares = found[[f"p({label})" for label in again.classes_]]
    np.testing.assert_allclose(shares, again.predict_proba(frame), atol=1e-5)
    assert (found["label"] == again.predict(frame)).all()


def test_mlflow_writes_the_fields_that_we_write(tmp_path):
    from tests.cli.test_export_forms import FIELDS, FLAVOURS

    mlflow = pytest.importorskip("mlflow", reason="make test-mlflow brings MLflow")
    import onnx
    import yaml

    X = np.random.default_rng(0).normal(size=(90, 2))
    model = DistributionWeightedRegressor(density=GaussianKDE(0.5), random_state=0)
    served, _ = opened(model.fit(X, X[:, 0], sample_domain=np.arange(90) % 2), tmp_path)
    whole = onnx.load(tmp_path / "served/model.onnx")
    signature, example = served.metadata.signature, pd.DataFrame(X[:1], columns=["x0", "x1"])
    mlflow.onnx.save_model(
        whole,
        str(tmp_path / "theirs"),
        signature=signature,
        input_example=example,
        save_as_external_data=False,
    )
    theirs = yaml.safe_load((tmp_path / "theirs/MLmodel").read_text())
    assert set(theirs) >= FIELDS
    assert {name: set(part) for name, part in theirs["flavors"].items()} == FLAVOURS
    ours = yaml.safe_load((tmp_path / "served/MLmodel").read_text())
    for name in ("signature", "saved_input_example_info"):
        assert {*theirs[name]} == {*ours[name]}
    assert theirs["signature"] == ours["signature"]
    names = {path.name for path in (tmp_path / "served").iterdir()}
    assert names == {path.name for path in (tmp_path / "theirs").iterdir()}
