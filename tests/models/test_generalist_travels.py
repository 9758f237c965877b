"""A model with a generalist: save, load, verify, export, report."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.models import export_model, read_certificate, summarise_folder
from anymix.report import render


def world(classification, n=90, seed=0):
    """Three sources of few rows and one law, which all rows together tell best."""
    rng = np.random.default_rng(seed)
    d = np.repeat(["east", "north", "west"], n)
    X = rng.normal(size=(3 * n, 4)) + np.repeat(np.eye(3, 4), n, axis=0)
    y = X @ [1.0, -1.0, 0.5, 2.0] + rng.normal(size=3 * n)
    return X, np.where(y > 0, "yes", "no") if classification else y, d


def fitted(classification, **more):
    kind = DistributionWeightedClassifier if classification else DistributionWeightedRegressor
    X, y, d = world(classification)
    return kind(random_state=0, **{"density": GaussianKDE(), **more}).fit(X, y, sample_domain=d), X


def predicted(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.fixture(scope="module", params=[True, False], ids=["labels", "numbers"])
def saved(request, tmp_path_factory):
    model, X = fitted(request.param)
    folder = tmp_path_factory.mktemp("generalist") / "model"
    anymix.save(model, folder)
    return model, X, folder


def test_it_is_consulted_and_is_no_source(saved):
    model, X, _ = saved
    assert model.generalist_.name == "generalist"
    assert model.combination_.needed()[3]
    assert len(model.sources_) == len(model.source_names_) == model.z_.size == 3
    assert model.source_weights(X).shape == (len(X), 3)
    assert "generalist" not in [str(name) for name in model.source_names_]


def test_a_loaded_model_predicts_the_same(saved):
    model, X, folder = saved
    again = anymix.load(folder, verify=True)
    assert np.allclose(predicted(again, X), predicted(model, X), atol=1e-6)
    assert again.certificate_.sentence == model.certificate_.sentence
    assert np.allclose(again.tables_.generalist, model.tables_.generalist)
    assert read_certificate(folder).sentence == model.certificate_.sentence
    anymix.save(again, folder.with_name("again"))
    third = anymix.load(folder.with_name("again"), in_process=True)
    assert np.allclose(predicted(third, X), predicted(model, X), atol=1e-6)


def test_an_exported_graph_predicts_the_same(saved):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, X, folder = saved
    session = onnxruntime.InferenceSession(export_model(folder).content)
    name = "probabilities" if hasattr(model, "classes_") else "prediction"
    (found,) = session.run([name], {"X": X})
    assert np.allclose(found, predicted(anymix.load(folder), X), atol=1e-6)


def test_a_report_shows_who_consults_it(saved, tmp_path):
    model, _, folder = saved
    record = summarise_folder(folder)
    assert np.allclose(record["consulting"]["generalist"], model.combination_.pool_weights[:, 3])
    render(record, tmp_path / "page.html")
    assert "The generalist is a model of the rows of all sources" in (
        tmp_path / "page.html"
    ).read_text("utf-8")


def test_a_folder_without_its_generalist_is_refused(saved):
    import json

    _, _, folder = saved
    path = folder / "model.json"
    whole = path.read_text()
    record = json.loads(whole)
    del record["generalist"]
    path.write_text(json.dumps(record))
    with pytest.raises(anymix.exceptions.AuditError, match="generalist"):
        anymix.load(folder)
    path.write_text(whole)


def test_models_of_folds_have_their_own(tmp_path):
    model, X = fitted(False, refit=False, cv=2)
    assert all(member.generalist_ is not None for member in model.members_)
    anymix.save(model, tmp_path / "model")
    assert np.allclose(anymix.load(tmp_path / "model").predict(X), model.predict(X), atol=1e-6)


def test_tables_and_a_given_generalist_teach_the_same():
    model, X = fitted(False)
    given = {"generalist": model.generalist_}
    again = DistributionWeightedRegressor.from_sources(model.sources_, **given)
    again.fit_tables(model.tables_)
    assert np.allclose(again.predict(X), model.predict(X))
    with pytest.raises(anymix.exceptions.InputError, match="generalist"):
        again.fit_tables(replace(model.tables_, generalist=None))


def mixed_frame(n=60):
    pandas = pytest.importorskip("pandas")
    X, y, d = world(True, n)
    kind = np.array(["new", "old", "used"])[np.arange(3 * n) % 3]
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=kind)
    frame.loc[::7, "b"] = np.nan
    return frame, y, d


@pytest.mark.parametrize("estimator", ["auto", None])
@pytest.mark.parametrize("classification", [True, False])
def test_a_generalist_by_sums_travels(classification, estimator, tmp_path):
    frame, y, d = mixed_frame()
    kind = DistributionWeightedClassifier if classification else DistributionWeightedRegressor
    y = y if classification else np.where(y == "yes", 1.0, 0.0) + frame["a"].to_numpy()
    trees = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
    learner = estimator or trees(max_iter=10, early_stopping=False)
    model = kind(learner, share_rows=False, random_state=0)
    X = frame if estimator else frame[["a", "b", "c"]]
    model.fit(X, y, sample_domain=d)
    record = model.result_.evidence.generalist
    assert record.learned_from == "sums over sites"
    anymix.save(model, tmp_path / "model")
    again = anymix.load(tmp_path / "model", verify=True)
    assert np.allclose(predicted(again, X), predicted(model, X), atol=1e-5)
    assert again.result_.evidence.generalist == record
