"""A model folder keeps whose rows were set aside, and reads those that say nothing of it."""

import json

import numpy as np
import pytest

pytest.importorskip("skl2onnx")

from anymix import DistributionWeightedRegressor, load, save
from anymix.exceptions import AuditError


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    domain = np.repeat(["north", "south", "west"], 40)
    X = rng.normal(size=(120, 2)) + np.repeat([[0.0], [3.0], [6.0]], 40, axis=0)
    y = X[:, 0] * np.repeat([1.0, 2.0, 3.0], 40) + rng.normal(size=120)
    return DistributionWeightedRegressor(random_state=0, set_aside=["west"]).fit(
        X, y, sample_domain=domain
    )


def settings(folder):
    return json.loads((folder / "model.json").read_text())["settings"]


def test_the_sites_set_aside_come_back(model, tmp_path):
    save(model, tmp_path / "m")
    assert settings(tmp_path / "m")["set_aside"] == ["west"]
    again = load(tmp_path / "m")
    assert again.set_aside == ["west"]
    assert again.set_aside_ == ("west",)
    assert again.describe().endswith(f"recomputes them.\n{model.describe()}")
    assert load(tmp_path / "m", verify=True).describe() == model.describe()
    np.testing.assert_array_equal(again.fit_tables(again.tables_).z_, model.z_)


def test_a_model_without_them_says_nothing_of_it(model, tmp_path):
    whole = model.__class__(random_state=0, sources=model.sources_).fit_tables(model.tables_)
    save(whole, tmp_path / "m")
    assert "set_aside" not in settings(tmp_path / "m")
    assert load(tmp_path / "m").set_aside_ == ()


@pytest.mark.parametrize(
    "told", [["east"], ["west", "west"], ["north", "west"], "worst", 7, [["west"]], {"west": 1}]
)
def test_a_record_that_sets_others_aside_is_refused(model, tmp_path, told):
    save(model, tmp_path / "m")
    record = json.loads((tmp_path / "m/model.json").read_text())
    record["settings"]["set_aside"] = told
    (tmp_path / "m/model.json").write_text(json.dumps(record))
    with pytest.raises(AuditError, match="that is set aside is not one of the sources"):
        load(tmp_path / "m")
