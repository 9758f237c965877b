"""What is served says what it is, and answers as the model does: as one graph and by columns."""

import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.densities import DomainClassifier, GaussianKDE, GaussianMixtureDensity
from anymix.exceptions import InputError
from anymix.exchange import Float32Difference, by_columns, describe_graph, float32_difference
from anymix.models import add_record, export_model, read_model
from anymix.models.serving import Exported
from tests.models.mixed_rows import clinics, strangers


def three(seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal([c, -c], 1, (60, 2)) for c in (-2, 0, 2)]) + offset
    return X, np.sin(X[:, 0]) + X[:, 1] / 4, np.repeat(["north", "south", "west"], 60)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folders of a classifier, a regressor and a model of mixed tables."""
    place, (X, y, d) = tmp_path_factory.mktemp("serving"), three()
    labels = np.where(y > 0, "yes", "no")
    model = DistributionWeightedClassifier(density=GaussianKDE(0.5), random_state=0)
    anymix.save(model.fit(X, labels, sample_domain=d), place / "labels")
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = DistributionWeightedRegressor(density=GaussianMixtureDensity(1), random_state=0)
    anymix.save(model.fit(frame, y, sample_domain=d), place / "numbers")
    rows, _, words, clinic = clinics()
    model = DistributionWeightedClassifier(random_state=0)
    anymix.save(model.fit(rows, words, sample_domain=clinic), place / "mixed")
    return place


def answers(content, given):
    session = onnxruntime.InferenceSession(content)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


@pytest.mark.parametrize("which", ["labels", "numbers", "mixed"])
@pytest.mark.parametrize("float32", [False, True])
def test_a_graph_says_what_the_folder_says(folders, tmp_path, which, float32):
    found, saved = export_model(folders / which, float32=float32), read_model(folders / which)
    path = tmp_path / "robust.onnx"
    path.write_bytes(found.content)
    told, model = describe_graph(path), saved.model
    kind = "float32" if float32 else "float64"
    assert (told["version"], told["dtype"]) == (anymix.__version__, kind)
    assert told["sources"] == [str(name) for name in model.source_names_]
    assert told["task"] == ("regression" if which == "numbers" else "classification")
    assert told.get("classes") == (None if which == "numbers" else model.classes_.tolist())
    assert [one["name"] for one in told["features"]] == [
        feature.name for feature in saved.received[0].manifest.features
    ]
    assert (told["loss"], told["rule"]) == (model.loss, model.combination_.rule)
    assert (told["z"], told["eta"]) == (model.z_.tolist(), model.combination_.eta)
    certificate = model.certificate_
    assert told["certificate"] == certificate.sentence
    assert told["certificate.grounds"]["regret"] == certificate.regret_ground
    assert "certificate.date" not in told
    keys = {one.key for one in onnx.load(path).metadata_props}
    assert keys == {f"anymix.{key}" for key in told} | ({"columns"} if which == "mixed" else set())


def test_words_and_gaps_are_described(folders, tmp_path):
    (tmp_path / "m.onnx").write_bytes(export_model(folders / "mixed").content)
    ward = describe_graph(tmp_path / "m.onnx")["features"][2]
    assert ward == {
        "name": "ward",
        "kind": "category",
        "gaps": True,
        "categories": ["day", "icu", "night"],
    }


def test_a_certificate_of_new_rows_comes_with_its_day(folders, tmp_path):
    X, y, d = three()
    model = DistributionWeightedRegressor(density=GaussianKDE(0.5), random_state=0)
    anymix.save(model.fit(X, y, sample_domain=d), tmp_path / "m")
    fresh = three(seed=1)
    add_record(tmp_path / "m", "certificate", model.certify(*fresh[:2], sample_domain=fresh[2]))
    (tmp_path / "m.onnx").write_bytes(export_model(tmp_path / "m").content)
    told = describe_graph(tmp_path / "m.onnx")
    assert told["certificate"] != model.certificate_.sentence
    assert (
        told["certificate.date"]
        == json.loads((tmp_path / "m/certificate.json").read_text())["date"]
    )


def test_files_without_notes_are_not_described(tmp_path):
    (tmp_path / "a.onnx").write_bytes(onnx.ModelProto(ir_version=10).SerializeToString())
    with pytest.raises(InputError, match="has no notes of anymix"):
        describe_graph(tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes(b"\xff\xff no graph")
    with pytest.raises(InputError, match="cannot be read as an ONNX file"):
        describe_graph(tmp_path / "b.onnx")


@pytest.mark.parametrize("which", ["labels", "numbers"])
def test_float32_goes_in_and_out_and_answers_the_same(folders, which):
    found, X = export_model(folders / which, float32=True), three(seed=2)[0] * 2
    wide = answers(export_model(folders / which).content, {"X": X})
    narrow = answers(found.content, {"X": X.astype(np.float32)})
    for name, value in wide.items():
        if name == "label":
            assert (narrow[name] == value).all()
            continue
        assert narrow[name].dtype == np.float32
        np.testing.assert_allclose(narrow[name], value, atol=1e-5)
    assert found.difference.n_rows == 768
    assert 0 < found.difference.largest < 1e-5


def test_rows_far_from_all_have_an_answer_in_float32(folders):
    """Where densities underflow, logarithms hold."""
    content = export_model(folders / "labels", float32=True).content
    out = answers(content, {"X": np.array([[1e6, -1e6], [3e18, 0.0]], dtype=np.float32)})
    assert np.isfinite(out["probabilities"]).all()
    np.testing.assert_allclose(out["weights"].sum(axis=1), 1, atol=1e-6)


def test_a_model_that_float32_would_change_is_refused(tmp_path):
    """At 2e8 neighbouring numbers of float32 are 16 apart, and rows of one source about 1."""
    X, y, d = three(offset=2e8)
    sources = [
        Source(name, Ridge().fit(X[d == name] - 2e8, y[d == name]), GaussianKDE(0.5))
        for name in np.unique(d)
    ]
    for source in sources:
        source.density.fit(X[d == source.name])
        source.predictor.intercept_ -= 2e8 * source.predictor.coef_.sum()
    model = DistributionWeightedRegressor.from_sources(sources, consult=False)
    anymix.save(model.fit(X, y, sample_domain=d), tmp_path / "m")
    export_model(tmp_path / "m")
    with pytest.raises(InputError, match=r"where 0\.001 is taken; export it without --float32"):
        export_model(tmp_path / "m", float32=True)


def decimals(seed):
    """Rows of two digits behind the point, more of them than boosted trees have bins."""
    X, _, d = three(seed)
    X = np.concatenate([X + k for k in range(8)]).round(2)
    return X, np.sin(X[:, 0]) + X[:, 1] / 4, np.tile(d, 8)


def test_rows_at_a_threshold_of_boosted_trees_stay_on_their_side(tmp_path):
    X, y, d = decimals(0)
    trees = HistGradientBoostingRegressor(max_iter=20, random_state=0)
    model = DistributionWeightedRegressor(trees, density=GaussianKDE(0.5), random_state=0)
    anymix.save(model.fit(X, y, sample_domain=d), tmp_path / "m")
    found = export_model(tmp_path / "m", float32=True, rows=X).difference
    assert (found.n_rows, found.largest < 1e-5) == (len(X), True)
    # As they were, half of the rows that meet a threshold would fall on the other side.
    exact = export_model(tmp_path / "m").content
    apart = float32_difference(exact, as_float32(exact), X)
    assert apart.largest > 0.01


def as_float32(content):
    """Let a graph take float32 and change nothing else."""
    model = onnx.compose.add_prefix(onnx.load_model_from_string(content), "in/")
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    model.graph.input[0].name = "X"
    cast = onnx.helper.make_node("Cast", ["X"], ["in/X"], to=onnx.TensorProto.DOUBLE)
    model.graph.node.insert(0, cast)
    for value in model.graph.output:
        name = value.name.removeprefix("in/")
        model.graph.node.append(onnx.helper.make_node("Identity", [value.name], [name]))
        value.name = name
    return model.SerializeToString()


def test_without_densities_nothing_is_compared_and_that_is_said(tmp_path):
    X, y, d = three()
    model = DistributionWeightedRegressor(density=DomainClassifier(), random_state=0)
    anymix.save(model.fit(X, y, sample_domain=d), tmp_path / "m")
    found = export_model(tmp_path / "m", float32=True).difference
    assert (found.n_rows, found.holds) == (0, True)
    assert "not compared with float64" in str(found)


def test_what_is_not_finite_is_far():
    assert not Float32Difference(np.inf, 0.0, 3).holds
    assert str(Float32Difference(2e-4, 0.01, 100)) == (
        "at most 0.0002 from float64 at 100 rows, 1 % with another label"
    )


def columns_of(frame, content):
    """Give each column as MLflow does: numbers as they are, words as objects."""
    session = onnxruntime.InferenceSession(content)
    kinds = {one.name: one.type for one in session.get_inputs()}
    if list(kinds) == ["X"]:
        return {"X": frame.to_numpy(float)}
    return {
        name: frame[name].to_numpy(object if "string" in kind else float)
        for name, kind in kinds.items()
    }


def named(word, names, table):
    return {f"{word}({name})": part for name, part in zip(names, table.T, strict=True)}


@pytest.mark.parametrize("which", ["labels", "numbers", "mixed"])
def test_columns_go_in_and_out(folders, which):
    saved = read_model(folders / which)
    content = by_columns(export_model(folders / which).content, saved.received)
    names = [feature.name for feature in saved.received[0].manifest.features]
    rows = strangers() if which == "mixed" else pd.DataFrame(three(seed=3)[0], columns=names)
    found, model = answers(content, columns_of(rows, content)), saved.model
    asked = rows.to_numpy() if which == "labels" else rows
    due = named("weight", model.source_names_, model.source_weights(asked))
    if which == "numbers":
        due |= {"prediction": model.predict(asked)}
    else:
        due |= named("p", model.classes_, model.predict_proba(asked))
        assert (found.pop("label") == model.predict(asked)).all()
    assert set(found) == set(due)
    for name, value in due.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_a_feature_named_as_an_answer_is_refused(tmp_path):
    X, y, d = three()
    frame = pd.DataFrame(X, columns=["prediction", "b"])
    rows = frame.assign(ward=np.where(X[:, 0] > 0, "day", "night"))
    model = DistributionWeightedRegressor(cv=2, random_state=0).fit(rows, y, sample_domain=d)
    anymix.save(model, tmp_path / "m")
    found = export_model(tmp_path / "m")
    with pytest.raises(InputError, match="'prediction' has the name of an output column of the"):
        Exported(found.content, found.received).mlflow_files()
