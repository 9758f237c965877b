"""ARPA files: there and back, files of other tools, files that are broken."""

import numpy as np
import pytest

from anymix.densities.bigram import BigramModel
from anymix.densities.bigram_formats import read_arpa

DOCS = [["the", "cat", "sat"], ["the", "dog's", "naïve"], ["the", "cat"], []]
SMALL = """
\\data\\
ngram 1=3
ngram 2=1

\\1-grams:
-99 <s>
-0.30103 </s>
-0.30103 a -0.69897

\\2-grams:
-0.0457575 a </s>

\\end\\
"""


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize("smoothing", ["katz", "kneser_ney", "witten_bell", "absolute"])
@pytest.mark.parametrize("unknown", ["drop", "map"])
def test_there_and_back(tmp_path, name, smoothing, unknown):
    model = BigramModel(smoothing, unknown=unknown).fit(DOCS)
    model.to_arpa(tmp_path / name)
    again = BigramModel.from_arpa(tmp_path / name)
    assert again.unknown == unknown
    assert again.vocabulary_ == model.vocabulary_
    test = [*DOCS, ["cat", "the", "zebra"]]
    np.testing.assert_allclose(again.score_samples(test), model.score_samples(test), atol=1e-9)
    assert again.sample(30, random_state=1) == model.sample(30, random_state=1)


def test_reads_spaces_for_tabs_and_missing_backoff_weights(tmp_path):
    path = tmp_path / "small.arpa"
    path.write_text(SMALL)
    names, table = read_arpa(path)
    assert names == ["a"]
    probabilities = np.exp(table.log_prob(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    np.testing.assert_allclose(probabilities, [0.1, 0.9, 0.5, 0.5], atol=1e-6)


def test_kenlm_gives_the_same_scores(tmp_path):
    kenlm = pytest.importorskip("kenlm")
    model = BigramModel("kneser_ney").fit(DOCS)
    model.to_arpa(tmp_path / "model.arpa")
    peer = kenlm.Model(str(tmp_path / "model.arpa"))
    test = [*DOCS, ["cat", "the", "sat", "sat"]]
    theirs = np.log(10) * np.array([peer.score(" ".join(doc)) for doc in test])
    np.testing.assert_allclose(model.score_samples(test), theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\end\\", "", "cut short"),
        ("ngram 2=1", "ngram 2=1\nngram 3=0", r"orders \[1, 2, 3\]"),
        ("ngram 1=3", "ngram 1=4", "announces 4 1-grams and lists 3"),
        ("-0.0457575 a </s>", "-0.0457575 b </s>", "the word 'b'"),
        ("-0.0457575 a </s>", "-0.0457575 a <s>", "the word '<s>'"),
        ("-0.0457575 a </s>", "-0.3 a </s>", "after 'a' .* sum to 0.6"),
        ("-0.0457575 a </s>", "nan a </s>", "not a finite number"),
        ("-0.0457575 a </s>", "x a </s>", "could not convert"),
        ("-0.0457575 a </s>", "-0.0457575 a", "columns"),
        ("-99 <s>", "-99 b", "<s> and </s>"),
        ("-0.30103 a -0.69897", "-0.30103 </s> 0", "listed once"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path, old, new, message):
    assert old in SMALL
    path = tmp_path / "broken.arpa"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        BigramModel.from_arpa(path)
    assert "broken.arpa" in str(caught.value)


def test_a_pair_listed_twice_is_refused(tmp_path):
    path = tmp_path / "twice.arpa"
    line = "-0.0457575 a </s>\n"
    path.write_text(SMALL.replace(line, line + line).replace("ngram 2=1", "ngram 2=2"))
    with pytest.raises(ValueError, match="listed twice"):
        read_arpa(path)


def test_words_with_spaces_cannot_be_written(tmp_path):
    model = BigramModel().fit([["new york"]])
    with pytest.raises(ValueError, match="'new york' is empty or has a space"):
        model.to_arpa(tmp_path / "model.arpa")
