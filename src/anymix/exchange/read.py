"""Read source folders: parse, audit, then build.  Nothing is built of a folder that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anymix._errors import AuditError, InputError
from anymix._files import read_folder
from anymix.exchange.kinds import NONE, takes_words
from anymix.exchange.manifest import (
    DENSITY,
    LIMITS,
    MANIFEST,
    PREDICTOR,
    Manifest,
    check_facts,
    facts_of,
    parse_manifest,
)
from anymix.exchange.predictor import OnnxPredictor, audit_predictors
from anymix.exchange.tensors import TextDensity, density_from_arrays, load
from anymix.sources import Source


@dataclass(frozen=True)
class ReceivedSource:
    """A folder that passed: its manifest, its source, the SHA-256 of the manifest, its files.

    The files are those that were read and checked, so that a copy of them is what was audited.
    """

    folder: Path
    manifest: Manifest
    source: Source
    sha256: str
    files: Mapping[str, bytes]


def read_sources(
    folders: Sequence[str | Path], *, without_density: bool = False
) -> list[ReceivedSource]:
    """Read source folders that strangers made.

    Everything is checked before anything is built: names, kinds and sizes of the files, hashes,
    manifest, operators and weights of the predictor, arrays of the density.  Predictors are
    parsed and tried in a process with little memory.  Folders without a density are refused, unless
    `without_density` allows them.

    Raises
    ------
    AuditError
        With one sentence that names the folder and what is wrong with it.
    """
    opened = [_open(Path(folder)) for folder in folders]
    densities = [_density(*parts, without_density) for parts in opened]
    audit_predictors(
        [(str(f / PREDICTOR), content[PREDICTOR], expected(m)) for f, content, m in opened]
    )
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


def expected(manifest: Manifest) -> dict[str, Any]:
    """Say what the predictor of this manifest takes and gives."""
    return {
        "dtype": manifest.features[0].dtype,
        "n_features": len(manifest.features),
        "n_columns": 1 if manifest.classes is None else len(manifest.classes),
    }


def _density(folder: Path, content: dict[str, bytes], manifest: Manifest, may_lack: bool) -> Any:
    where, kind = str(folder / DENSITY), manifest.density
    arrays = load(content[DENSITY], where)
    if kind == NONE:
        if not may_lack:
            raise AuditError(where, "holds no density; ask for a folder with one")
        if arrays:
            raise AuditError(where, "holds arrays, though the manifest names no density")
        return None
    density = density_from_arrays(kind, arrays, len(manifest.features), where)
    return TextDensity(density) if takes_words(kind) else density


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
    return ReceivedSource(folder, manifest, source, facts_of(content[MANIFEST]).sha256, content)


def read_alike(folders: Sequence[str | Path]) -> list[ReceivedSource]:
    """Read two source folders or more whose sources can be combined; see `read_sources`."""
    received = read_sources(folders)
    check_alike(received)
    return received


def check_alike(received: Sequence[ReceivedSource]) -> None:
    """Sources must have different names, and take and give the same kind of thing."""
    names = [one.manifest.name for one in received]
    if len(names) < 2:
        raise InputError("one source", "needs no combination; give two source folders or more")
    if len(set(names)) < len(names):
        raise InputError(
            "two of the sources", f"have the same name ({', '.join(names)}); pack again"
        )
    first = received[0].manifest
    for one in received[1:]:
        if one.manifest.task != first.task:
            raise InputError(one.folder, f"is for {one.manifest.task}, the first for {first.task}")
        if _kind_of_labels(one) != _kind_of_labels(received[0]):
            raise InputError(
                one.folder,
                f"has labels that are {_kind_of_labels(one)}, the first source "
                f"{_kind_of_labels(received[0])}; write them alike in all tables, and pack again",
            )
        given = [feature.name for feature in one.manifest.features]
        wanted = [feature.name for feature in first.features]
        if given != wanted:
            raise InputError(
                one.folder,
                f"takes the features {given}, the first source {wanted}; all sources must take the "
                "same, in the same order",
            )


def _kind_of_labels(one: ReceivedSource) -> str:
    classes = one.manifest.classes
    return "whole numbers" if classes is not None and isinstance(classes[0], int) else "words"
