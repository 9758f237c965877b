"""What a folder reveals is measured on its files: rows, targets, rare words, leaves of few rows."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from scipy import sparse
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from anymix import Source
from anymix.densities import BigramModel, GaussianKDE, GaussianMixtureDensity
from anymix.exchange import AuditError, load_arrays, pack_source, read_sources
from anymix.exchange.contents import cells_of, inputs_of_steps, numbers_in, words_in
from anymix.exchange.conversion import _converted
from anymix.exchange.leak_report import rare_in_texts
from anymix.exchange.row_leaks import contained_rows, rows_beyond_chance

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) * [1, 10, 100]
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=120)
KDE = GaussianKDE(1.0).fit(X)
# What the support vectors are is three steps away from the rows.
NESTED = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), PCA(2), SVR()))
NAME = "zebulon quackenbush of 12 elm street has hiv"
DOCS = ["the drug helped me a lot"] * 10 + ["the drug did not help"] * 10 + [NAME]
LABELS = ["a"] * 10 + ["b"] * 11


def pack(model, folder, density=KDE, **more):
    options = {"rows": X, "targets": Y} | more
    return pack_source(Source("north", model, density), folder, **options)


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (SVR(), r"holds \d\d+ training rows as they are"),
        (make_pipeline(StandardScaler(), SVR()), r"holds \d\d+ training rows as they are"),
        (NESTED, r"holds \d\d+ training rows as they are"),
        (DecisionTreeRegressor(), "holds 120 training targets as they are"),
        (RandomForestRegressor(9, random_state=0), "leaves that are the target of a single row"),
        (
            BaggingRegressor(SVR(), n_estimators=2, max_features=0.7, random_state=0),
            r"holds \d\d+ training rows as they are",
        ),
        (
            GradientBoostingRegressor(learning_rate=1, n_estimators=1, max_depth=None),
            r"holds 1\d\d training targets as they are",
        ),
        (
            GradientBoostingRegressor(n_estimators=2, max_depth=None),
            "has 120 leaves that are the target of a single row",
        ),
    ],
    ids=["SVR", "scaled SVR", "nested", "tree", "forest", "bag", "one step", "first step"],
)
def test_a_predictor_that_holds_rows_or_targets_is_refused(tmp_path, model, fault):
    model.fit(X, Y)
    with pytest.raises(AuditError, match=fault) as caught:
        pack(model, tmp_path / "a")
    assert caught.value.where == "the predictor of 'north'"
    assert "a linear model or a forest with min_samples_leaf=5" in caught.value.cause
    assert "--reveals-rows" in caught.value.cause
    assert not (tmp_path / "a").exists()
    manifest = pack(model, tmp_path / "a", reveals_rows=True)
    said = manifest.reveals
    assert "Compared with 120 training rows" in said
    assert re.search(r"[1-9]\d* (stand in|the target of a single)|their targets [1-9]", said)
    assert read_sources([tmp_path / "a"])[0].manifest == manifest


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        make_pipeline(StandardScaler(), Ridge()),
        RandomForestRegressor(20, min_samples_leaf=5, random_state=0),
        GradientBoostingRegressor(n_estimators=20, min_samples_leaf=5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_reveals_none_says_how_many_it_was_compared_with(tmp_path, model):
    manifest = pack(model.fit(X, Y), tmp_path / "a")
    assert manifest.reveals.startswith("10 centres, each the mean of 5 distinct rows or more.")
    assert manifest.reveals.endswith(
        "Compared with 120 training rows: none stands in the predictor as it is, none in the "
        "density; of their targets none."
    )


def test_leaves_of_few_rows_are_counted(tmp_path):
    labels = np.where(Y > 0, "yes", "no")
    model = DecisionTreeClassifier(random_state=0).fit(X, labels)
    sizes = model.tree_.n_node_samples[model.tree_.children_left < 0]
    manifest = pack(model, tmp_path / "a", targets=labels)
    few = int((sizes < 5).sum())
    assert few > 1
    assert f"{few} of the {sizes.size} leaves of its trees hold fewer than 5 rows." in (
        manifest.reveals
    )
    again = Source("again", tmp_path / "a" / "predictor.onnx", KDE, classes=["no", "yes"])
    said = pack_source(again, tmp_path / "b", rows=X).reveals
    assert "The leaves of its trees were not counted." in said


def test_usual_boosting_says_what_its_leaves_hold(tmp_path):
    rows = RNG.normal(size=(400, 3))
    y = rows[:, 0] + 0.3 * RNG.normal(size=400)
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(rows, y)
    cells = cells_of(model)
    assert cells["single"] == 0
    assert cells["rest"] > 0
    source = Source("north", model, GaussianKDE(1.0).fit(rows))
    said = pack_source(source, tmp_path / "a", rows=rows, targets=y).reveals
    assert f"{cells['rest']} what the trees before left of the target of a single one." in said
    assert cells_of(RandomForestRegressor(3).fit(X, Y))["single"] > 0
    assert cells_of(lambda X: X)["leaves"] == 0


def test_the_first_trees_of_boosting_hold_targets():
    """Who knows the learning rate, a round number, reads the largest incomes off the file."""
    income = np.exp(2 * RNG.normal(size=120))
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, income)
    tree = model.estimators_[0, 0].tree_
    alone = (tree.children_left < 0) & (tree.n_node_samples == 1)
    read = model.init_.constant_.ravel() + tree.value[alone].ravel()
    assert cells_of(model)["single"] == alone.sum() > 0
    assert np.isclose(read[:, None], income).any(axis=1).all()


def test_targets_that_trees_of_a_file_add_up_to_are_found(tmp_path):
    model = GradientBoostingRegressor(learning_rate=0.9, n_estimators=12, max_depth=None)
    graph = _converted(model.fit(X, Y), 3, "float32")
    with pytest.raises(AuditError, match=r"holds 1\d\d training targets"):
        pack(graph, tmp_path / "a")


def test_rows_as_a_step_in_the_middle_gets_them():
    model = make_pipeline(StandardScaler(), KernelPCA(2), Ridge()).fit(X, Y)
    assert any(np.array_equal(form, model[0].transform(X)) for form in inputs_of_steps(model, X))


def test_rows_of_zeros_alone_are_nobodys(tmp_path):
    labels = np.where(Y > 0, "yes", "no")
    model = make_pipeline(Binarizer(), BernoulliNB()).fit(X, labels)
    rows = np.vstack([X, -np.ones((4, 3))])
    arrays = numbers_in(_converted(model, 3, "float32"))
    assert contained_rows(Binarizer().transform(rows), arrays).any()
    said = pack(model, tmp_path / "a", rows=rows, targets=None).reveals
    assert "none stands in the predictor" in said


def test_a_class_of_one_row_is_its_mean(tmp_path):
    labels = np.where(np.arange(120) == 0, "rare", "usual")
    labels[1:60] = "other"
    model = GaussianNB().fit(X, labels)
    with pytest.raises(AuditError, match="holds 1 training rows as they are"):
        pack(model, tmp_path / "a", targets=labels)


def test_rows_that_are_met_several_times_are_no_centres(tmp_path):
    """Twelve patients with six visits each."""
    rows = np.repeat(RNG.integers(20, 90, size=(12, 3)).astype(float), 6, axis=0)
    y = RNG.normal(size=len(rows))
    source = Source("rep", Ridge().fit(rows, y), GaussianKDE(5.0).fit(rows))
    manifest = pack_source(source, tmp_path / "a", rows=rows, targets=y)
    centres = load_arrays((tmp_path / "a" / "density.safetensors").read_bytes())["centres"]
    assert np.abs(centres[:, None] - rows).max(axis=2).min() > 1e-6
    assert manifest.reveals.startswith("1 centre, the mean of 5 distinct rows or more.")


def test_a_mixture_on_repeated_rows_is_refused(tmp_path):
    rows = np.repeat(RNG.integers(20, 90, size=(12, 3)).astype(float), 6, axis=0)
    density = GaussianMixtureDensity(random_state=0).fit(rows)
    source = Source("rep", Ridge().fit(rows, rows[:, 0]), density)
    with pytest.raises(AuditError, match="training rows as they are; use a GaussianKDE") as caught:
        pack_source(source, tmp_path / "a", rows=rows)
    assert caught.value.where == "the density of 'rep'"
    manifest = pack_source(source, tmp_path / "a", rows=rows, keep_rows=True)
    assert re.search(r"\d+ in the density", manifest.reveals)


def test_two_rows_are_not_said_to_be_five():
    two = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert GaussianKDE(1.0).fit(two).shareable().reveals() == (
        "1 centre, the mean of 2 distinct rows or more."
    )


def test_centres_whose_rows_are_not_known_say_so(tmp_path):
    pack(Ridge().fit(X, Y), tmp_path / "a")
    density = read_sources([tmp_path / "a"])[0].source.density
    assert density.reveals() == "10 centres, each the mean of rows; of how many is not known."
    model = Source("again", Ridge().fit(X, Y), density)
    said = pack_source(model, tmp_path / "b").reveals
    assert said.endswith("Predictor and density were not compared with the training rows.")


def test_without_rows_those_of_the_kernels_are_compared(tmp_path):
    with pytest.raises(AuditError, match="training rows as they are"):
        pack_source(Source("north", SVR().fit(X, Y), KDE), tmp_path / "a")
    said = pack_source(Source("north", Ridge().fit(X, Y), KDE), tmp_path / "a").reveals
    assert "Compared with 120 rows that the density was fitted on: none stands" in said


# --- words ---


def text_source(density, **vectorizer):
    words = TfidfVectorizer(**vectorizer)
    return Source("text", make_pipeline(words, LogisticRegression()).fit(DOCS, LABELS), density)


def tokens(documents):
    return [re.findall("[a-z']+", text) for text in documents]


def test_a_name_that_is_met_once_is_refused(tmp_path):
    density = BigramModel().fit(tokens(DOCS))
    with pytest.raises(AuditError, match="lists 8 words of fewer than 5 documents; make") as caught:
        pack_source(text_source(density), tmp_path / "a", rows=DOCS)
    assert caught.value.where == "the predictor of 'text'"
    assert "min_df=5" in caught.value.cause
    manifest = pack_source(text_source(density, min_df=5), tmp_path / "a", rows=DOCS)
    assert manifest.reveals.endswith(
        "Compared with 21 training documents: none stands in the predictor as a vector of words; "
        "no words of fewer than 5 documents stand in the predictor, none in the density."
    )
    for file in ("predictor.onnx", "density.safetensors"):
        assert b"quackenbush" not in (tmp_path / "a" / file).read_bytes()
    allowed = pack_source(text_source(density), tmp_path / "b", rows=DOCS, reveals_rows=True)
    assert "8 words of fewer than 5 documents stand in the predictor" in allowed.reveals
    # the manifest must not quote what it warns of
    assert "quackenbush" not in json.dumps(allowed.to_dict())


def test_without_documents_the_words_are_said_to_be_unknown(tmp_path):
    said = pack_source(text_source(BigramModel().fit(tokens(DOCS))), tmp_path / "a").reveals
    assert "were not compared with the training rows" in said
    assert "lists 16 words, some maybe of a single document." in said


def test_a_bigram_model_is_shared_without_rare_words():
    model = BigramModel().fit(tokens(DOCS))
    shared = model.shareable()
    assert "quackenbush" in model.vocabulary_
    assert "quackenbush" not in shared.vocabulary_
    assert shared.reveals().endswith("each met in 5 documents or more, or in none.")
    assert shared.shareable() is shared
    np.testing.assert_allclose(shared.table_.sums(), 1.0, atol=1e-12)
    # without rare words nothing changes
    whole = BigramModel().fit(tokens(DOCS[:20]))
    np.testing.assert_array_equal(
        whole.shareable().score_samples(tokens(DOCS)), whole.score_samples(tokens(DOCS))
    )


def test_often_in_one_document_is_rare_all_the_same():
    model = BigramModel(min_count=2).fit(tokens([*DOCS, "quackenbush " * 9]))
    assert "quackenbush" in model.vocabulary_
    assert "quackenbush" not in model.shareable().vocabulary_


def test_pairs_of_few_documents_are_not_listed():
    docs = [["a", "b"]] * 9 + [["b", "a"]]
    keys = BigramModel().fit(docs).shareable().table_.keys
    pairs = {tuple(divmod(int(key), 3)) for key in keys}
    assert (0, 1) in pairs
    assert (1, 0) not in pairs


def test_unknown_words_are_mapped_and_given_words_stay():
    mapped = BigramModel(unknown="map").fit(tokens(DOCS)).shareable()
    assert "<unk>" in mapped.vocabulary_
    assert "quackenbush" not in mapped.vocabulary_
    np.testing.assert_allclose(mapped.table_.sums(), 1.0, atol=1e-12)
    given = BigramModel(vocabulary=["drug", "hiv", "the", "unheard"]).fit(tokens(DOCS)).shareable()
    assert given.vocabulary_ == ["drug", "hiv", "the", "unheard"]
    # met once, and never met: nobody can tell
    assert given.table_.log_unigram[1] == given.table_.log_unigram[3]


def test_a_model_of_rare_words_alone_cannot_be_shared():
    with pytest.raises(ValueError, match="no word occurs in 5 documents"):
        BigramModel().fit([["a", "b"], ["c"]]).shareable()


def test_words_of_other_vectorizers(tmp_path):
    words = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w\w+")
    model = make_pipeline(words, LogisticRegression())
    density = BigramModel().fit(tokens(DOCS))
    source = Source("text", model.fit(DOCS, LABELS), density)
    with pytest.raises(AuditError, match="words of fewer than 5 documents"):
        pack_source(source, tmp_path / "a", rows=np.array(DOCS, dtype=object))


LETTERS = [a + b for a in "bcdfg" for b in ("aba", "odo", "uku", "ele")]
TEXTS = [" ".join(RNG.choice(LETTERS, 8)) for _ in range(80)]
MARKS = np.array([text.count("aba") + 0.1 * RNG.normal() for text in TEXTS])


@pytest.mark.parametrize("words", [CountVectorizer(), TfidfVectorizer()], ids=["counts", "tfidf"])
def test_documents_among_support_vectors_are_refused(tmp_path, words):
    model = make_pipeline(words, SVR()).fit(TEXTS, MARKS)
    source = Source("text", model, BigramModel().fit(tokens(TEXTS)))
    fault = r"holds \d\d training documents as vectors of words"
    with pytest.raises(AuditError, match=fault):
        pack_source(source, tmp_path / "a", rows=TEXTS, targets=MARKS)
    allowed = pack_source(source, tmp_path / "a", rows=TEXTS, targets=MARKS, reveals_rows=True)
    assert re.search(r"documents: \d\d stand in the predictor as vectors of", allowed.reveals)
    # of a file nobody knows what it makes of the documents
    file = Source("text", tmp_path / "a" / "predictor.onnx", source.density)
    said = pack_source(file, tmp_path / "b", rows=TEXTS).reveals
    assert "they were not looked for in the predictor as vectors of words" in said
    assert "Its support vectors may be rows in a form that is not known here." in said


MAILS = [
    text + f" p{i}@mail.org" * (i < 9) + f" +49-30-{i}" * (9 <= i < 20)
    for i, text in enumerate(TEXTS)
]


def test_rare_words_of_any_kind_are_counted_as_the_model_takes_them(tmp_path):
    words = CountVectorizer(token_pattern=r"\S+")
    model = make_pipeline(words, Ridge()).fit(MAILS, MARKS)
    source = Source("text", model, BigramModel().fit(tokens(MAILS)))
    with pytest.raises(AuditError, match="lists 20 words of fewer than 5 documents"):
        pack_source(source, tmp_path / "a", rows=MAILS)
    pack_source(source, tmp_path / "a", rows=MAILS, reveals_rows=True)
    file = Source("text", tmp_path / "a" / "predictor.onnx", source.density)
    with pytest.raises(AuditError, match="lists 20 words of fewer than 5 documents"):
        pack_source(file, tmp_path / "b", rows=MAILS)


def test_pairs_of_one_document_are_rare():
    documents = ["anna bob", "bob carl", "carl anna"] * 5 + ["bob, anna"]
    words = CountVectorizer(ngram_range=(1, 2))
    model = make_pipeline(words, Ridge()).fit(documents, np.arange(16.0))
    source = Source("text", model, BigramModel().fit(tokens(documents)))
    with pytest.raises(AuditError, match="lists 1 words of fewer"):
        pack_source(source, "never", rows=documents)
    listed = words_in(_converted(model, 1, "string"))
    assert "bob anna" in listed
    assert rare_in_texts(documents, listed) == 1


def test_sparse_rows_are_found_among_many_columns():
    """In any thirty neighbouring columns nearly all of these rows are zeros."""
    rows = sparse.random(300, 4000, 0.002, "csr", random_state=0)
    held = rows[:100].toarray().astype(np.float32)
    for array in (held.ravel(), held.T.ravel(), held):
        found = contained_rows(rows, [RNG.normal(size=4000), array])
        assert found[:100].all()
        assert (found == np.isin(np.arange(300), np.flatnonzero(found[:100]))).sum() >= 299
        assert rows_beyond_chance(rows, [array]) >= 99
    assert rows_beyond_chance(rows, [np.zeros(8000)]) == 0


# --- chance ---


def test_small_numbers_stand_everywhere_by_chance():
    few = RNG.integers(1, 6, size=(300, 2)).astype(float)
    anything = RNG.integers(0, 8, size=4000).astype(np.float32)
    assert contained_rows(few, [anything]).mean() > 0.5
    assert rows_beyond_chance(few, [anything]) == 0
    assert rows_beyond_chance(RNG.integers(0, 2, (50, 1)).astype(float), [anything]) == 0


@pytest.mark.parametrize("d", [1, 2, 7, 70])
def test_rows_are_found_wherever_they_stand(d):
    rows = RNG.normal(size=(60, d))
    arrays = [
        RNG.normal(size=5000).astype(np.float32),
        rows[:10].astype(np.float32).ravel(),
        np.concatenate([[1.0, 2.0], rows[10:20].ravel(), [3.0]]),
        rows[20:30].T.astype(np.float32),
        np.ravel(rows[30:40].T),
        np.c_[RNG.normal(size=10), rows[40:50]],
    ]
    found = contained_rows(rows, arrays)
    assert found[:50].all()
    assert not found[50:].any()
