"""A record of traffic with an expected loss is read back, an old one too, a false one not."""

import json

import numpy as np
import pytest

import anymix
from anymix.exceptions import AuditError
from anymix.models import add_record, summarise_folder
from anymix.monitor import Monitor
from tests.models.test_commands import NEW, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("traffic") / "m"
    model = labels()
    anymix.save(model, place)
    X, y, d = NEW["labels"]
    report = Monitor(model, X, d, y, n_bootstrap=100).estimate(X)
    add_record(place, "traffic", report)
    return place, report


def shown(folder, change):
    """The summary of the folder with a changed record, which is then put back."""
    path = folder / "traffic.json"
    text = path.read_text()
    record = json.loads(text)
    change(record)
    try:
        path.write_text(json.dumps(record))
        return summarise_folder(folder)["traffic"]
    finally:
        path.write_text(text)


def test_it_comes_back_with_its_sentence(folder):
    place, report = folder
    found = shown(place, lambda record: None)
    assert found == report.to_dict()
    assert found["expected_loss"]["sentence"].startswith("Without labels: the cross-entropy loss")


def test_a_sentence_is_never_read(folder):
    place, report = folder
    found = shown(place, lambda record: record["expected_loss"].update(sentence="All is well."))
    assert found["expected_loss"]["sentence"] == report.expected_loss.sentence


def test_an_old_record_is_read(folder):
    def older(record):
        del record["expected_loss"], record["estimate"]["joint_lower"]
        del record["estimate"]["joint_upper"]

    found = shown(folder[0], older)
    assert found["expected_loss"] is None
    assert found["estimate"]["joint_lower"] is None


LIES = {
    "value": (0.0, "not that of its mixture"),
    "highest": (99.0, "not that of its mixture"),
    "upper": (0.0, "does not hold its expected loss"),
    "lower": ("nan", "not finite"),
    "loss": ("squared", "another loss than the model's"),
    "n": (7, "not of its traffic"),
    "trusted": (False, "not of its traffic"),
    "confidence": (0.5, "not of its traffic"),
    "source_losses": ([1.0], "of other sources"),
}


@pytest.mark.parametrize("field", LIES)
def test_a_false_expected_loss_is_refused(folder, field):
    value, said = LIES[field]
    with pytest.raises(AuditError, match=said):
        shown(folder[0], lambda record: record["expected_loss"].update({field: value}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"joint_lower": None}, "have one end"),
        ({"joint_upper": [2.0, 2.0, 2.0]}, "not shares of the sources"),
    ],
)
def test_false_joint_intervals_are_refused(folder, change, said):
    p = np.size(folder[1].estimate.mixture)
    change = {name: value and value[:p] for name, value in change.items()}
    with pytest.raises(AuditError, match=said):
        shown(folder[0], lambda record: record["estimate"].update(change))
