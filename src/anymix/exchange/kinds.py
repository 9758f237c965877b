"""What can travel: everything exported from the densities that has a `kind`.

A new density that packs itself needs its file and its line in `anymix.densities.__all__`; nothing
here has to be changed.
"""

from __future__ import annotations

from typing import Any

from anymix import densities

# A source of a model folder may have no density: one router serves all sources there.
NONE = "none"


def travelling() -> dict[str, Any]:
    """Return the class of each kind, densities and routers.

    Examples
    --------
    >>> sorted(travelling())
    ['bigram', 'contrastive', 'domain_classifier', 'gaussian_kernels', 'gaussian_mixture', 'text']
    """
    exported = [getattr(densities, name) for name in densities.__all__]
    return {found.kind: found for found in exported if hasattr(found, "kind")}


def density_kinds() -> dict[str, Any]:
    """Return the classes that can be a part of one source: those with a density.

    Examples
    --------
    >>> sorted(density_kinds())
    ['bigram', 'contrastive', 'gaussian_kernels', 'gaussian_mixture', 'text']
    """
    return {kind: found for kind, found in travelling().items() if hasattr(found, "score_samples")}


def takes_words(kind: str) -> bool:
    """Whether rows of this kind are documents.

    Examples
    --------
    >>> takes_words("bigram"), takes_words("gaussian_mixture")
    (True, False)
    """
    return bool(travelling()[kind].takes == "tokens")


def names_of_densities() -> str:
    """Say what can be packed.

    Examples
    --------
    >>> names_of_densities()
    'BigramModel, ContrastiveDensity, GaussianKDE, GaussianMixtureDensity or TextDensity'
    """
    *first, last = sorted(found.__name__ for found in density_kinds().values())
    return f"{', '.join(first)} or {last}" if first else last
