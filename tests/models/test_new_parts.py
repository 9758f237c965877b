"""What tables, texts, routers, second rounds and consulting add to a model survives its folder."""

import json
import shutil
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import ContrastiveDensity, DomainClassifier, GaussianKDE, TextDensity
from anymix.exchange import AuditError, export_onnx, facts_of
from anymix.models import read_model
from anymix.sources import SecondRound
from tests.models.mixed_rows import clinics, strangers

FRAME, NUMBERS, LABELS, CLINIC = clinics()
NEW = strangers()
SETTINGS = {"cv": 2, "random_state": 0}
# Trees sum in float32 there.
NEAR = 1e-6


def labels(**settings):
    return DistributionWeightedClassifier(**SETTINGS | settings).fit(FRAME, LABELS, CLINIC)


def numbers(**settings):
    return DistributionWeightedRegressor(**SETTINGS | settings).fit(FRAME, NUMBERS, CLINIC)


def wide(n=120, seed=0):
    """Three sites whose models are weak at home and right about the others: consulting pays."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(c, 1.0, (n, 4)) for c in (-2.0, 0.0, 2.0)])
    y = X @ np.array([1.0, -1.0, 0.5, 2.0]) + np.abs(X[:, 0]) + 0.5 * rng.normal(size=3 * n)
    return X, y, np.repeat(["a", "b", "c"], n)


def consulting(kind):
    X, y, d = wide(seed=2 if kind == "numbers" else 0)
    poor = {"density": GaussianKDE(0.8), "cv": 3, "random_state": 0}
    if kind == "numbers":
        return DistributionWeightedRegressor(Ridge(3000.0), **poor).fit(X, y, d), X
    label = np.digitize(y, [-1.0, 2.0])
    weak = LogisticRegression(C=0.003)
    return DistributionWeightedClassifier(weak, **poor).fit(X, label, d), X


CASES = {
    "labels of tables": (lambda: labels(), NEW),
    "numbers of tables": (lambda: numbers(), NEW),
    "a router of trees": (lambda: labels(density=DomainClassifier.boosted(0)), NEW),
    "trees against a reference": (
        lambda: numbers(density=ContrastiveDensity(random_state=0), consult=False),
        NEW,
    ),
    "labels that hear each other": lambda: consulting("labels"),
    "numbers that hear each other": lambda: consulting("numbers"),
}


def case(name):
    found = CASES[name]
    return (found[0](), found[1]) if isinstance(found, tuple) else found()


def asked(model, rows):
    return model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)


@pytest.mark.parametrize("name", CASES)
def test_the_folder_and_the_exported_file_answer_alike(name, tmp_path):
    model, rows = case(name)
    anymix.save(model, tmp_path / "m")
    saved = read_model(tmp_path / "m")
    again, due = saved.model, asked(model, rows)
    spread = np.ptp(due)
    np.testing.assert_allclose(asked(again, rows), due, atol=NEAR * spread)
    np.testing.assert_array_equal(again.source_weights(rows), model.source_weights(rows))
    assert again.columns_ == model.columns_
    assert again.consult == model.consult
    if model.novelty_ is not None:
        np.testing.assert_array_equal(again.novelty(rows), model.novelty(rows))
    assert again.combination_.to_json() == model.combination_.to_json()
    if model.combination_.consults:
        assert again.advice_.to_json() == model.advice_.to_json()
    content = export_onnx(
        saved.received, again.combination_, again.router_, generalist=saved.generalist
    )
    session = onnxruntime.InferenceSession(content)
    X = rows if model.columns_ is None else model.columns_.encode(rows)
    out = dict(
        zip([o.name for o in session.get_outputs()], session.run(None, {"X": X}), strict=True)
    )
    exported = out.get("probabilities", out.get("prediction"))
    np.testing.assert_allclose(exported, due, atol=1e-5 * spread)
    np.testing.assert_allclose(out["weights"], model.source_weights(rows), atol=1e-6)
    notes = session.get_modelmeta().custom_metadata_map
    if model.columns_ is not None:
        assert json.loads(notes["columns"]) == model.columns_.to_dict()


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_the_cases_do_consult(kind):
    assert consulting(kind)[0].combination_.consults


def test_the_density_that_was_chosen_comes_back(tmp_path):
    model = labels()
    anymix.save(model, tmp_path / "m")
    assert anymix.load(tmp_path / "m").density_choice_.to_json() == model.density_choice_.to_json()


def second_round(rest, one, two):
    X, y, d = wide()
    model = DistributionWeightedRegressor(one, GaussianKDE(0.8), **SETTINGS).fit(X, y, d)
    others = [source.predictor for source in model.sources_[1:]]
    members = [getattr(other, "rest", other) for other in others]
    left = y - 0.5 * members[0].predict(X) + 0.3 * members[1].predict(X) - 2.0
    found = SecondRound(members, np.array([0.5, -0.3]), 2.0, rest.fit(X, left))
    model.sources_[0] = two(model.sources_[0], found)
    return model, X


@pytest.mark.parametrize(
    "learner", [Ridge(), HistGradientBoostingRegressor(max_iter=10)], ids=["linear", "trees"]
)
def test_a_second_round_is_one_graph(learner, tmp_path):
    model, X = second_round(learner, learner, lambda s, p: replace(s, predictor=p))
    found = model.sources_[0].predictor
    due = found.predict(X)
    said = sum(a * o.predict(X) for a, o in zip(found.weights, found.others, strict=True))
    np.testing.assert_allclose(due, said + 2.0 + found.rest.predict(X))
    anymix.save(model, tmp_path / "m")
    again = anymix.load(tmp_path / "m")
    np.testing.assert_allclose(again.sources_[0].predict(X), due, atol=NEAR * np.ptp(due))
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=NEAR * np.ptp(due))
    anymix.save(again, tmp_path / "second")
    np.testing.assert_array_equal(anymix.load(tmp_path / "second").predict(X), again.predict(X))


def reviews(seed=0):
    rng, texts, stars, shop = np.random.default_rng(seed), [], [], []
    for name, own in (("books", "plot page author"), ("pans", "handle steel lid")):
        words = np.array([*own.split(), "good", "bad", "fine", "the", "very"])
        for _ in range(80):
            drawn = rng.choice(words, rng.integers(4, 9))
            texts.append(" ".join(drawn))
            stars.append(3.0 + (drawn == "good").sum() - (drawn == "bad").sum())
            shop.append(name)
    return texts, np.array(stars), np.array(shop)


def test_texts_come_back_and_a_router_of_words_says_what_can_be_saved(tmp_path):
    texts, stars, shop = reviews()
    words = make_pipeline(CountVectorizer(), Ridge())
    model = DistributionWeightedRegressor(words, TextDensity(), **SETTINGS)
    model.fit(texts, stars, sample_domain=shop)
    anymix.save(model, tmp_path / "m")
    again = anymix.load(tmp_path / "m")
    due = model.predict(texts)
    np.testing.assert_allclose(again.predict(texts), due, atol=1e-5 * np.ptp(due))
    np.testing.assert_allclose(again.novelty(texts), model.novelty(texts), atol=1e-12)
    router = DomainClassifier(make_pipeline(CountVectorizer(), LogisticRegression()))
    model.set_params(density=router).fit(texts, stars, sample_domain=shop)
    with pytest.raises(ValueError, match=r"density=TextDensity\(\)"):
        anymix.save(model, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_second_round_of_texts_is_one_graph(tmp_path):
    texts, stars, shop = reviews()
    words = make_pipeline(CountVectorizer(), Ridge())
    model = DistributionWeightedRegressor(words, TextDensity(), **SETTINGS)
    model.fit(texts, stars, sample_domain=shop)
    one, two = (getattr(s.predictor, "rest", s.predictor) for s in model.sources_)
    found = SecondRound([two], np.array([0.4]), 1.0, one)
    model.sources_[0] = replace(model.sources_[0], predictor=found)
    anymix.save(model, tmp_path / "m")
    due = found.predict(texts)
    again = anymix.load(tmp_path / "m").sources_[0].predict(texts)
    np.testing.assert_allclose(again, due, atol=1e-5 * np.ptp(due))


# --- records and parts that were changed --------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("new parts")
    anymix.save(consulting("labels")[0], place / "heard")
    model = labels(density="auto")
    strange = model.novelty_ if model.novelty_ is not None else None
    assert strange is not None
    anymix.save(model, place / "tables")
    return place


def changed(folder, tmp_path, change):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    record = json.loads((copy / "model.json").read_text())
    change(record)
    (copy / "model.json").write_text(json.dumps(record))
    return copy


def consult_of(record):
    return next(part["consulting"] for part in parts_of(record) if part["consulting"])


def parts_of(record):
    return record["combination"]["parts"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: consult_of(r)["weights"][0].__setitem__(1, 9.0), "the consulting"),
        (lambda r: consult_of(r)["offset"][0].__setitem__(1, 9.0), "the consulting"),
        (lambda r: consult_of(r).update(form="numbers"), "consulting"),
        (lambda r: consult_of(r).update(form="gossip"), "form of consulting"),
        (lambda r: consult_of(r).update(reach=[-1.0, 0.0, 0.0]), "reach below 0"),
        (lambda r: [part.update(consulting=None) for part in parts_of(r)], "the consulting"),
        (lambda r: r["settings"].update(consult=False), "its settings have consult=false"),
        (lambda r: r["settings"].pop("consult"), "its settings have consult=false"),
        (lambda r: r["settings"].update(consult="yes"), "where"),
    ],
)
def test_consulting_that_was_changed_is_refused(folders, tmp_path, change, words):
    with pytest.raises(AuditError, match=words):
        anymix.load(changed(folders / "heard", tmp_path, change), verify=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(chosen="magic"), "not one of those"),
        (lambda c: c.update(novelty="magic"), "not one of those"),
        (lambda c: c.update(names=["a\n", "b"]), "invalid names"),
        (lambda c: c.update(names=["a" * 90, "b"]), "invalid names"),
        (lambda c: c.update(names=[]), "invalid names"),
        (lambda c: c.update(losses=["nan", 0.5]), "a loss each"),
        (lambda c: c.update(losses=[0.5]), "a loss each"),
        (lambda c: c.update(n_rows=0), "not one of those"),
        (lambda c: c.pop("losses"), "lacks"),
    ],
)
def test_a_choice_that_nobody_made_is_refused(folders, tmp_path, change, words):
    with pytest.raises(AuditError, match=words):
        anymix.load(
            changed(folders / "tables", tmp_path, lambda record: change(record["density_choice"]))
        )


NOVELTIES = {
    "not sorted": (lambda a: a.update(own=a["own"][::-1].copy()), "not sorted"),
    "no number": (lambda a: a["own"].__setitem__(0, np.nan), "cannot be logarithms"),
    "too many": (lambda a: a["sizes"].__setitem__(0, 10**6), "as many numbers"),
    "none of a source": (lambda a: a["sizes"].__setitem__(0, 0), "as many numbers"),
    "another type": (lambda a: a.update(sizes=a["sizes"].astype(float)), "must hold the arrays"),
    "another array": (lambda a: a.update(more=np.zeros(2)), "must hold the arrays"),
}


@pytest.mark.parametrize("fault", NOVELTIES)
def test_novelty_of_strangers_is_refused(folders, fault, tmp_path):
    change, words = NOVELTIES[fault]

    def forged(record):
        path = tmp_path / "copy" / record["novelty"]["file"]
        arrays = {name: array.copy() for name, array in load_arrays(path.read_bytes()).items()}
        change(arrays)
        content = save_arrays(arrays)
        path.write_bytes(content)
        record["novelty"].update(vars(facts_of(content)))

    with pytest.raises(AuditError, match=words):
        anymix.load(changed(folders / "tables", tmp_path, forged))


def test_parts_of_an_older_model_go(folders, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folders / "tables", copy)
    assert list(copy.glob("novelty-*"))
    anymix.save(consulting("numbers")[0], copy)
    assert not list(copy.glob("novelty-*"))
