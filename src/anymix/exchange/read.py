"""Read source folders: parse, audit, then build.  Nothing is built of a folder that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anymix._files import read_folder
from anymix.exchange.manifest import (
    DENSITY,
    LIMITS,
    MANIFEST,
    PREDICTOR,
    AuditError,
    Manifest,
    check_facts,
    facts_of,
    parse_manifest,
)
from anymix.exchange.predictor import OnnxPredictor, audit_predictors
from anymix.exchange.tensors import from_tensors, load
from anymix.sources import Source


@dataclass(frozen=True)
class ReceivedSource:
    """A folder that passed: its manifest, its source, and the SHA-256 of the manifest."""

    folder: Path
    manifest: Manifest
    source: Source
    sha256: str


def read_sources(folders: Sequence[str | Path]) -> list[ReceivedSource]:
    """Read source folders that strangers made.

    Everything is checked before anything is built: names, kinds and sizes of the files, hashes,
    manifest, operators and weights of the predictor, arrays of the density.  Predictors are
    parsed and tried in a process with little memory.

    Raises
    ------
    AuditError
        With one sentence that names the folder and what is wrong with it.
    """
    opened = [_open(Path(folder)) for folder in folders]
    densities = [_density(*parts) for parts in opened]
    audit_predictors([(str(f / PREDICTOR), content[PREDICTOR], due(m)) for f, content, m in opened])
    return [_build(*parts, density) for parts, density in zip(opened, densities, strict=True)]


def read_source(folder: str | Path) -> Source:
    """Read one source folder; see `read_sources`."""
    return read_sources([folder])[0].source


def _open(folder: Path) -> tuple[Path, dict[str, bytes], Manifest]:
    content = read_folder(folder, LIMITS)
    try:
        manifest = parse_manifest(content[MANIFEST])
    except AuditError as error:
        raise AuditError(folder / error.where, error.cause) from error
    for name in (PREDICTOR, DENSITY):
        check_facts(folder / name, content[name], manifest.files[name])
    return folder, content, manifest


def due(manifest: Manifest) -> dict[str, Any]:
    """Say what the predictor of this manifest takes and gives."""
    return {
        "dtype": manifest.features[0].dtype,
        "n_features": len(manifest.features),
        "n_columns": 1 if manifest.classes is None else len(manifest.classes),
    }


def _density(folder: Path, content: dict[str, bytes], manifest: Manifest) -> Any:
    try:
        return from_tensors(manifest.density, load(content[DENSITY]), len(manifest.features))
    except AuditError as error:
        raise AuditError(folder / error.where, error.cause) from error


def _build(
    folder: Path, content: dict[str, bytes], manifest: Manifest, density: Any
) -> ReceivedSource:
    own = manifest.own_loss
    source = Source(
        manifest.name,
        OnnxPredictor(content[PREDICTOR], manifest.features[0].dtype),
        density,
        own_loss=None if own is None else own.value,
        classes=manifest.classes,
        feature_names=[feature.name for feature in manifest.features],
        n_rows=manifest.n_rows,
    )
    return ReceivedSource(folder, manifest, source, facts_of(content[MANIFEST]).sha256)
