"""Words that all sources share tell nothing of one of them; its own rare words do."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anymix import Source
from anymix.densities import TextDensity
from anymix.exchange import AuditError, pack_source, read_source

DOCUMENTS = ["the cat sat here", "a cat ran", "the dog ran", "a dog sat"] * 10 + ["quackenbush sat"]
LABELS = np.arange(len(DOCUMENTS)) % 2
SHARED = ["a", "cat", "dog", "here", "quackenbush", "ran", "sat", "the", "wombat"]


def source(density):
    words = make_pipeline(CountVectorizer(min_df=5), LogisticRegression())
    return Source("north", words.fit(DOCUMENTS, LABELS), density.fit(DOCUMENTS))


def test_a_shared_vocabulary_does_not_tell_what_was_met_here(tmp_path):
    given = source(TextDensity(vocabulary=SHARED))
    manifest = pack_source(given, tmp_path / "n", rows=DOCUMENTS)
    assert "none in the density" in manifest.reveals
    packed = read_source(tmp_path / "n").density
    met, never = packed.score_samples(["quackenbush"]), packed.score_samples(["wombat"])
    np.testing.assert_array_equal(met, never)


def test_with_all_that_was_counted_they_tell(tmp_path):
    given = source(TextDensity(vocabulary=SHARED, min_count=1))
    manifest = pack_source(given, tmp_path / "n", rows=DOCUMENTS, keep_rows=True)
    assert "1 in the density" in manifest.reveals


def test_own_rare_words_are_left_out_or_refused(tmp_path):
    own = source(TextDensity(min_count=1))
    assert "none in the density" in pack_source(own, tmp_path / "n", rows=DOCUMENTS).reveals
    assert "quackenbush" not in read_source(tmp_path / "n").density.model.vocabulary_
    listed = make_pipeline(CountVectorizer(), LogisticRegression()).fit(DOCUMENTS, LABELS)
    with pytest.raises(AuditError, match="lists 1 words of fewer than 5 documents"):
        pack_source(Source("north", listed, own.density), tmp_path / "m", rows=DOCUMENTS)
