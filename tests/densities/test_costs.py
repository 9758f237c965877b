"""Densities of strangers have budgets, and scoring holds little at a time, whoever made them."""

import json
import os
import signal
import tracemalloc
from functools import partial
from time import sleep

import numpy as np
import pytest

from anymix.densities import (
    BigramModel,
    DomainClassifier,
    GaussianKDE,
    GaussianMixtureDensity,
    bigram,
    gaussian_mixture,
)
from anymix.densities.centres import Kernels
from anymix.densities.kernel_sums import _in_threads
from anymix.densities.tokens import blocks_of


def mixture(k, d=1, scale=1.0):
    rng = np.random.default_rng(0)
    covariances = np.tile(scale * np.eye(d), (k, 1, 1))
    arrays = {"weights": np.full(k, 1 / k), "means": rng.normal(size=(k, d))}
    return arrays | {"covariances": covariances}


def kernels(k, variances, d=1):
    centres = np.random.default_rng(0).normal(size=(k, d))
    return {
        "centres": centres,
        "weights": np.full(k, 1 / k),
        "variances": variances,
        "bandwidth": np.ones(1),
    }


def words(texts, n_pairs=0):
    n = 2 if isinstance(texts, bytes) else len(texts) + 1
    content = texts if isinstance(texts, bytes) else json.dumps({"words": texts, "unknown": "drop"})
    content = content if isinstance(content, bytes) else content.encode()
    return {
        "log_unigram": np.full(n, -np.log(n)),
        "log_backoff": np.zeros(n),
        "keys": np.arange(n_pairs),
        "log_listed": np.zeros(n_pairs),
        "words": np.frombuffer(content, np.uint8),
    }


def traced_peak(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "arrays", "cause"),
    [
        (GaussianMixtureDensity, mixture(20_000), "20000 components in 1 dimensions, some 6e"),
        (GaussianMixtureDensity, mixture(60, 500), "60 components in 500 dimensions"),
        (GaussianKDE, kernels(600_000, np.linspace(1, 2, 600_000)), "600000 kernels in 1 dim"),
        (GaussianKDE, kernels(600_000, np.zeros(600_000)), "600000 kernels in 1 dimensions"),
        (BigramModel, words(b"[" * (2**26 + 1)), "bytes of words and 0 pairs"),
        (BigramModel, words(["a"], 4_000_001), "4000001 pairs of them"),
        (BigramModel, words(b'{"words": [' + b"[]," * 2_000_000), "more than the 3000000 entries"),
        (BigramModel, words(["a" * 201]), "invalid or repeated word"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_costs_too_much_is_refused(kind, arrays, cause):
    shape = arrays.get("means", arrays.get("centres", np.empty((1, 1)))).shape
    with pytest.raises(ValueError, match=cause):
        kind.from_arrays(arrays, shape[1])


def test_a_classifier_of_very_many_domains_is_refused():
    p = 501
    arrays = {
        "log_prior": np.full(p, -np.log(p)),
        "n_features": np.array([1]),
        "coefficients": np.zeros((p, 1)),
        "intercepts": np.zeros(p),
        "single": np.array([0]),
    }
    with pytest.raises(ValueError, match="distinguishes 501 domains; 500 are allowed"):
        DomainClassifier.from_arrays(arrays, 1)


def test_honest_densities_of_many_kernels_are_read():
    """What benchmarks/kde.py measures: 20 000 centres in 512 dimensions."""
    arrays = kernels(20_000, np.zeros(20_000), d=512)
    assert GaussianKDE.from_arrays(arrays, 512).centres_.shape == (20_000, 512)
    assert GaussianMixtureDensity.from_arrays(mixture(10, 512), 512).n_components_ == 10


def test_a_mixture_holds_some_rows_at_a_time():
    density = GaussianMixtureDensity.from_arrays(mixture(1000), 1)
    rows = np.zeros((20_000, 1))
    # Some temporary arrays of the size of a chunk, where all rows would take 160 MB each.
    assert traced_peak(lambda: density.score_samples(rows)) < 12 * 8 * gaussian_mixture.CHUNK


@pytest.mark.parametrize("full", [False, True])
def test_chunks_of_a_mixture_change_nothing(monkeypatch, full):
    arrays = mixture(7, 3)
    arrays["covariances"] = arrays["covariances"] + 0.3 * full
    density = GaussianMixtureDensity.from_arrays(arrays, 3)
    rows = np.random.default_rng(1).normal(size=(1100, 3))
    whole = density.score_samples(rows)
    monkeypatch.setattr(gaussian_mixture, "CHUNK", 700)
    np.testing.assert_allclose(density.score_samples(rows), whole, rtol=1e-13)


def test_centres_of_own_widths_are_prepared_once(monkeypatch):
    given = kernels(50, np.linspace(1, 2, 50))
    found = Kernels(given["centres"], given["weights"], given["variances"])
    rows = np.random.default_rng(1).normal(size=(30, 1))
    whole = found.log_densities(rows, [1.0])
    monkeypatch.setattr("anymix.densities.centres.CHUNK", 100)
    np.testing.assert_allclose(found.log_densities(rows, [1.0]), whole, rtol=1e-13)


def documents(seed=0):
    rng = np.random.default_rng(seed)
    return [[f"w{i}" for i in rng.integers(0, 20, n)] for n in rng.integers(0, 40, 60)]


def test_blocks_by_tokens_change_no_digit(monkeypatch):
    model, docs = BigramModel().fit(documents()), [*documents(1), [], ["w1"] * 500]
    whole = model.score_samples(docs)
    for most in (1, 7, 100):
        monkeypatch.setattr(bigram, "blocks_of", partial(blocks_of, most=most))
        np.testing.assert_array_equal(model.score_samples(docs), whole)
        np.testing.assert_array_equal(model.score_samples(iter(docs)), whole)


def test_documents_are_scored_as_they_come():
    """A generator of many documents is never held whole."""
    model = BigramModel().fit(documents())
    docs = (["w1"] * 50_000 for _ in range(100))
    few = (["w1"] * 50_000 for _ in range(20))
    model.score_samples([["w1"]])
    more, less = (
        traced_peak(lambda given=given: model.score_samples(given)) for given in (docs, few)
    )
    assert more < 1.5 * less


def test_the_wrong_document_is_still_named():
    model = BigramModel().fit(documents())
    with pytest.raises(TypeError, match="each document must be a list of tokens; got int"):
        model.score_samples([["a"], 3])
    with pytest.raises(TypeError, match="must be a list of lists"):
        model.score_samples("text")


def test_ctrl_c_ends_threads_at_their_next_task(interruptible):
    done = []

    def work(tasks):
        for task in tasks:
            done.append(task)
            if task == 3:
                os.kill(os.getpid(), signal.SIGINT)
            sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        _in_threads(work, range(5000))
    assert len(done) < 5000
