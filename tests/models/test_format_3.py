"""Model folders of format 3 load, predict as they did, and are written in the present format."""

import json
from pathlib import Path

import numpy as np
import pytest

import anymix
from anymix.exceptions import AuditError
from anymix.models import read_record

FOLDERS = Path(__file__).parent / "format_3"


def predictions(model, rows):
    return model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_folders_of_format_3_predict_as_they_did(task, verify, tmp_path):
    due = json.loads((FOLDERS / task / "expected.json").read_text())
    model, rows = anymix.load(FOLDERS / task / "model", verify=verify), np.array(due["rows"])
    np.testing.assert_allclose(predictions(model, rows), due["predictions"], atol=1e-7)
    np.testing.assert_allclose(model.source_weights(rows), due["weights"], rtol=1e-9)
    assert model.certificate_.sentence == due["sentence"]
    anymix.save(model, tmp_path / "m")
    assert read_record(tmp_path / "m")["schema"] == 4
    again = anymix.load(tmp_path / "m", verify=True)
    np.testing.assert_array_equal(predictions(again, rows), predictions(model, rows))
    stated = "" if verify else "All numbers below are claimed by the folder, not verified; "
    assert model.describe().startswith(stated)
    assert model.describe().endswith(again.describe())
    assert len(model.describe()) == len(again.describe()) or not verify


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_evidence_is_taken_as_stated_unless_it_is_to_be_verified(task, tmp_path):
    anymix.save(anymix.load(FOLDERS / task / "model"), tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    record = json.loads(path.read_text())
    # Another gap than the tables give, as another tolerance of the solver may leave it.
    record["certificate"]["gamma"] += 1e-4
    path.write_text(json.dumps(record))
    assert anymix.load(tmp_path / "m").certificate_.gamma == record["certificate"]["gamma"]
    with pytest.raises(AuditError, match="the certificate does not agree with the tables"):
        anymix.load(tmp_path / "m", verify=True)
