"""On real tables the folder and the exported file answer as the fitted model; minutes."""

import numpy as np
import onnxruntime
import pytest

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.exchange import export_onnx
from anymix.models import read_model
from experiments import evidence_sets
from tests.experiments.real_data import DATA
from tests.models.float32_rows import CASES, measured

SETS = {"heart": "heart", "housing": "housing", "cars": "cars"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_exported_file_agrees_with_predict(name, tmp_path):
    if not (DATA / SETS[name]).is_dir():
        pytest.skip("the data is not here")
    whole = getattr(evidence_sets, f"load_{name}")(DATA)
    order = np.random.default_rng(0).permutation(len(whole.y))
    train, test = (whole.take(part) for part in np.split(order, [int(0.7 * order.size)]))
    kind = DistributionWeightedRegressor
    if whole.classification:
        kind = DistributionWeightedClassifier
    sites = np.char.lstrip(np.asarray(train.domain, dtype=str), "<")  # "<1H OCEAN"
    model = kind(random_state=0).fit(train.X, train.y, sample_domain=sites)
    anymix.save(model, tmp_path / "m")
    saved = read_model(tmp_path / "m")
    ask = "predict_proba" if whole.classification else "predict"
    due = getattr(model, ask)(test.X)
    np.testing.assert_allclose(getattr(saved.model, ask)(test.X), due, atol=1e-6 * np.ptp(due))
    np.testing.assert_array_equal(saved.model.novelty(test.X), model.novelty(test.X))
    content = export_onnx(
        saved.received,
        saved.model.combination_,
        saved.model.router_,
        generalist=saved.generalist,
    )
    session = onnxruntime.InferenceSession(content)
    rows = test.X if model.columns_ is None else model.columns_.encode(test.X)
    out = "probabilities" if whole.classification else "prediction"
    found = session.run([out], {"X": np.asarray(rows, dtype=float)})[0]
    np.testing.assert_allclose(found, due, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_float32_is_as_near_as_the_page_says(name, tmp_path):
    if not (DATA / name.split(",")[0]).is_dir():
        pytest.skip("the data is not here")
    at_draws, at_rows = measured(DATA, name, tmp_path)
    assert at_draws.largest < 1e-5
    assert at_rows.largest < (5e-4 if name == "housing" else 1e-5)
    assert at_rows.other_labels == 0
