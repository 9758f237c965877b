"""The parts of a model that are files of their own: its sources, and a classifier of sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray
from anymix.exceptions import AuditError
from anymix.exchange import (
    LIMITS,
    FileFacts,
    ReceivedSource,
    as_one_graph,
    check_facts,
    density_from_arrays,
    density_to_arrays,
    load_arrays,
    pack_source,
    read_sources,
)
from anymix.sources import SecondRound, Source
from anymix.storage import read_file, read_folder, write_folder

ROUTER_LIMIT = 2**28
# At so many rows a graph is compared with the estimator that it stands for.
N_ROWS = 256


def pack_sources(model: Any) -> list[ReceivedSource]:
    """Pack the sources of a fitted model as they are, and read them as anyone would.

    Densities keep their rows and predictors the type of numbers in which their graph is nearest to
    them: the model is to answer as before, not to be handed to strangers.
    """
    router_to_arrays(model)  # who cannot be written says so before anything else does
    rows = None if model.router_ is None else _typical_rows(model)
    known: dict[int, Any] = {}
    with TemporaryDirectory() as place:
        folders = [Path(place) / str(k) for k in range(len(model.sources_))]
        for folder, source in zip(folders, model.sources_, strict=True):
            some = rows if source.density is None else None
            # A predictor that came from a folder is its file.
            predictor = getattr(source.predictor, "content", source.predictor)
            source = replace(source, predictor=predictor)
            if isinstance(predictor, SecondRound):
                source = as_one_graph(source, source.density, some, known)
            pack_source(
                source,
                folder,
                keep_rows=True,
                without_density=True,
                dtype="nearest",
                rows=some,
                measure=False,
            )
        return read_sources(folders, without_density=True)


def _typical_rows(model: Any) -> FloatArray | None:
    """Draw rows as wide as those that the classifier of sources has seen."""
    d = getattr(model, "n_features_in_", None)
    if d is None:
        return None
    router = density_to_arrays(model.router_)[1] if len(model.sources_) > 1 else {}
    noise = np.random.default_rng(0).standard_normal((N_ROWS, d))
    return np.asarray(router.get("mean", 0.0) + router.get("scale", 1.0) * noise)


def without_generated_names(source: Source) -> Source:
    """Take the names of columns off a source that were only made up to pack it: x0, x1, ..."""
    made_up = [f"x{i}" for i in range(len(source.feature_names or ()))]
    return replace(source, feature_names=None) if source.feature_names == made_up else source


def name_columns(model: Any) -> None:
    """Tell densities the names of the columns that the model was fitted with.

    They were fitted with them, too, and would warn of names that they do not know; a table with
    words or gaps they get as plain numbers.
    """
    names = vars(model).get("feature_names_in_") if model.columns_ is None else None
    for part in (model.router_, *(source.density for source in model.sources_)):
        if names is not None and hasattr(part, "n_features_in_"):
            part.feature_names_in_ = names


def described(one: ReceivedSource, folder: str) -> dict[str, Any]:
    """Say in the model's record which source this is."""
    return {"folder": folder, "sha256": one.sha256, **vars(one.manifest)}


def write_source(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a source folder, unless it is there and the same, byte by byte.

    One that has its name and other content is of a model that was changed or broken, and goes.
    """
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
    """Write the classifier of sources that took the place of densities; None if there is none."""
    several = len(model.sources_) > 1
    if model.router_ is None or not several:
        return None
    return density_to_arrays(model.router_)[1]


def read_router(path: Path, stated: FileFacts, n_features: int) -> Any:
    """Read the classifier of sources that the record states."""
    content = read_file(path, ROUTER_LIMIT)
    check_facts(path, content, stated)
    arrays = load_arrays(content, str(path))
    return density_from_arrays("domain_classifier", arrays, n_features, str(path))
