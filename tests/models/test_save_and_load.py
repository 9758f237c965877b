"""A model that was saved and read again answers every question as the fitted one did."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.core import Loss
from anymix.core.losses import Pinball
from anymix.densities import (
    ContrastiveDensity,
    DomainClassifier,
    GaussianKDE,
    GaussianMixtureDensity,
    KnownDensity,
)
from anymix.estimators import summarise
from anymix.exchange import describe_graph
from anymix.models import export_model, read_record
from anymix.monitor import Monitor
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)
# Of a saved model that consults trees, as a generalist may be: their leaves are in float32.
PRECISION = 1e-6
X, Y, D = classification(30)
XR, YR, DR = regression(30)


def fitted(model, numbers=False):
    return model.fit(*((XR, YR, DR) if numbers else (X, Y, D)))


def through_a_folder(model, tmp_path):
    anymix.save(model, tmp_path / "m")
    return anymix.load(tmp_path / "m")


CASES = {
    "labels": (DistributionWeightedClassifier(density=KDE, cv=3, random_state=0), False),
    "numbers": (DistributionWeightedRegressor(density=KDE, cv=3, random_state=0), True),
    "normalised": (
        DistributionWeightedClassifier(density=KDE, rule="normalised", cv=3, random_state=0),
        False,
    ),
    "router": (DistributionWeightedClassifier(density=DomainClassifier(), cv=3), False),
    "mixtures": (
        DistributionWeightedClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()),
            GaussianMixtureDensity(2, random_state=0),
            loss="brier",
            calibrate=False,
            cv=3,
            random_state=0,
        ),
        False,
    ),
    "quantiles": (
        DistributionWeightedRegressor(
            Ridge(0.1), KDE, loss=Pinball(0.3), objective="robust", cv=3, random_state=0
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_question_has_the_same_answer(name, tmp_path):
    kind, numbers = CASES[name]
    model = fitted(kind, numbers)
    again = through_a_folder(model, tmp_path)
    rows = XR if numbers else X
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.source_weights(rows), model.source_weights(rows))
    np.testing.assert_array_equal(
        again.log_responsibilities(rows), model.log_responsibilities(rows)
    )
    method = "predict" if numbers else "predict_proba"
    found, due = (getattr(one, method)(rows) for one in (again, model))
    precision = PRECISION if model.estimator == "auto" else 1e-9
    np.testing.assert_allclose(found, due, rtol=precision, atol=1e-13)
    np.testing.assert_array_equal(again.z_, model.z_)
    for record in ("certificate_", "solution_", "cross_loss_", "comparison_"):
        assert getattr(again, record).to_json() == getattr(model, record).to_json(), record
    assert summarise(again) == summarise(model)
    assert again.calibration_report_ == model.calibration_report_
    settings = ("loss", "objective", "eta", "shrinkage", "calibrate", "cv", "confidence")
    assert all(getattr(again, one) == getattr(model, one) for one in settings)
    assert again.n_features_in_ == model.n_features_in_


def test_novelty_monitoring_and_certificates_on_new_rows_come_back(tmp_path):
    model = fitted(CASES["labels"][0])
    again = through_a_folder(model, tmp_path)
    fresh, y, d = classification(25, seed=3)
    np.testing.assert_array_equal(again.novelty(fresh), model.novelty(fresh))
    found, due = (Monitor.from_tables(one).estimate(fresh).to_json() for one in (again, model))
    assert found == due
    found, due = (one.certify(fresh, y, d) for one in (again, model))
    np.testing.assert_allclose(found.source_losses, due.source_losses, rtol=PRECISION)
    assert found.n_candidates == 1
    old, labels, domain = classification()
    assert again.certify(old[::2], labels[::2], domain[::2]).seen == ("a", "b", "c")


def test_a_loaded_model_can_be_saved_and_a_copy_is_the_same(tmp_path):
    again = through_a_folder(fitted(CASES["numbers"][0], numbers=True), tmp_path)
    anymix.save(again, tmp_path / "second")
    third = anymix.load(tmp_path / "second")
    np.testing.assert_array_equal(third.predict(XR), again.predict(XR))


def test_one_source_is_a_model_too(tmp_path):
    with pytest.warns(UserWarning, match="the one source"):
        model = DistributionWeightedRegressor().fit(XR, YR, np.zeros(len(YR)))
    again = through_a_folder(model, tmp_path)
    np.testing.assert_allclose(again.predict(XR), model.predict(XR), rtol=1e-12)
    with pytest.raises(AttributeError, match="fitted with one source"):
        _ = again.certificate_


def test_trees_are_kept_to_single_precision(tmp_path):
    """A tree answers in float32 there: no leaf is another one, its number is rounded."""
    forest = RandomForestClassifier(10, random_state=0)
    model = fitted(DistributionWeightedClassifier(forest, KDE, cv=2, random_state=0))
    again = through_a_folder(model, tmp_path)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_names_of_features_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = DistributionWeightedClassifier(density=KDE, cv=2, random_state=0)
    again = through_a_folder(model.fit(frame, Y, sample_domain=D), tmp_path)
    assert list(again.feature_names_in_) == ["age", "dose"]
    found, due = (one.predict_proba(frame) for one in (again, model))
    np.testing.assert_allclose(found, due, rtol=PRECISION)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["dose", "age"]])


class MyLoss(Loss):
    """(h − y)², written by a user."""

    def value(self, h, y):
        return (h - y) ** 2

    def slope(self, h, y):
        return 2 * (h - y)

    def curvature(self, h, y):
        return np.full_like(h, 2.0)

    def curvature_ratio(self, predictions, targets):
        return 2 * ((predictions - targets) ** 2).max(axis=0)


class Stubborn(DistributionWeightedRegressor):
    """Answers otherwise than its class, which no folder can tell."""


def given(predictor, density):
    sources = [Source("north", predictor, density), Source("south", Ridge().fit(XR, YR), KDE)]
    KDE.fit(XR)
    return DistributionWeightedRegressor.from_sources(sources).fit(XR, YR, DR)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: given(lambda X: X[:, 0], KDE), "a predictor of type function"),
        (
            lambda: given(Ridge().fit(XR, YR), lambda X: -(X[:, 0] ** 2)),
            "a density of type function",
        ),
        (
            lambda: given(Ridge().fit(XR, YR), KnownDensity(lambda X: -(X[:, 0] ** 2))),
            "a density of type KnownDensity",
        ),
        (
            lambda: DistributionWeightedRegressor(density=KDE, loss=MyLoss(), cv=2).fit(XR, YR, DR),
            "MyLoss is your own Python class",
        ),
        (lambda: DistributionWeightedRegressor(), "not fitted"),
        (lambda: Ridge().fit(XR, YR), "only a DistributionWeighted.*got Ridge"),
        (lambda: make_pipeline(StandardScaler(), Ridge()).fit(XR, YR), "save its last step"),
        (lambda: Stubborn(density=KDE, cv=2).fit(XR, YR, DR), "got Stubborn"),
        (lambda: DistributionWeightedClassifier(cv=2).fit(X, Y[0] == Y, D), "classes of the type"),
        (
            lambda: DistributionWeightedRegressor(density=KDE, cv=2).fit(
                XR, YR, np.where(DR == "north", np.datetime64("2026-01-01"), np.datetime64("2027"))
            ),
            "cannot be written as JSON",
        ),
    ],
)
def test_what_cannot_be_in_a_folder_is_refused_before_anything_is_written(model, words, tmp_path):
    with pytest.raises((ValueError, TypeError), match=words):
        anymix.save(model(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_model_is_not_replaced(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not a model folder"):
        anymix.save(fitted(CASES["router"][0]), tmp_path / "m")
    assert (tmp_path / "m" / "letter.txt").read_text() == "mine"


def test_frames_are_taken_as_the_fitted_model_takes_them(tmp_path):
    model = fitted(CASES["labels"][0])
    again = through_a_folder(model, tmp_path)
    frame = pd.DataFrame(X, columns=["age", "dose"])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        found = again.predict_proba(frame)
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=PRECISION)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("saved") / "m"
    anymix.save(fitted(CASES["labels"][0]), place)
    return place


def first_part(record):
    return record["combination"]["parts"][0]


def changed(folder, tmp_path, change):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    record = json.loads((copy / "model.json").read_text())
    change(record)
    (copy / "model.json").write_text(json.dumps(record))
    return copy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: first_part(r).update(eta=-0.5), "eta must be finite and not negative"),
        (lambda r: first_part(r).update(z=[0.9, 0.9, 0.9]), "on the simplex"),
        (lambda r: first_part(r)["calibration"].update(sharpness=0), "not positive"),
        (lambda r: first_part(r).update(rule="joint"), "rule must be"),
        (lambda r: first_part(r).pop("z"), "lacks 'z'"),
        (lambda r: r.update(loss={"name": "accuracy"}), "unknown loss 'accuracy'"),
        (lambda r: r.update(names=["a"]), "not as many sources as"),
        (lambda r: r.update(schema=5), "has schema 5; this version reads 1 to 4"),
        (lambda r: r.update(kind="recipe"), "is not the record of a model"),
        (lambda r: r["solution"].update(z="high"), "not sound|wrong kind"),
        (lambda r: r["tables"].update(size=1), "bytes; the manifest says 1"),
        (lambda r: r.pop("settings"), "lacks 'settings'"),
        (lambda r: r["settings"].update(confidence={}), "is not a number, which is expected"),
        (lambda r: r["settings"].update(skip_below=3.0), "setting skip_below"),
        (lambda r: r["settings"].update(skip_below=0.999), "setting skip_below"),
        (lambda r: r["settings"].update(objective="best"), "setting objective"),
        (lambda r: r.update(classes=["a", "a", "b"]), "list of different labels"),
        (lambda r: r.update(classes="abc"), "list of different labels"),
        (lambda r: r["certificate"].update(z=0.3), "where a list is expected"),
        (lambda r: r["certificate"].update(own_losses=[0.1]), "the certificate"),
        (lambda r: r["cross_loss"].update(mean=[[0.1, 0.2]]), "the table of cross losses"),
        (
            lambda r: r["certificate"].update(robust_loss=[1.0]),
            "is not a number, which is expected",
        ),
        (lambda r: first_part(r).update(eta=10**400), "more than 30 digits"),
        (lambda r: r["tables"].update(file="tables-000000000000.safetensors"), "lacks a part"),
        (lambda r: r["names"].reverse(), "name the sources as their manifests do"),
    ],
)
def test_a_record_that_was_changed_is_refused_in_a_sentence(folder, tmp_path, change, words):
    with pytest.raises(anymix.exchange.AuditError, match=words) as refused:
        anymix.load(changed(folder, tmp_path, change))
    assert str(tmp_path) in str(refused.value)
    assert refused.value.cause


def test_a_model_whose_answers_are_not_those_of_its_certificate_is_not_written(tmp_path):
    model = fitted(CASES["labels"][0])
    model.skip_below = 0.999
    with pytest.raises(ValueError, match=r"skip_below=0\.999 cannot be saved"):
        anymix.save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_forged_sentence_is_not_repeated(folder, tmp_path):
    forged = {"sentence": "It is never wrong."}
    copy = changed(folder, tmp_path, lambda r: r["certificate"].update(forged))
    assert "on every mixture of the 3 sources" in anymix.load(copy).certificate_.sentence


def test_the_record_is_plain_json_without_a_row(folder):
    record = read_record(folder)
    assert record["schema"] == 4
    assert record["names"] == ["a", "b", "c"]
    assert {part["file"] for part in (record["tables"],)} <= {p.name for p in folder.iterdir()}


def test_a_learner_that_takes_missing_values_keeps_them_when_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a b", "c"])
    y, site = X["c"] + rng.normal(size=120), np.resize(["x", "y"], 120)
    X.loc[::7, "a b"] = np.nan
    trees, density = HistGradientBoostingRegressor(max_iter=5), ContrastiveDensity(least_draws=500)
    known = {"generalist": None, "consult": False, "cv": 2, "random_state": 0}
    model = DistributionWeightedRegressor(trees, density, **known).fit(X, y, sample_domain=site)
    anymix.save(model, tmp_path / "m")
    loaded = anymix.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), atol=1e-6)
    (tmp_path / "m.onnx").write_bytes(export_model(tmp_path / "m").content)
    features = describe_graph(tmp_path / "m.onnx")["features"]
    assert [(one["name"], one["gaps"]) for one in features] == [("a b", True), ("c", True)]
    assert np.isnan(anymix.encode(X, features)[0, 0])
