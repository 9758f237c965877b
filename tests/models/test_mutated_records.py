"""Any entry of a record may be anything: an answer that is as it was, or one sentence."""

import copy
import json
import random
import shutil

import numpy as np
import pytest

import anymix
from anymix import DistributionWeightedClassifier
from anymix.exchange import AuditError
from anymix.models import add_record, read_model, summarise_folder
from anymix.models import model_folder as reading
from tests.models.mixed_rows import clinics
from tests.models.test_commands import LABELS, NEW, labels
from tests.models.test_format_1 import FOLDERS
from tests.models.test_new_parts import consulting, wide

VALUES = [
    *(None, True, 0, -1, 2**40, 1e308, 1e-308, 0.5, -0.5, "", "x", "nan", "inf", "../x", "a" * 500),
    *([], {}, [[]], [None], {"a": 1}, [1, 2], [0.5, 0.5], ["a", "b"], [[1, 2], [3]]),
]


def places(value, at=()):
    if at:
        yield at
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    for name, item in inner.items() if isinstance(inner, dict) else ():
        yield from places(item, (*at, name))


def mutated(record, rng):
    """Change, remove or repeat one entry; those of the long trace are as likely as one other."""
    record = copy.deepcopy(record)
    kinds = {}
    for at in places(record):
        kinds.setdefault(tuple(name for name in at if isinstance(name, str)), []).append(at)
    at = rng.choice(kinds[rng.choice(sorted(kinds))])
    parent = record
    for name in at[:-1]:
        parent = parent[name]
    if rng.random() < 0.1:
        del parent[at[-1]]
    elif rng.random() < 0.1 and isinstance(parent, dict):
        parent["unknown"] = 1
    else:
        parent[at[-1]] = rng.choice(VALUES)
    return record, at


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("mutated")
    anymix.save(labels(), place / "labels")
    shutil.copytree(FOLDERS / "regression" / "model", place / "first format")
    frame, _, label, clinic = clinics(60)
    tables = DistributionWeightedClassifier(cv=2, random_state=0).fit(frame, label, clinic)
    anymix.save(tables, place / "tables")
    anymix.save(consulting("labels")[0], place / "heard")
    return place


def remembered(call):
    known = {}

    def once(folders, **options):
        key = str(folders)
        if key not in known:
            known[key] = call(folders, **options)
        return known[key]

    return once


ROWS = {"tables": clinics(10, 1)[0], "heard": wide(10)[0]}


@pytest.mark.parametrize("kind", ["labels", "first format", "tables", "heard"])
def test_a_mutated_record_is_refused_or_harmless(kind, written, monkeypatch):
    monkeypatch.setattr(reading, "read_sources", remembered(reading.read_sources))
    place, rng, refused = written / kind, random.Random(0), 0
    record = json.loads((place / "model.json").read_text())
    model, rows = read_model(place).model, ROWS.get(kind, LABELS[0][:20])
    weights, certificate = model.source_weights(rows), model.certificate_.to_dict()
    read_model(place, verify=True)
    for _ in range(60):
        changed, at = mutated(record, rng)
        (place / "model.json").write_text(json.dumps(changed))
        try:
            found = read_model(place, verify=True).model
            summarise_folder(place)
        except AuditError:
            refused += 1
            continue
        np.testing.assert_allclose(found.source_weights(rows), weights, rtol=1e-4, err_msg=str(at))
        assert found.certificate_ is None or found.certificate_.to_dict() == certificate, at
    (place / "model.json").write_text(json.dumps(record))
    assert 35 < refused <= 60


def test_a_mutated_record_of_new_rows_is_refused_or_shown_as_recorded(written, run, tmp_path):
    place, rng, refused = written / "labels", random.Random(1), 0
    X, _, d = NEW["labels"]
    anymix.save(labels(), place)
    model, table = anymix.load(place), tmp_path / "t.csv"
    names = ",".join(f"x{i}" for i in range(X.shape[1]))
    np.savetxt(table, X, delimiter=",", header=names, comments="")
    assert run("monitor", place, table, "--save").status in (0, 1)
    held = model.certify(X, NEW["labels"][1], d)
    add_record(place, "certificate", held)
    shown = summarise_folder(place)
    assert shown["certificate"]["sentence"] == held.sentence
    assert not any(bound["checked"] for bound in shown["certificate"]["bounds"])
    path = place / "certificate.json"
    record = json.loads(path.read_text())
    said = r"below what was measured|is in the future|do not go together"
    for lie in ({"loss_upper": -1e-3}, {"regret_upper": -1.0}, {"date": "9999-01-01"}):
        path.write_text(json.dumps(record | lie))
        with pytest.raises(AuditError, match=said):
            summarise_folder(place)
    path.write_text(json.dumps(record))
    for part in ("certificate", "traffic"):
        path = place / f"{part}.json"
        record = json.loads(path.read_text())
        for _ in range(20):
            changed, _ = mutated(record, rng)
            path.write_text(json.dumps(changed))
            try:
                found = summarise_folder(place)
            except AuditError:
                refused += 1
                continue
            assert part in found["recorded"]
        path.write_text(json.dumps(record))
    assert refused > 20
    record = json.loads((place / "model.json").read_text())
    (place / "model.json").write_text(json.dumps(record))
    with pytest.raises(AuditError, match="is of another model"):
        summarise_folder(place)
