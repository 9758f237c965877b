"""Tables of a stranger: numbers of the types that we write, few enough, and as the record says."""

import numpy as np
import pytest

from anymix.core import log_responsibilities
from anymix.exceptions import AuditError, InputError
from anymix.models import tables_file
from anymix.models.tables_file import read_tables, tables_to_arrays

CLASSES = np.array(["no", "yes"])
MASSES = np.random.default_rng(0).normal(size=(2, 6))
DOMAIN = np.arange(6) % 2


def whole(classification=True, **changes):
    shape = (2, 6, 2) if classification else (2, 6)
    targets = np.arange(6) % 2 if classification else np.arange(6.0)
    arrays = {
        "log_masses": MASSES,
        "predictions": np.full(shape, 0.5),
        "targets": targets,
        "sample_domain": DOMAIN,
    }
    return arrays | changes


def read(tmp_path, arrays, classes=CLASSES, has_densities=True, at_label=False, crossed=None):
    path, flags = tmp_path / "tables.safetensors", {"has_densities": has_densities}
    flags["at_label"] = at_label
    return read_tables(path, dict(arrays), crossed, classes=classes, **flags)[crossed is not None]


@pytest.mark.parametrize("has_densities", [True, False])
def test_whether_there_are_densities_shows_in_the_numbers(has_densities, tmp_path):
    masses = MASSES if has_densities else log_responsibilities(MASSES)
    arrays = whole(log_masses=masses)
    assert read(tmp_path, arrays, has_densities=has_densities).has_densities == has_densities
    with pytest.raises(AuditError, match="says has_densities="):
        read(tmp_path, arrays, has_densities=not has_densities)


def test_whether_the_label_alone_is_known_shows_in_the_numbers(tmp_path):
    at_label = whole(predictions=np.full((2, 6, 1), 0.5), targets=np.zeros(6, dtype=int))
    assert read(tmp_path, at_label, at_label=True).at_label
    errors = whole(False, targets=np.zeros(6))
    assert read(tmp_path, errors, None, at_label=True).at_label
    told = [(at_label, CLASSES, False), (whole(), CLASSES, True), (whole(False), None, True)]
    for arrays, classes, flag in told:
        with pytest.raises(AuditError, match="says at_label="):
            read(tmp_path, arrays, classes, at_label=flag)


@pytest.mark.parametrize("name", ["log_masses", "predictions", "targets", "sample_domain"])
def test_numbers_that_would_grow_are_refused(name, tmp_path):
    arrays = whole()
    with pytest.raises(AuditError, match=f"has {name} of the type uint8"):
        read(tmp_path, arrays | {name: np.ones(arrays[name].shape, dtype=np.uint8)})


def test_tables_that_take_too_much_memory_are_neither_read_nor_written(tmp_path, monkeypatch):
    tables = read(tmp_path, whole())
    tables_to_arrays(tables)
    monkeypatch.setattr(tables_file, "MOST_ANSWERS", 11)
    with pytest.raises(AuditError, match="give fewer rows"):
        read(tmp_path, whole())
    with pytest.raises(InputError, match="give fewer rows"):
        tables_to_arrays(tables)


def test_large_honest_tables_are_within_the_budget():
    assert tables_file.rows_that_fit(10, 10) >= 100_000


def held_out(**changes):
    return whole(fold=np.arange(6) % 3, held_out=np.full((6, 2), 0.5)) | changes


def test_what_the_model_predicts_at_held_out_rows_is_read_as_stored(tmp_path):
    found = read(tmp_path, held_out(), crossed=True)
    assert found.crossed
    assert found.fold.tolist() == [0, 1, 2, 0, 1, 2]
    np.testing.assert_array_equal(found.predictions, np.full((6, 2), 0.5))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fold": np.zeros(5, dtype=int)}, "has fold of the wrong length"),
        ({"fold": np.zeros(6)}, "has fold of the type float64"),
        ({"held_out": np.full((6, 3), 0.5)}, "has held_out of the wrong length"),
        ({"held_out": np.full((6, 2), np.nan)}, "not finite"),
        ({"held_out": np.full((6, 2), 2.0)}, "not probabilities"),
    ],
)
def test_held_out_predictions_of_another_form_are_refused(changes, words, tmp_path):
    with pytest.raises(AuditError, match=words):
        read(tmp_path, held_out(**changes), crossed=True)


def test_held_out_predictions_are_there_where_the_record_says_so(tmp_path):
    for arrays, crossed in ((whole(), True), (held_out(), None)):
        with pytest.raises(AuditError, match="which says crossed"):
            read(tmp_path, arrays, crossed=crossed)
