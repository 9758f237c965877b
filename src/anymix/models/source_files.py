"""The parts of a model in separate files: its sources, and a classifier of sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix.exceptions import AuditError, InputError
from anymix.exchange import (
    LIMITS,
    ReceivedSource,
    as_one_graph,
    check_structure,
    density_to_arrays,
    pack_source,
    read_sources,
)
from anymix.sources import SecondRound, Source
from anymix.storage import read_folder, write_folder
from anymix.tables import Column, Columns

OTHER_SOURCE = "is not the source that the model was made of"
# At so many rows a graph is compared with the estimator that it stands for.
N_ROWS = 256


class TrainingData(NamedTuple):
    """Rows and targets that sources are compared with before they are shared, if at hand."""

    rows: Any = None
    targets: Any = None


def pack_sources(model: Any, share: TrainingData | None = None) -> list[ReceivedSource]:
    """Pack the sources as they are, with rows and types of numbers, and read them as untrusted.

    A generalist comes last.  To `share` them, what holds training rows is refused, and a density
    that no weight needs is left out.
    """
    sources = [*model.sources_, *([] if model.generalist_ is None else [model.generalist_])]
    arrays = router_to_arrays(model)  # one that cannot be written is refused before anything else
    rows, d = None, getattr(model, "n_features_in_", None)
    if model.router_ is not None and d is not None:
        # Rows as wide as those that the classifier of sources has seen.
        mean, scale = (arrays or {}).get("mean", 0.0), (arrays or {}).get("scale", 1.0)
        rows = np.asarray(mean + scale * np.random.default_rng(0).standard_normal((N_ROWS, d)))
    known: dict[int, Any] = {}
    if getattr(model, "rows_had_missing_", False):
        sources = [_of_numbers(source, d) for source in sources]
    with TemporaryDirectory() as place:
        folders = [Path(place) / str(k) for k in range(len(sources))]
        for folder, source in zip(folders, sources, strict=True):
            if share is not None and source is not model.generalist_:
                source = _without_rows(source, arrays is None and len(model.sources_) > 1)
            some = rows if source.density is None else None
            if source is model.generalist_ and rows is None and d is not None:
                # It has no density of its own; those of the sources were packed before.
                drawn = model.sources_[0].density.sample(N_ROWS, random_state=0)
                some = np.asarray(drawn, dtype=float)
            # A predictor that came from a folder is its file.
            predictor = getattr(source.predictor, "content", source.predictor)
            source = replace(source, predictor=predictor)
            if isinstance(predictor, SecondRound):
                source = as_one_graph(source, source.density, some, known)
            compared = share is not None and share.rows is not None
            pack_source(
                source,
                folder,
                keep_rows=True,
                without_density=True,
                dtype="nearest",
                rows=share.rows if compared and share else some,
                targets=share.targets if compared and share else None,
                measure=compared,
            )
        received = read_sources(folders, without_density=True)
    if share is not None and share.rows is None:
        check_shared(received)
    return received


def _of_numbers(source: Source, d: int | None) -> Source:
    """Say of a source that its columns are numbers, in which values may be missing."""
    names = source.feature_names or [f"x{i}" for i in range(d or 0)]
    return replace(source, columns=Columns(tuple(Column(str(name)) for name in names)))


def packed_generalist(generalist: Source, density: Any) -> ReceivedSource:
    """Pack a generalist, by rows that a source's density draws, and read it as untrusted."""
    drawn = np.asarray(density.sample(N_ROWS, random_state=0), dtype=float)
    with TemporaryDirectory() as place:
        folder = Path(place) / "generalist"
        known: dict[str, Any] = {"keep_rows": True, "without_density": True, "dtype": "nearest"}
        pack_source(generalist, folder, rows=drawn, **known)
        return read_sources([folder], without_density=True)[0]


def check_shared(received: Sequence[ReceivedSource]) -> None:
    """Refuse to share sources that hold rows by their kind."""
    for one in received:
        _without_rows(one.source, needed=True)
        check_structure(one.manifest.name, one.source.predictor, one.manifest.reveals)


def _without_rows(source: Source, needed: bool) -> Source:
    """Return a source that may travel: a density that is its training rows is refused."""
    density: Any = source.density if needed else None
    if density is None:
        return replace(source, density=None)
    if hasattr(density, "shareable") and density.shareable() is not density:
        raise InputError(
            f"the density of {source.name!r}",
            f"is training rows or rare words as they are ({density.reveals()}); learn with "
            "density=DomainClassifier(), GaussianMixtureDensity() or ContrastiveDensity(), or from "
            "sources that were packed",
        )
    return source


def without_generated_names(source: Source) -> Source:
    """Take the names of columns off a source that were only made up to pack it: x0, x1, ..."""
    made_up = [f"x{i}" for i in range(len(source.feature_names or ()))]
    return replace(source, feature_names=None) if source.feature_names == made_up else source


def read_generalist(folder: Path, sha256: str, model: Any) -> ReceivedSource:
    """Audit the predictor of all rows that sources consult, and give it to its model."""
    (one,) = read_sources([folder], without_density=True)
    if one.sha256 != sha256:
        raise AuditError(folder, OTHER_SOURCE)
    first, source = model.sources[0], without_generated_names(one.source)
    labels = getattr(model, "classes_", None)
    if one.manifest.task != ("regression" if labels is None else "classification"):
        raise ValueError("the task is not that of the generalist")
    if labels is not None and not set(source.labels.tolist()) <= set(labels.tolist()):
        raise ValueError("the classes are not those of the generalist")
    features = (first.feature_names, first.columns), (source.feature_names, source.columns)
    n = vars(model).get("n_features_in_") if first.columns is None else len(first.columns)
    wide = n is not None and not one.manifest.is_text and len(one.manifest.features) != n
    if wide or (features[0] != features[1] and None not in features[1]):
        raise ValueError("the features are not those of the generalist")
    model.generalist_ = source
    return one


def write_source(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a source folder, unless it is there and the same; one of other content is replaced."""
    if folder.exists():
        try:
            if read_folder(folder, LIMITS) == files:
                return
        except AuditError:
            pass
        for name in LIMITS:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
    write_folder(folder, files)


def router_to_arrays(model: Any) -> dict[str, NDArray[Any]] | None:
    """Write the classifier of sources that replaces the densities; None if there is none."""
    if model.router_ is None or len(model.sources_) < 2:
        return None
    return density_to_arrays(model.router_)[1]


def check_sources(
    model: Any, received: Sequence[ReceivedSource], entries: Sequence[dict[str, Any]]
) -> None:
    """Check that labels and features of the record are those of the manifests."""
    for one, entry in zip(received, entries, strict=True):
        if one.sha256 != entry["sha256"]:
            raise AuditError(one.folder, OTHER_SOURCE)
    manifests = [one.manifest for one in received]
    labels = getattr(model, "classes_", None)
    if {m.task for m in manifests} != {"regression" if labels is None else "classification"}:
        raise ValueError("the task is not that of the sources")
    known = {label for m in manifests for label in m.classes or ()}
    if labels is not None and labels.tolist() != sorted(known):
        raise ValueError("the classes are not those of the sources")
    n, names = (getattr(model, name, None) for name in ("n_features_in_", "feature_names_in_"))
    for manifest, source in zip(manifests, model.sources, strict=True):
        if n is not None and not manifest.is_text and len(manifest.features) != n:
            raise ValueError(f"there are {n} features; the sources take {len(manifest.features)}")
        stated = source.feature_names
        if names is not None and stated is not None and stated != list(names):
            raise ValueError("the names of the features are not those of the sources")
    # A table is coded once for all sources.
    codes = [[(f.name, getattr(f, "categories", None)) for f in m.features] for m in manifests]
    if any(m.columns is not None for m in manifests) and any(each != codes[0] for each in codes):
        raise ValueError("the sources do not list the same columns and categories")
