"""A verdict on new rows is read back and shown, an older record has none, a false one fails."""

import json
from dataclasses import replace

import pytest

import anymix
from anymix.estimators import summarise, verdicts
from anymix.exceptions import AuditError
from anymix.models import add_record, summarise_folder
from anymix.report import render_html
from tests.models.test_commands import labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("verdict") / "m"
    model = labels()
    anymix.save(model, place)
    held = model.held_out_
    told = verdicts(model.tables_, held.predictions, model.loss)
    add_record(place, "comparison", replace(model.comparison_, verdicts=told))
    return place, model


def shown(folder, change):
    """The summary of the folder with a changed record, which is then put back."""
    path = folder / "comparison.json"
    text = path.read_text()
    record = json.loads(text)
    change(record)
    try:
        path.write_text(json.dumps(record))
        return summarise_folder(folder)
    finally:
        path.write_text(text)


def test_what_was_recorded_is_shown_with_its_day(folder):
    place, model = folder
    found = shown(place, lambda record: None)
    assert found["verdict"] == summarise(model)["verdict"]
    assert found["recorded"]["verdict"] == found["recorded"]["comparison"]
    page = render_html(found)
    assert "Verdict: " in page
    assert "new rows" in page


def test_an_older_record_leaves_the_verdict_to_the_tables(folder):
    place, model = folder
    found = shown(place, lambda record: record.pop("verdicts"))
    assert found["verdict"] == summarise(model)["verdict"]
    assert "verdict" not in found["recorded"]
    assert "each by what never saw it" in render_html(found)


def test_z_that_was_adapted_was_not_judged(folder):
    _, model = folder
    moved = replace(model.comparison_)  # what it was compared on stays
    adapted = anymix.load(folder[0])
    adapted.certificate_ = None
    assert summarise(adapted, moved)["verdict"] is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one.update(measure="charm"), "another measure"),
        (lambda one: one.update(confidence=1.5), "not between 0 and 1"),
        (lambda one: one.update(rows=[1.0]), "count rows of each source"),
        (lambda one: one["loss"].__setitem__(0, 9.0), "do not hold its numbers"),
        (lambda one: one["loss"].pop(), "not of the sources and all of them"),
        (lambda one: one["rivals"][0].update(name="a friend"), "ways that are not known"),
        (lambda one: one["rivals"][0].update(name="own"), "ways that are not known"),
        (lambda one: one["rivals"][1]["loss"].__setitem__(0, 9.0), "not those of its losses"),
        (lambda one: one["rivals"][1].pop("lower"), "lacks 'lower'|entry of the wrong kind"),
        (lambda one: one.update(fresh="yes"), "where a value of type bool"),
    ],
)
def test_a_false_one_is_refused(folder, change, said):
    with pytest.raises(AuditError, match=said):
        shown(folder[0], lambda record: change(record["verdicts"][0]))


def test_the_loss_is_that_of_the_table(folder):
    def moved(record):
        one = record["verdicts"][-1]
        for name in ("loss", "lower", "upper"):
            one[name] = [value + 0.5 for value in one[name]]
        for rival in one["rivals"]:
            rival["loss"] = [value + 0.5 for value in rival["loss"]]

    with pytest.raises(AuditError, match="not that of its table"):
        shown(folder[0], moved)
