"""Densities as named arrays and back: what travels in density.safetensors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from anymix._arrays import FloatArray
from anymix.densities import BigramModel, BigramTable, GaussianKDE, GaussianMixtureDensity, cluster
from anymix.exchange._optional import need
from anymix.exchange.manifest import DENSITY, AuditError

Tensors = dict[str, NDArray[Any]]
NAMES = {
    "gaussian_kernels": {"centres", "weights", "variances", "bandwidth"},
    "gaussian_mixture": {"weights", "means", "covariances"},
    "bigram": {"log_unigram", "log_backoff", "keys", "log_listed", "words"},
}
TOKEN = re.compile("[a-z']+")


class TextDensity:
    """A bigram model that takes documents: words are `[a-z']+` in lower case."""

    def __init__(self, model: BigramModel):
        self.model = model

    def score_samples(self, X: Any) -> FloatArray:
        """Log-probability of each document, (n,)."""
        return self.model.score_samples([TOKEN.findall(str(text).lower()) for text in X])


def share_centres(density: GaussianKDE, n_centres: int | None = None, seed: int = 0) -> GaussianKDE:
    """Replace the rows of a kernel estimate by k-means centres of five rows or more.

    By default one centre for ten rows, but 500 at most.
    """
    if density.variances_.any():
        return density
    n = n_centres or min(500, max(1, len(density.weights_) // 10))
    rng = np.random.RandomState(seed)
    kernels = cluster(density.centres_, density.weights_, n, rng)
    return _kernels(*kernels, density.bandwidth_)


def to_tensors(density: Any) -> tuple[str, Tensors, str]:
    """Return the kind, the arrays, and a sentence on what they reveal."""
    if isinstance(density, GaussianKDE):
        return "gaussian_kernels", *_from_kernels(density)
    if isinstance(density, GaussianMixtureDensity):
        mixture = density.mixture_
        arrays = {"weights": mixture.weights_, "means": mixture.means_}
        arrays["covariances"] = _full(mixture.covariances_, mixture.covariance_type, mixture.means_)
        n = len(mixture.weights_)
        return "gaussian_mixture", arrays, f"means and covariances of {n} groups of rows; no row."
    model = density.model if isinstance(density, TextDensity) else density
    if isinstance(model, BigramModel):
        return "bigram", *_from_bigrams(model)
    if hasattr(density, "log_responsibilities"):
        raise ValueError(
            "a DomainClassifier has seen the rows of all sources, so it is no part of one source; "
            "pack a GaussianKDE, a GaussianMixtureDensity or a BigramModel."
        )
    raise ValueError(
        f"a density of type {type(density).__name__} cannot be packed; use GaussianKDE, "
        "GaussianMixtureDensity or BigramModel."
    )


def _from_kernels(density: GaussianKDE) -> tuple[Tensors, str]:
    arrays = {
        "centres": density.centres_,
        "weights": density.weights_,
        "variances": density.variances_,
        "bandwidth": np.array([density.bandwidth_]),
    }
    n = len(density.weights_)
    if density.variances_.any():
        return arrays, f"{n} centres, each the mean of five rows or more; no row as it is."
    return arrays, f"{n} training rows, exactly as they are."


def _full(covariances: FloatArray, kind: str, means: FloatArray) -> FloatArray:
    """Write covariances of any shape as (k, d, d)."""
    k, d = means.shape
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.broadcast_to(covariances, (k, d, d)).copy()
    diagonal = covariances if kind == "diag" else np.repeat(covariances[:, None], d, axis=1)
    return np.asarray(diagonal[:, :, None] * np.eye(d))


def _from_bigrams(model: BigramModel) -> tuple[Tensors, str]:
    table = model.table_
    words = json.dumps({"words": model.vocabulary_, "unknown": model.unknown})
    arrays: Tensors = {
        "log_unigram": table.log_unigram,
        "log_backoff": table.log_backoff,
        "keys": table.keys,
        "log_listed": table.log_listed,
        "words": np.frombuffer(words.encode(), dtype=np.uint8),
    }
    return arrays, (
        f"{len(model.vocabulary_)} words and {len(table.keys)} pairs of words, each pair met "
        f"{model.min_count} time(s) or more in training."
    )


def dump(arrays: Tensors) -> bytes:
    """Write arrays as safetensors."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return bytes(need("safetensors.numpy").save(whole))


def load(content: bytes, where: str = DENSITY) -> Tensors:
    """Read arrays of float64, int64 or bytes from safetensors."""
    library = need("safetensors.numpy")
    # The library trusts a header of up to 100 MB; those of ours have some hundred bytes.
    if len(content) < 8 or int.from_bytes(content[:8], "little") > 2**20:
        raise AuditError(where, "has no sound header")
    try:
        arrays: Tensors = library.load(content)
    except Exception as error:
        raise AuditError(where, "is not a safetensors file") from error
    if any(a.dtype not in (np.float64, np.int64, np.uint8) for a in arrays.values()):
        raise AuditError(where, "holds arrays of another type than F64, I64 and U8")
    return arrays


def from_tensors(kind: str, arrays: Tensors, n_features: int) -> Any:
    """Build a density from arrays that a stranger wrote, or refuse them."""
    _refuse_unless(set(arrays) == NAMES[kind], f"must hold the arrays {sorted(NAMES[kind])}")
    logs = {"log_unigram", "log_backoff", "log_listed"}
    for name, array in arrays.items():
        # A context whose words are all listed has no back-off: log 0 is right there.
        finite = not np.isnan(array).any() and array.max(initial=0) < np.inf
        if name not in logs:
            finite = bool(np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e100)
        _refuse_unless(
            finite or array.dtype.kind != "f", f"has numbers in {name} that are not finite"
        )
    if kind == "bigram":
        return _read_bigrams(arrays)
    weights = arrays["weights"]
    sound = weights.ndim == 1 and weights.size and weights.dtype.kind == "f"
    _refuse_unless(
        sound and weights.min() > 0 and abs(weights.sum() - 1) < 1e-6,
        "must have positive weights that sum to 1",
    )
    read = _read_kernels if kind == "gaussian_kernels" else _read_mixture
    return read(arrays, weights.size, n_features)


def _refuse_unless(condition: Any, complaint: str) -> None:
    if not condition:
        raise AuditError(DENSITY, complaint)


def _check_shapes(arrays: Mapping[str, NDArray[Any]], **shapes: tuple[int, ...]) -> None:
    for name, shape in shapes.items():
        found = arrays[name]
        right = found.shape == shape and found.dtype == np.float64
        _refuse_unless(right, f"has {name} of shape {found.shape}, where {shape} is due")


def _read_kernels(arrays: Tensors, n: int, d: int) -> GaussianKDE:
    _check_shapes(arrays, centres=(n, d), variances=(n,), bandwidth=(1,))
    variances, bandwidth = arrays["variances"], float(arrays["bandwidth"][0])
    _refuse_unless(variances.min() >= 0 and bandwidth > 1e-50, "has a bandwidth of zero or less")
    return _kernels(arrays["centres"], arrays["weights"], variances, bandwidth)


def _kernels(centres: Any, weights: Any, variances: Any, bandwidth: float) -> GaussianKDE:
    density = GaussianKDE(bandwidth, centres=len(weights) if variances.any() else None)
    density.centres_, density.weights_, density.variances_ = centres, weights, variances
    density.bandwidth_, density.n_features_in_ = bandwidth, centres.shape[1]
    return density


def _read_mixture(arrays: Tensors, n: int, d: int) -> GaussianMixtureDensity:
    _check_shapes(arrays, means=(n, d), covariances=(n, d, d))
    mixture = GaussianMixture(n)
    mixture.weights_, mixture.means_ = arrays["weights"], arrays["means"]
    mixture.covariances_ = arrays["covariances"]
    mixture.precisions_cholesky_ = _whiteners(arrays["covariances"])
    mixture.converged_, mixture.n_features_in_ = True, d
    density = GaussianMixtureDensity(n)
    density.mixture_, density.n_components_, density.n_features_in_ = mixture, n, d
    return density


def _whiteners(covariances: FloatArray) -> FloatArray:
    """P_j with P_j P_j' = S_j⁻¹, shape (k, d, d)."""
    _refuse_unless(
        np.allclose(covariances, covariances.mT), "has covariances that are not symmetric"
    )
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(covariances)).mT)
    except np.linalg.LinAlgError as error:
        raise AuditError(DENSITY, "has covariances that are not positive definite") from error


def _read_bigrams(arrays: Tensors) -> TextDensity:
    _refuse_unless(arrays["words"].dtype == np.uint8, "has words that are not text")
    words, unknown = _words(arrays["words"].tobytes())
    size, n = len(words) + 1, arrays["keys"].size
    _check_shapes(arrays, log_unigram=(size,), log_backoff=(size,), log_listed=(n,))
    keys = arrays["keys"]
    ordered = keys.dtype == np.int64 and keys.ndim == 1 and (np.diff(keys) > 0).all()
    inside = n == 0 or (keys[0] >= 0 and keys[-1] < size**2)
    _refuse_unless(ordered and inside, "has pairs of words that are not in order")
    table = BigramTable(arrays["log_unigram"], arrays["log_backoff"], keys, arrays["log_listed"])
    sums = table.sums()
    _refuse_unless(np.abs(sums - 1).max() < 1e-3, "has probabilities that do not sum to 1")
    model = BigramModel(unknown=unknown, vocabulary=words)
    model.vocabulary_, model.table_ = words, table
    return TextDensity(model)


def _words(content: bytes) -> tuple[list[str], str]:
    from anymix.exchange.manifest import parse_json

    data = parse_json(content, f"the list of words in {DENSITY}")
    sound = isinstance(data, dict) and set(data) == {"words", "unknown"}
    _refuse_unless(sound and isinstance(data["words"], list), "has no sound list of words")
    words, unknown = data["words"], data["unknown"]
    texts = all(isinstance(word, str) and 0 < len(word) <= 200 for word in words)
    _refuse_unless(texts and len(set(words)) == len(words) > 0, "has an odd or repeated word")
    known = unknown == "drop" or (unknown == "map" and "<unk>" in words)
    _refuse_unless(known, "does not say what to do with unknown words")
    return words, unknown
