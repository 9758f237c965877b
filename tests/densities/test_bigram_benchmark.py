"""The benchmark runs without its rivals, and its helpers count what they say."""

import numpy as np

from benchmarks import bigram


def test_quick_benchmark_prints_a_row_for_each_smoothing(capsys):
    rows = bigram.main(quick=True)
    own = [row for row in rows if row["name"].startswith("anymix")]
    assert [row["name"].split()[1] for row in own] == list(bigram.SMOOTHINGS)
    assert all(row[what] > 0 for row in own for what in bigram.TARGETS)
    texts = [row for row in rows if row["name"].startswith("texts")]
    assert len(texts) == 3
    assert all(row["train"] > 0 and row["score"] > 0 for row in texts)
    assert "kneser_ney" in capsys.readouterr().out


def test_corpus_has_the_size_that_is_printed():
    docs = bigram.corpus(50, 120, 2500)
    assert np.shape(docs) == (50, 120)
    assert docs == bigram.corpus(50, 120, 2500)


def test_until_counts_the_pieces_done():
    assert bigram.until(range(7), seconds=60.0)[0] == 7
    assert bigram.until(range(10**9), seconds=0.0)[0] == 1
