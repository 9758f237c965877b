"""Densities of strangers that would take minutes, or that score what they draw as NaN."""

import gzip
import tracemalloc
from time import process_time

import numpy as np
import pytest

from anymix.densities import BigramModel, GaussianKDE, GaussianMixtureDensity, bigram_formats
from anymix.densities import gaussian_mixture as mixtures
from anymix.exceptions import AuditError
from anymix.exchange.read import _typical_rows


def mixture(covariance, k=1, **other):
    d = len(covariance)
    arrays = {"weights": np.full(k, 1 / k), "means": np.zeros((k, d))}
    return arrays | {"covariances": np.tile(covariance, (k, 1, 1))} | other


def kernels(centres, **other):
    n = len(centres)
    arrays = {"centres": centres, "weights": np.full(n, 1 / n), "variances": np.zeros(n)}
    return arrays | {"bandwidth": np.ones(1)} | other


def seconds(call):
    def once():
        start = process_time()
        call()
        return process_time() - start

    return min(once() for _ in range(3))


def test_rows_of_a_mixture_are_drawn_without_another_factorisation():
    d = 700
    A = np.random.default_rng(0).normal(size=(d, d))
    density = GaussianMixtureDensity.from_arrays(mixture(np.eye(d) + A @ A.T / d), d)
    # A decomposition takes about a second, its triangular solution some milliseconds.
    assert seconds(lambda: density.sample(64, random_state=0)) < 0.1


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
def test_drawn_rows_have_the_means_and_covariances(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) @ [[1.0, 0.8, 0.0], [0.0, 0.6, 0.3], [0.0, 0.0, 2.0]] + 5
    density = GaussianMixtureDensity(1, covariance_type=shape, background=0).fit(X)
    drawn = density.sample(40_000, random_state=0)
    arrays = density.to_arrays()
    np.testing.assert_allclose(drawn.mean(axis=0), arrays["means"][0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), arrays["covariances"][0], atol=0.1)
    again = GaussianMixtureDensity.from_arrays(arrays, 3)
    np.testing.assert_array_equal(again.sample(40_000, random_state=0), drawn)


def test_covariances_that_take_long_to_factor_are_refused(monkeypatch):
    monkeypatch.setattr(mixtures, "MOST_TO_FACTOR", 5 * 40**3)
    full = np.eye(40) + 0.1
    assert GaussianMixtureDensity.from_arrays(mixture(full, 5), 40).n_components_ == 5
    assert GaussianMixtureDensity.from_arrays(mixture(np.eye(40), 9), 40).n_components_ == 9
    with pytest.raises(ValueError, match=r"6 covariances in 40 dimensions, some 4e.05 "):
        GaussianMixtureDensity.from_arrays(mixture(full, 6), 40)


def test_denormal_covariances_cost_no_more():
    d = 400
    rows = np.random.default_rng(0).normal(size=(400, d))
    took = []
    for off in (1e-3, 1e-310, 1e-160):
        covariance = np.where(np.eye(d) > 0, 1.0, off)
        density = GaussianMixtureDensity.from_arrays(mixture(covariance), d)
        took.append(seconds(lambda density=density: density.score_samples(rows)))
    assert max(took[1:]) < 4 * took[0] + 0.01


def test_denormal_centres_cost_no_more():
    rng = np.random.default_rng(0)
    centres, rows = rng.normal(size=(4000, 200)), rng.normal(size=(64, 200))
    took = []
    for scale in (1.0, 1e-40):
        density = GaussianKDE.from_arrays(kernels(scale * centres), 200)
        took.append(seconds(lambda density=density: density.score_samples(rows)))
    assert took[1] < 4 * took[0] + 0.01


@pytest.mark.parametrize("off", [5e-7, -5e-7])
@pytest.mark.parametrize("kind", [GaussianKDE, GaussianMixtureDensity])
def test_weights_that_nearly_sum_to_one_can_be_drawn_from(kind, off):
    arrays = kernels(np.zeros((2, 2))) if kind is GaussianKDE else mixture(np.eye(2), 2)
    arrays["weights"] = arrays["weights"] * (1 + off)
    density = kind.from_arrays(arrays, 2)
    assert density.sample(5, random_state=0).shape == (5, 2)
    assert density.to_arrays()["weights"].sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    "covariance",
    [np.eye(2) * 1e-320, np.array([[1e-300, 1e-310], [1e-310, 1e-300]]), np.eye(1) * 1e-250],
)
def test_variances_whose_factors_overflow_are_refused(covariance):
    with pytest.raises(ValueError, match="positive definite"):
        GaussianMixtureDensity.from_arrays(mixture(covariance), len(covariance))


def test_kernels_without_weight_are_refused():
    with pytest.raises(ValueError, match="hardly any weight"):
        GaussianKDE.from_arrays(kernels(np.zeros((2, 1)), weights=np.array([1.0, 5e-324])), 1)


class Lies:
    def sample(self, n, random_state):
        return np.zeros((n, 1))

    def score_samples(self, rows):
        return np.where(np.arange(len(rows)) == 7, np.nan, 0.0)


class CannotDraw(Lies):
    def sample(self, n, random_state):
        raise ValueError("probabilities do not sum to 1")


@pytest.mark.parametrize(
    ("density", "cause"), [(Lies(), "no finite density"), (CannotDraw(), "cannot be used: prob")]
)
def test_a_density_that_cannot_score_what_it_draws_is_refused(tmp_path, density, cause):
    with pytest.raises(AuditError, match=rf"density.safetensors .*{cause}"):
        _typical_rows(tmp_path, None, density)


def traced(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_table_is_scored_with_little_beside_it():
    n, size = 1_000_000, 2001
    keys = np.arange(n) * (size**2 // n)
    words = [f"w{i}" for i in range(size - 1)]
    log_unigram = np.full(size, -np.log(size))
    table = bigram_formats.BigramTable(log_unigram, np.zeros(size), keys, np.full(n, -np.log(size)))
    sums, peak = traced(table.sums)
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)
    assert peak < 16 * n  # contexts, next ids and two kinds of probabilities would be 32 n
    model = BigramModel._of(words, "drop", table)
    _, peak = traced(lambda: model.score_samples([["w1", "w2"]]))
    assert peak < 24 * n


HEADER = "\\data\\\nngram 1=3\nngram 2=0\n\n\\1-grams:\n-99 <s>\n-0.30103 </s>\n-0.30103 a\n\n"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("\n" * 3000, "more lines than"),
        ("x" * 2000, "a line of more than 1000 characters"),
        (HEADER + "\\2-grams:\n" + "-1 a </s>\n" * 3000, "more lines than"),
        (HEADER.replace("-0.30103 a", "-0.30103 " + "a" * 201) + "\\2-grams:\n\\end\\\n", "a word"),
    ],
    ids=["lines", "line", "pairs", "word"],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_arpa_files_have_a_budget(tmp_path, monkeypatch, content, cause, suffix):
    monkeypatch.setattr(bigram_formats, "MOST_WORDS", 10)
    monkeypatch.setattr(bigram_formats, "MOST_PAIRS", 10)
    path = tmp_path / f"model.arpa{suffix}"
    path.write_bytes(gzip.compress(content.encode()) if suffix else content.encode())
    with pytest.raises(AuditError, match=cause):
        BigramModel.from_arpa(path)


def test_a_bomb_is_never_unpacked_whole(tmp_path):
    path = tmp_path / "bomb.arpa.gz"
    path.write_bytes(gzip.compress(b"x" * 2**26))

    def refused():
        with pytest.raises(AuditError, match="characters"):
            BigramModel.from_arpa(path)

    assert traced(refused)[1] < 2**23


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(HEADER.encode() * 99)[:-30]], ids=["no", "cut"]
)
def test_a_damaged_archive_is_named(tmp_path, content):
    path = tmp_path / "model.arpa.gz"
    path.write_bytes(content)
    with pytest.raises(AuditError, match=r"model.arpa.gz is not a usable bigram model"):
        BigramModel.from_arpa(path)
