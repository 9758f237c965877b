"""Bigram models: train, score and sample beside kenlm and nltk, in one run.

    python -m benchmarks.bigram

2000 documents of 120 words out of 2500 (Zipf). kenlm answers queries only; it loads the ARPA file
that we write, and its scores are compared with ours. nltk scores and draws as many words as a few
seconds allow, and its times are extrapolated from them; its rows say from how many. The last rows
are of raw texts, 100 000 of 30 words out of 20 000: words are cut out in training and in scoring,
beside scikit-learn's counts and naive Bayes.
"""

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from anymix.densities import BigramModel, TextDensity

Documents = list[list[str]]
TARGETS = {"train": 0.3, "score": 0.1, "sample": 2.0}
SMOOTHINGS = ("katz", "kneser_ney", "witten_bell", "absolute")


def corpus(n_documents: int, n_words: int, vocabulary: int, seed: int = 0) -> Documents:
    """Return documents of independent Zipf words: of all corpora, the one with the most pairs."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, vocabulary + 1)
    ids = rng.choice(vocabulary, (n_documents, n_words), p=share / share.sum())
    return np.array([f"w{i}" for i in range(vocabulary)], dtype=object)[ids].tolist()


def best(call: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    """Return the answer and the shortest of a few times: the one least disturbed by others."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        answer = call()
        times.append(perf_counter() - start)
    return answer, min(times)


def until(work: Iterable[Any], seconds: float) -> tuple[int, float]:
    """Return how many pieces of work were done in about that time, and the time."""
    start, done = perf_counter(), 0
    for _ in work:
        done += 1
        if perf_counter() - start > seconds:
            break
    return done, perf_counter() - start


def ours(smoothing: str, docs: Documents, n_samples: int) -> dict[str, Any]:
    model, train = best(lambda: BigramModel(smoothing).fit(docs))
    _, score = best(lambda: model.score_samples(docs))
    _, sample = best(lambda: model.sample(n_samples, random_state=0))
    off = float(np.abs(model.table_.sums() - 1.0).max())
    row = {"name": f"anymix {smoothing}", "train": train, "score": score, "sample": sample}
    return row | {"note": f"sums to 1 within {off:.0e}"}


def kenlm_row(docs: Documents) -> dict[str, Any]:
    """Scores of kenlm with our ARPA file, and how far they are from ours (kenlm has float32)."""
    import kenlm

    model = BigramModel().fit(docs)
    texts = [" ".join(doc) for doc in docs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        model.to_arpa(path)
        peer = kenlm.Model(str(path))
    theirs, score = best(lambda: [peer.score(text) for text in texts])
    off = np.abs(np.log(10) * np.array(theirs) - model.score_samples(docs)).max()
    note = f"largest difference to our document scores: {off:.0e} nats"
    return {"name": "kenlm, our katz ARPA", "score": score, "note": note}


def nltk_row(kind: str, docs: Documents, n_samples: int, seconds: float) -> dict[str, Any]:
    """Times of nltk's model; scoring and sampling on a part, extrapolated."""
    from nltk import lm
    from nltk.lm.preprocessing import padded_everygram_pipeline

    model = getattr(lm, kind)(2)
    _, train = best(lambda: model.fit(*padded_everygram_pipeline(2, docs)), repeats=1)

    def steps() -> Iterator[float]:
        for doc in docs:
            yield from (model.logscore(w, [h]) for h, w in pairwise(["<s>", *doc, "</s>"]))

    def draws() -> Iterator[str]:
        # The word after each word of the corpus: contexts come as often as in documents.
        for i, word in enumerate(chain.from_iterable(docs)):
            yield model.generate(1, text_seed=[word], random_seed=i)

    n_words = sum(map(len, docs))
    scored, score_time = until(steps(), seconds)
    drawn, sample_time = until(draws(), seconds)
    return {
        "name": f"nltk {kind}",
        "train": train,
        "score": score_time / scored * (n_words + len(docs)),
        "sample": sample_time / drawn * n_samples * (n_words / len(docs) + 1),
        "note": f"extrapolated from {scored} words scored, {drawn} words drawn",
    }


def peers(docs: Documents, n_samples: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each rival that is installed."""
    if importlib.util.find_spec("kenlm"):
        yield kenlm_row(docs)
    else:
        yield {"name": "kenlm", "note": "not installed"}
    if importlib.util.find_spec("nltk"):
        for kind in ("KneserNeyInterpolated", "WittenBellInterpolated"):
            yield nltk_row(kind, docs, n_samples, seconds)
    else:
        yield {"name": "nltk", "note": "not installed"}


def as_texts(docs: Documents) -> list[str]:
    """Return documents as texts, with letters in place of the digits of their words."""
    letters = str.maketrans("0123456789", "abcdefghij")
    return [" ".join(doc).translate(letters) for doc in docs]


def text_rows(texts: list[str]) -> Iterator[dict[str, Any]]:
    """Yield times of `TextDensity`, words of all sources found first, and of scikit-learn."""
    for smoothing in ("unigram", "katz"):
        plain = TextDensity(smoothing)
        model, train = best(lambda plain=plain: plain.with_shared(texts).fit(texts), repeats=1)
        _, score = best(lambda model=model: model.score_samples(texts), repeats=1)
        note = f"{len(texts)} texts, {len(model.vocabulary_)} words"
        yield {"name": f"texts {smoothing}", "train": train, "score": score, "note": note}
    peer = make_pipeline(CountVectorizer(token_pattern="[a-z']+"), MultinomialNB(alpha=0.5))
    _, train = best(lambda: peer.fit(texts, np.arange(len(texts)) % 2), repeats=1)
    _, score = best(lambda: peer.predict_log_proba(texts), repeats=1)
    note = "scikit-learn, two sources at once"
    yield {"name": "texts counts and bayes", "train": train, "score": score, "note": note}


def show(row: dict[str, Any]) -> None:
    cells = [f"{row[what]:>12.4g}" if what in row else f"{'-':>12}" for what in TARGETS]
    print(f"{row['name']:<28}", *cells, " " + row.get("note", ""))


def main(quick: bool = False) -> list[dict[str, Any]]:
    """Print the table and return its rows; quick: a small corpus, without the rivals."""
    n_documents, n_samples = (100, 50) if quick else (2000, 10_000)
    docs = corpus(n_documents, 120, 2500)
    print(f"{n_documents} documents x 120 words, 2500 words; {n_samples} documents drawn")
    print(f"{'seconds':<28}", *(f"{what:>12}" for what in TARGETS))
    rows = []
    rivals = iter(()) if quick else peers(docs, n_samples, seconds=5.0)
    texts = text_rows(as_texts(corpus(*((100, 30, 200) if quick else (100_000, 30, 20_000)))))
    own = (ours(smoothing, docs, n_samples) for smoothing in SMOOTHINGS)
    for row in chain(own, rivals, texts):
        show(row)
        rows.append(row)
    show({"name": "target", **TARGETS})
    return rows


if __name__ == "__main__":
    main()
