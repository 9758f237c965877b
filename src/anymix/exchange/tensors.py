"""Densities as named arrays and back: the content of density.safetensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.exceptions import AuditError, InputError, quoted
from anymix.exchange.manifest import (
    DENSITY,
    FileFacts,
    facts_of,
    names_of_densities,
    travelling,
)
from anymix.storage import need

Tensors = dict[str, NDArray[Any]]
TOKEN = re.compile("[a-z']+")
LONGEST_SAMPLE = 30


class DocumentDensity:
    """A density of lists of tokens that takes documents: words are `[a-z']+` in lower case."""

    takes = "documents"

    def __init__(self, model: Any):
        self.model = model

    def score_samples(self, X: Any) -> FloatArray:
        """Log-probability of each document, (n,)."""
        tokens = (TOKEN.findall(str(text).lower()) for text in X)
        return np.asarray(self.model.score_samples(tokens))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw documents of known words in random order: lengths are bounded."""
        rng = np.random.default_rng(random_state)
        words = np.asarray(self.model.vocabulary_, dtype=object)
        lengths = rng.integers(1, LONGEST_SAMPLE, n_samples)
        texts = [" ".join(words[rng.integers(words.size, size=n)]) for n in lengths]
        return np.array(texts, dtype=object)

    def __getattr__(self, name: str) -> Any:
        """Return the kind, the arrays and what is revealed of the density inside."""
        if name not in ("kind", "to_arrays", "reveals"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def shareable(self) -> DocumentDensity:
        """Return the form of the density inside that may be handed over."""
        return DocumentDensity(self.model.shareable())


def density_to_arrays(density: Any) -> tuple[str, Tensors]:
    """Return the kind and the arrays of a fitted density or router that can travel."""
    check_travels(density)
    return density.kind, density.to_arrays()


def check_travels(density: Any) -> None:
    """Refuse a density that cannot be packed."""
    if getattr(density, "kind", None) not in travelling():
        raise InputError(
            f"a density of type {type(density).__name__}",
            f"cannot be packed; use {names_of_densities()}",
        )


def density_from_arrays(
    kind: str, arrays: Mapping[str, NDArray[Any]], n_features: int, where: str = DENSITY
) -> Any:
    """Build a density or router from untrusted arrays; an `AuditError` says what is wrong."""
    known = travelling()
    if kind not in known:
        raise AuditError(where, f"is of the kind {quoted(kind)}; known are {tuple(sorted(known))}")
    try:
        return known[kind].from_arrays(arrays, n_features)
    except ValueError as error:
        raise AuditError(where, str(error).rstrip(".")) from error


def dump_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write arrays as safetensors."""
    return dump_message({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def dump_message(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write arrays of any numbers as safetensors; those without axes stay so."""
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return bytes(need("safetensors.numpy").save(whole))


class Part(NamedTuple):
    """A file of arrays that a record names: its name, which no other content has, and its facts."""

    name: str
    facts: FileFacts
    content: bytes


def part_of(stem: str, arrays: Mapping[str, NDArray[Any]]) -> Part:
    """Write arrays as a file that is named by its SHA-256."""
    content = dump_arrays(arrays)
    facts = facts_of(content)
    return Part(f"{stem}-{facts.sha256[:12]}.safetensors", facts, content)


def load_message(content: bytes, where: str, header: int = 2**24) -> Tensors:
    """Read arrays of any type from untrusted safetensors with a header of limited size."""
    library = need("safetensors.numpy")
    # The library trusts a header of up to 100 MB.
    if len(content) < 8 or int.from_bytes(content[:8], "little") > header:
        raise AuditError(where, "has no sound header")
    try:
        arrays: Tensors = library.load(content)
    except Exception as error:
        raise AuditError(where, "is not a safetensors file") from error
    return arrays


def load_arrays(content: bytes, where: str = DENSITY) -> Tensors:
    """Read arrays of float64, int64 or bytes from safetensors."""
    # Headers of ours have some hundred bytes.
    arrays = load_message(content, where, 2**20)
    if any(a.dtype not in (np.float64, np.int64, np.uint8) for a in arrays.values()):
        raise AuditError(where, "holds arrays of another type than F64, I64 and U8")
    return arrays
