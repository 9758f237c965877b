"""A model that deploys the models of its folds (refit=False) travels in one folder."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.cli import main
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.exceptions import AuditError, InputError
from anymix.models import read_certificate, read_model, summarise_folder
from tests.estimators.several_sources import classification, regression
from tests.models.mixed_rows import clinics, strangers

KDE = GaussianKDE(bandwidth=0.8)
EVIDENCE = ("certificate_", "cross_loss_", "comparison_")


def fit_members(kind, rows, *parts):
    return kind(*parts, cv=3, random_state=0, refit=False).fit(*rows)


CASES = {
    "numbers": (DistributionWeightedRegressor, regression(30), Ridge(), KDE),
    "labels": (DistributionWeightedClassifier, classification(30), LogisticRegression(), KDE),
    "router": (
        DistributionWeightedClassifier,
        classification(30),
        LogisticRegression(),
        DomainClassifier(),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "m"
    kind, rows, *parts = CASES[request.param]
    model = fit_members(kind, rows, *parts)
    anymix.save(model, folder)
    return model, rows[0], folder


@pytest.mark.parametrize("verify", [False, True])
def test_a_loaded_model_predicts_as_the_fitted_one(saved, verify):
    model, X, folder = saved
    again = anymix.load(folder, verify=verify)
    predict = "predict_proba" if hasattr(model, "classes_") else "predict"
    np.testing.assert_allclose(
        getattr(again, predict)(X), getattr(model, predict)(X), rtol=1e-11, atol=1e-13
    )
    np.testing.assert_array_equal(again.source_weights(X), model.source_weights(X))
    np.testing.assert_array_equal(again.z_, model.z_)
    for name in EVIDENCE:
        assert getattr(again, name).to_json() == getattr(model, name).to_json(), name
    for one, other in zip(again.members_, model.members_, strict=True):
        assert one.certificate_.to_json() == other.certificate_.to_json()
        assert one.result_.evidence.verified == verify
    assert again.result_.evidence.verified == verify
    assert again.refit is False
    if hasattr(model, "classes_"):
        # A number at the very edge of a set may be rounded to the other side.
        assert (again.predict_set(X) != model.predict_set(X)).sum() <= 1


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_table_with_words_and_gaps(tmp_path):
    X, _, y, d = clinics(60)
    model = DistributionWeightedClassifier(cv=2, refit=False, random_state=0).fit(X, y, d)
    anymix.save(model, tmp_path / "m")
    again = anymix.load(tmp_path / "m")
    new = strangers()
    np.testing.assert_allclose(again.predict_proba(new), model.predict_proba(new), atol=1e-6)
    X.head(9).to_csv(tmp_path / "rows.csv", index=False)
    arguments = [str(tmp_path / "m"), str(tmp_path / "rows.csv"), "--out", str(tmp_path / "p.csv")]
    assert main(["predict", *arguments, "--weights", "--quiet"]) == 0
    columns = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1, usecols=range(1, 4))
    np.testing.assert_allclose(columns, model.predict_proba(X.head(9)), atol=1e-6)


def test_what_needs_one_combination_is_refused_in_one_sentence(saved):
    model, _, folder = saved
    assert read_certificate(folder).sentence == model.certificate_.sentence
    with pytest.raises(InputError, match="refit=False"):
        read_model(folder)
    with pytest.raises(InputError, match="refit=False"):
        summarise_folder(folder)
    assert main(["export", str(folder), str(folder.parent / "m.onnx")]) == 3


def test_another_model_replaces_it_and_leaves_nothing(saved, tmp_path):
    model, _, folder = saved
    names = {path.name for path in folder.rglob("*")}
    anymix.save(model.members_[0], tmp_path / "m")
    alone = {path.name for path in (tmp_path / "m").rglob("*")}
    assert alone < names
    anymix.save(model, tmp_path / "m")
    assert {path.name for path in (tmp_path / "m").rglob("*")} == names
    anymix.save(model.members_[0], tmp_path / "m")
    assert {path.name for path in (tmp_path / "m").rglob("*")} == alone


def combination_of_first(record):
    record["combination"] = record["members"][0]["combination"]


FORGED = {
    "no members": (lambda r: r.update(members=[]), "fewer than two members"),
    "one member": (lambda r: r.update(members=r["members"][:1]), "fewer than two members"),
    "nested": (
        lambda r: r["members"][0].update(members=[]),
        "not the record of one model",
    ),
    "another task": (lambda r: r["members"][0].update(task="x"), "same task"),
    "another name": (lambda r: r["members"][0].update(names=["x", "y", "z"]), "same task"),
    "a combination": (combination_of_first, "only its members have the entry 'combination'"),
    "no certificate": (lambda r: r.update(certificate=None), "not a Certificate, which"),
    "no tables": (lambda r: r.update(tables=None), "no tables"),
    "swapped": (
        lambda r: r.update(members=[r["members"][0], *r["members"][:2]]),
        "another z or eta",
    ),
    "outside": (
        lambda r: r["members"][0]["sources"][0].update(folder="../x"),
        "outside its folder",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_record_that_is_not_sound_is_refused(saved, name):
    _, _, folder = saved
    change, words = FORGED[name]
    honest = (folder / "model.json").read_text()
    record = json.loads(honest)
    change(record)
    try:
        (folder / "model.json").write_text(json.dumps(record))
        with pytest.raises(AuditError, match=words):
            anymix.load(folder)
    finally:
        (folder / "model.json").write_text(honest)


def test_verify_finds_a_forged_certificate(saved):
    _, _, folder = saved
    honest = (folder / "model.json").read_text()
    record = json.loads(honest)
    table = record["cross_loss"]
    table["mean"][0][1] = table["lower"][0][1]
    try:
        (folder / "model.json").write_text(json.dumps(record))
        anymix.load(folder)
        with pytest.raises(AuditError, match="does not agree with the tables"):
            anymix.load(folder, verify=True)
    finally:
        (folder / "model.json").write_text(honest)
