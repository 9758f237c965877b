"""Documents as rows, sources that do not fit together, and a quick start."""

import csv
import subprocess
import sys
from types import SimpleNamespace

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anymix import Source
from anymix.densities import BigramModel
from anymix.exchange import check_alike, pack_source

REVIEWS = {
    "books": ["a good plot and a good end", "the plot was bad", "good book", "bad end, bad book"],
    "pans": ["a good pan for eggs", "the pan was bad, eggs stick", "good pan", "bad for eggs"],
}


def write_reviews(path, reviews, labels=True):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "y"] if labels else ["text"])
        for text in reviews * 10:
            writer.writerow([text, int("good" in text)] if labels else [text])
    return str(path)


def test_documents_from_end_to_end(tmp_path, run):
    vocabulary = sorted(
        {w.strip(",") for texts in REVIEWS.values() for t in texts for w in t.split()}
    )
    held = []
    for name, texts in REVIEWS.items():
        words = [text.replace(",", "").split() for text in texts]
        model = make_pipeline(CountVectorizer(), LogisticRegression())
        model.fit(texts * 5, [int("good" in text) for text in texts] * 5)
        density = BigramModel("witten_bell", vocabulary=vocabulary).fit(words * 5)
        pack_source(Source(name, model, density), tmp_path / name)
        held.append(f"{name}={write_reviews(tmp_path / f'{name}.csv', texts)}")
    sources = [tmp_path / name for name in REVIEWS]
    # Sources that hear each other both know all here, so that weights would say nothing.
    out = ("--out", tmp_path / "m", "--no-consulting")
    assert run("fit", *sources, "--held-out", *held, *out).status == 0
    table = write_reviews(tmp_path / "new.csv", ["Good eggs!", "a bad plot"], labels=False)
    said = run("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv", "--weights")
    assert said.status == 0, said.err
    with open(tmp_path / "p.csv", newline="") as file:
        eggs, plot = list(csv.DictReader(file))[:2]
    assert (eggs["label"], plot["label"]) == ("1", "0")
    assert float(eggs["weight(pans)"]) > 0.5
    assert float(plot["weight(books)"]) > 0.5
    refused = run("export", tmp_path / "m", tmp_path / "m.onnx")
    assert "'bigram', which cannot be written as ONNX" in refused.err


def received(name="a", task="regression", features=("u", "v"), classes=None):
    columns = [SimpleNamespace(name=feature) for feature in features]
    manifest = SimpleNamespace(name=name, task=task, features=columns, classes=classes)
    return SimpleNamespace(manifest=manifest, folder=f"folder-{name}")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (received("a"), "have the same name"),
        (received("b", task="classification"), "folder-b is for classification"),
        (received("b", classes=(0, 1)), "labels that are whole numbers, the first source words"),
        (received("b", features=("v", "u")), r"takes the features \['v', 'u'\]"),
    ],
)
def test_sources_that_do_not_fit_together(other, words):
    with pytest.raises(ValueError, match=words):
        check_alike([received("a"), other])


def test_help_needs_no_heavy_library():
    code = (
        "import sys; from anymix.cli import main; main(['--help']); "
        "assert not {'numpy', 'sklearn', 'onnx', 'onnxruntime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
