"""Tables as the numbers that an exported graph takes."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest

import anymix
from anymix import DistributionWeightedClassifier
from anymix.exceptions import InputError
from anymix.models import export_model
from anymix.tables import CategoryWarning, encode

NAN = np.nan
FEATURES = [
    {"name": "age", "kind": "number", "categories": None, "gaps": True},
    {"name": "site", "kind": "category", "categories": ["1", "2"], "gaps": True},
]


@pytest.mark.parametrize("site", [[1, 2], [1.0, 2.0], ["1", "2"], ["1.0", "2.00"]])
def test_a_number_with_a_point_is_never_a_missing_category(site):
    table = pd.DataFrame({"more": 0, "site": pd.Series(site, dtype=object), "age": [41, NAN]})
    np.testing.assert_array_equal(encode(table, FEATURES), [[41, 0], [NAN, 1]])
    np.testing.assert_array_equal(encode(table, json.dumps(FEATURES)), [[41, 0], [NAN, 1]])


def test_unknown_and_missing_values():
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "site": ["1", "9", None]})
    due = [[1, 0], [2, NAN], [3, NAN]]
    with pytest.warns(CategoryWarning, match="column 'site' has 1 cell with a category .* '9'"):
        np.testing.assert_array_equal(encode(table, FEATURES), due)
    np.testing.assert_array_equal(encode(table, FEATURES, unknown="missing"), due)
    with pytest.raises(InputError, match="'9'; correct it"):
        encode(table, FEATURES, unknown="error")
    complete = [each | {"gaps": False} for each in FEATURES]
    with pytest.raises(InputError, match="row 2: column 'site' has no value"):
        encode(table, complete, unknown="missing")
    with pytest.raises(InputError, match="has no column 'age'"):
        encode(table[["site"]], FEATURES)
    with pytest.raises(InputError, match="must be a frame"):
        encode(np.zeros((1, 2)), FEATURES)
    with pytest.raises(ValueError, match="unknown='drop' is not known"):
        encode(table, FEATURES, unknown="drop")


def test_an_exported_graph_answers_as_the_model_does(tmp_path):
    rng = np.random.default_rng(0)
    domain = np.repeat(["north", "south"], 150)
    table = pd.DataFrame({"age": rng.normal(size=300), "ward": rng.choice(["day", "night"], 300)})
    table.loc[rng.random(300) < 0.1, "ward"] = None
    y = np.where(table.age + (table.ward == "day") + rng.normal(size=300) > 0.5, "ill", "well")
    model = DistributionWeightedClassifier(random_state=0).fit(table, y, sample_domain=domain)
    anymix.save(model, tmp_path / "model")
    session = onnxruntime.InferenceSession(export_model(tmp_path / "model").content)
    features = session.get_modelmeta().custom_metadata_map["anymix.features"]
    kinds = {"tensor(double)": np.float64, "tensor(float)": np.float32}
    X = anymix.encode(table, features).astype(kinds[session.get_inputs()[0].type])
    _, probabilities, _ = session.run(None, {"X": X})
    np.testing.assert_allclose(probabilities, model.predict_proba(table), atol=1e-5)
