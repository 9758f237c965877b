"""Sites with texts: word counts, a common vocabulary, packed sources, one model; all by command."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from anymix.cli import main
from anymix.densities import TextDensity, WordReference, WordSummary
from anymix.estimators import default_estimator
from anymix.exchange import read_source

TOPICS = {"books": "plot chapter author page", "pans": "handle steel eggs heat"}
MOODS = {"good": "great lovely perfect", "bad": "poor broken awful"}
PLAIN = "the it was very and"


def documents(topic, n, rng):
    for _ in range(n):
        mood = ["good", "bad"][rng.integers(2)]
        each = [TOPICS[topic].split(), MOODS[mood].split(), PLAIN.split()]
        words = [str(rng.choice(part)) for part in each for _ in range(4)]
        yield " ".join(rng.permutation(words).tolist()), mood


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(
            [["id", "review", "mood"], *((i, *r) for i, r in enumerate(rows))]
        )
    return str(path)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    rows = {name: list(documents(name, 160, rng)) for name in TOPICS}
    for name in TOPICS:
        for part, n in (("train", 160), ("held", 60), ("test", 40)):
            some = rows[name] if part == "train" else documents(name, n, rng)
            write(folder / f"{name}_{part}.csv", some)
        words = ["--name", name, "--target", "mood", "--text", "review", "--quiet"]
        table = f"{folder}/{name}_train.csv"
        assert main(["reference", "summary", table, *words, "--out", f"{folder}/{name}.json"]) == 0
    summaries, reference = [f"{folder}/{name}.json" for name in TOPICS], f"{folder}/words.json"
    assert main(["reference", "join", *summaries, "--out", reference, "--quiet"]) == 0
    pack = ["--target", "mood", "--task", "classification", "--text", "review", "--quiet"]
    for name in TOPICS:
        words = ["--name", name, "--rows", f"{folder}/{name}_train.csv", "--reference", reference]
        assert main(["source", "pack", f"{folder}/{name}", *words, *pack]) == 0
    sources = [f"{folder}/{name}" for name in TOPICS]
    return SimpleNamespace(folder=folder, rows=rows, sources=sources, reference=reference)


def test_the_counts_hold_words_of_five_documents_or_more(sites):
    content = json.loads((sites.folder / "books.json").read_text())["content"]
    assert set(content["counts"]) == {*TOPICS["books"].split(), *PLAIN.split()} | {
        word for mood in MOODS.values() for word in mood.split()
    }
    texts = [text for text, _ in sites.rows["books"]]
    assert content["counts"]["plot"] == sum(text.split().count("plot") for text in texts)


def test_the_sources_are_those_of_python(sites):
    given = [json.loads((sites.folder / f"{name}.json").read_text()) for name in TOPICS]
    shared = WordReference.from_summaries([WordSummary.from_dict(g["content"]) for g in given])
    texts, moods = zip(*sites.rows["pans"], strict=True)
    model = default_estimator(list(texts), classification=True)
    model.set_params(tfidfvectorizer__min_df=5).fit(list(texts), moods)
    density = TextDensity(vocabulary=shared.words).fit(list(texts)).shareable()
    source = read_source(sites.sources[1])
    new = [text for text, _ in documents("books", 30, np.random.default_rng(5))]
    classes = np.array(["bad", "good"])
    np.testing.assert_allclose(
        source.predict_proba(new, classes), model.predict_proba(new), atol=2e-6
    )
    np.testing.assert_allclose(source.log_density(new), density.score_samples(new), rtol=1e-9)


def test_the_whole_private_path(sites, run, tmp_path):
    files = []
    for name in TOPICS:
        table = sites.folder / f"{name}_held.csv"
        site = ["--site", name, "--rows", table, "--target", "mood", "--out", tmp_path / name]
        said = run("site", "evaluate", *sites.sources, *site)
        assert said.status == 0, said.err
        files.append(tmp_path / name)
    said = run("fit", *sites.sources, "--from-sites", *files, "--out", tmp_path / "m")
    assert said.status == 0, said.err
    table = sites.folder / "books_test.csv"
    said = run("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv", "--weights")
    assert said.status == 0, said.err
    with open(tmp_path / "p.csv") as file, open(table) as due:
        rows = list(zip(csv.DictReader(file), csv.DictReader(due), strict=True))
    assert np.mean([found["label"] == row["mood"] for found, row in rows]) > 0.9
    assert np.mean([float(found["weight(books)"]) for found, _ in rows]) > 0.8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--text", "review"], "needs a vocabulary on which all sites agree"),
        (["--text", "reviw", "--reference"], "has no column 'reviw'; did you mean 'review'"),
        (
            ["--features", "id", "--reference"],
            "is a vocabulary; name the text column with --tex",
        ),
        (
            ["--text", "review", "--density", "kernels", "--reference"],
            "takes columns, not texts",
        ),
        (
            ["--text", "review", "--estimator", "boosted", "--reference"],
            "takes columns, not te",
        ),
        (["--text", "review", "--drop", "id", "--reference"], "not allowed with argument --text"),
    ],
)
def test_options_that_do_not_go_together(sites, run, tmp_path, options, words):
    options = [*options, sites.reference] if options[-1] == "--reference" else options
    said = run("source", "pack", tmp_path / "s", "--name", "s", "--target", "mood", "--task",
               "classification", "--rows", sites.folder / "books_train.csv", *options)  # fmt: skip
    assert said.status in (2, 3)
    assert words in said.err
    assert not (tmp_path / "s").exists()


def test_a_summary_of_columns_does_not_join_counts_of_words(sites, run, tmp_path):
    table = sites.folder / "books_train.csv"
    made = run("reference", "summary", table, "--name", "x", "--target", "mood", "--features", "id",
               "--out", tmp_path / "x.json")  # fmt: skip
    assert made.status == 0, made.err
    both = [tmp_path / "x.json", sites.folder / "pans.json"]
    said = run("reference", "join", *both, "--out", tmp_path / "r.json")
    assert f"{both[1]} is a vocabulary, but another file describes columns" in said.err


@pytest.mark.parametrize(
    "change",
    [
        {"counts": {"Good one": 5}}, {"counts": {"good": -1}}, {"counts": [1]}, {"n_rows": 0},
        {"name": ""}, {"more": 1}, {"counts": {}},
    ],
)  # fmt: skip
def test_counts_of_strangers_are_checked(sites, run, tmp_path, change):
    whole = json.loads((sites.folder / "pans.json").read_text())
    whole["content"] |= change
    (tmp_path / "c.json").write_text(json.dumps(whole))
    said = run("reference", "join", tmp_path / "c.json", "--out", tmp_path / "r.json")
    assert said.status == 4
    assert "is invalid" in said.err


def test_texts_are_never_packed_as_an_empty_column(sites, run, tmp_path):
    """Neither by a summary of columns nor by a reference that lists none of them."""
    table, out = sites.folder / "books_train.csv", tmp_path / "x.json"
    said = run("reference", "summary", table, "--name", "x", "--target", "mood", "--out", out)
    assert said.status == 3
    assert "column 'review' has a different text in most rows, such as '" in said.err
    assert "or learn from it alone with --text" in said.err
    (tmp_path / "t.csv").write_text("review,mood\n" + "good,yes\nbad,no\n" * 20)
    made = run("reference", "summary", tmp_path / "t.csv", "--name", "x", "--target", "mood",
               "--out", out)  # fmt: skip
    assert made.status == 0, made.err
    assert run("reference", "join", out, "--out", tmp_path / "r.json").status == 0
    said = run(
        "source",
        "pack",
        tmp_path / "s",
        "--name",
        "x",
        "--rows",
        table,
        "--target",
        "mood",
        "--id",
        "id",
        "--task",
        "classification",
        "--reference",
        tmp_path / "r.json",
    )
    assert said.status == 3
    assert "and no category of the reference ('bad', 'good') in 160 rows" in said.err
