"""Read source folders: parse, audit, then build.  Nothing is built of a folder that fails."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import some_rows
from anymix.core import check_n_sources
from anymix.exceptions import AuditError, InputError, quoted, visible
from anymix.exchange.manifest import (
    DENSITY,
    LIMITS,
    MANIFEST,
    MOST_CLASSES,
    NONE,
    PREDICTOR,
    Feature,
    Manifest,
    check_facts,
    facts_of,
    parse_manifest,
    same_codes,
)
from anymix.exchange.predictor import audit
from anymix.exchange.source_names import check_different
from anymix.exchange.tensors import DocumentDensity, density_from_arrays, load_arrays
from anymix.sandbox import Refused
from anymix.sources import Source
from anymix.storage import read_folder


def all_classes(received: Sequence[ReceivedSource]) -> NDArray[Any] | None:
    """Return the labels that any source knows, sorted; None for a regression."""
    if received[0].manifest.classes is None:
        return None
    found = np.unique(np.concatenate([np.asarray(one.manifest.classes) for one in received]))
    if found.size > MOST_CLASSES:
        raise InputError(
            f"sources of {found.size} classes together",
            f"cannot be combined, but of {MOST_CLASSES} at most; leave the one out that has most",
        )
    return found


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse a label that no source knows, with its row."""
    unknown = np.flatnonzero(~np.isin(y, classes))
    if unknown.size:
        some = [*map(str, classes[:20].tolist()), *["others"] * (classes.size > 20)]
        label, known = y[unknown].tolist()[0], ", ".join(some)
        raise InputError(
            f"row {unknown[0] + 1}",
            f"has the label {label!r}, which no source knows (they know {known}); leave such rows "
            "out, or let a source be trained on the label",
        )


def warn_of_other_labels(received: Sequence[ReceivedSource], stacklevel: int = 2) -> None:
    """Warn of two sources without a common label, which most likely spell labels differently."""
    for one, other in combinations(received, 2):
        mine, theirs = one.manifest.classes, other.manifest.classes
        if mine is None or theirs is None or set(mine) & set(theirs):
            continue
        names = f"{one.manifest.name} and {other.manifest.name}"
        some = [
            ", ".join([*map(visible, classes[:3]), *["..."] * (len(classes) > 3)])
            for classes in (mine, theirs)
        ]
        warnings.warn(
            f"{names} have no label in common: {' and '.join(some)}; if they mean the same, write "
            "them alike in all tables, and pack again.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
        return


# So many rows are drawn from each density to try predictors at, and so many in all.
OWN_ROWS, ALL_ROWS = 64, 512
# Rows beyond are not tried for their answers: float32 does not hold what is made of them.
FAR = 1e15


@dataclass(frozen=True)
class ReceivedSource:
    """An audited folder: its manifest, source, the SHA-256 of the manifest, and its files.

    The files are those that were read and checked, so that a copy of them is what was audited.
    """

    folder: Path
    manifest: Manifest
    source: Source
    sha256: str
    files: Mapping[str, bytes]


def read_sources(
    folders: Sequence[str | Path], *, without_density: bool = False, in_process: bool = False
) -> list[ReceivedSource]:
    """Read untrusted source folders.

    Everything is checked before anything is built: names, kinds and sizes of the files, hashes,
    manifest, operators and weights of the predictor, arrays of the density.  Predictors are
    parsed, tried at rows drawn from all densities, and run in a process that has little memory and
    time and no files; `in_process` runs them here instead, a little faster, and is for folders of
    one's own.  Folders without a density are refused, unless `without_density` allows them.

    Raises
    ------
    AuditError
        With one sentence that names the folder and what is wrong with it.
    """
    opened = [_open(Path(folder), without_density) for folder in folders]
    rows = [_typical_rows(Path(at), *one[1:]) for at, one in zip(folders, opened, strict=True)]
    received = []
    for k, (folder, (content, manifest, density)) in enumerate(zip(folders, opened, strict=True)):
        # Rows of the other sources, as far as they have the same columns.
        shape = rows[k].shape[1:]
        alike = [r for j, r in enumerate(rows) if j != k and r.shape[1:] == shape and len(r)]
        some = max(ALL_ROWS // max(len(alike), 1), 1)
        others = np.concatenate([rows[k][:0], *(r[:some] for r in alike)])[:ALL_ROWS]
        source = _audited(Path(folder), content, manifest, density, (rows[k], others))
        source.predictor.in_process = in_process
        source.predictor.owner = manifest.name
        digest = facts_of(content[MANIFEST]).sha256
        received.append(ReceivedSource(Path(folder), manifest, source, digest, content))
    return received


def read_source(folder: str | Path) -> Source:
    """Read one source folder; see `read_sources`."""
    return read_sources([folder])[0].source


def _open(folder: Path, may_lack: bool) -> tuple[dict[str, bytes], Manifest, Any]:
    """Return files, manifest and density, if they agree."""
    content = read_folder(folder, LIMITS)
    try:
        manifest = parse_manifest(content[MANIFEST])
    except AuditError as error:
        raise AuditError(folder / error.where, error.cause) from error
    for name in (PREDICTOR, DENSITY):
        check_facts(folder / name, content[name], manifest.files[name])
    where, kind = str(folder / DENSITY), manifest.density
    arrays = load_arrays(content[DENSITY], where)
    if kind == NONE:
        if not may_lack:
            raise AuditError(where, "holds no density; ask for a folder with one")
        if arrays:
            raise AuditError(where, "holds arrays, though the manifest names no density")
        return content, manifest, None
    density = density_from_arrays(kind, arrays, len(manifest.features), where)
    if manifest.columns is not None and not same_codes(manifest.columns, density):
        raise AuditError(where, "has other columns or categories than the manifest states")
    return content, manifest, DocumentDensity(density) if manifest.is_text else density


def _typical_rows(folder: Path, manifest: Manifest, density: Any) -> NDArray[Any]:
    """Draw rows, or documents, as the density has them; none without a density.

    A density that cannot score what it draws is refused.
    """
    if density is None:
        return np.zeros((0, len(manifest.features)))
    try:
        rows = density.sample(OWN_ROWS, random_state=0)
        scored = np.isfinite(density.score_samples(rows)).all()
    except ValueError as error:
        raise AuditError(folder / DENSITY, f"cannot be used: {error}".rstrip(".")) from error
    if not scored:
        raise AuditError(folder / DENSITY, "has no finite density at rows drawn from it")
    if rows.dtype == object:
        return np.asarray(rows)
    # Missing values are allowed where a column says so, and of categories, which may be new.
    may_lack = [f.gaps or f.categories is not None for f in manifest.features]
    unfit = (np.abs(rows) >= FAR) | (np.isnan(rows) & ~np.array(may_lack, dtype=bool))
    return np.asarray(rows[~unfit.any(axis=1)])


def _audited(
    folder: Path, content: dict[str, bytes], manifest: Manifest, density: Any, rows: tuple[Any, Any]
) -> Source:
    """Audit the predictor at its own rows and at those of others, and build the source."""
    own, dtype = manifest.own_loss, manifest.features[0].dtype
    n_classes = None if manifest.classes is None else len(manifest.classes)
    try:
        predictor = audit(content[PREDICTOR], dtype, len(manifest.features), n_classes, *rows)
    except Refused as refusal:
        raise AuditError(folder / PREDICTOR, f"cannot be trusted: {refusal}") from refusal
    return Source(
        manifest.name,
        predictor,
        density,
        own_loss=None if own is None else own.value,
        classes=manifest.classes,
        feature_names=[feature.name for feature in manifest.features],
        n_rows=manifest.n_rows,
        columns=manifest.columns,
        own_rows=None if own is None else own.n_rows,
    )


def judge_at(received: Sequence[ReceivedSource], X: Any) -> None:
    """Refuse a source whose predictions for some of these rows depend on the other rows.

    A predictor that behaves differently in checks would make the certificate worthless, so it is
    checked on the rows that the certificate is from.
    """
    rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    chosen = some_rows(rows, ALL_ROWS)
    for one in received:
        judge = getattr(one.source.predictor, "judge", None)
        if judge is None:
            continue
        try:
            judge(chosen, one.manifest.classes is not None)
        except Refused as refusal:
            raise AuditError(one.folder / PREDICTOR, f"cannot be trusted: {refusal}") from refusal


def read_alike(folders: Sequence[str | Path]) -> list[ReceivedSource]:
    """Read two source folders or more whose sources can be combined; see `read_sources`."""
    check_n_sources(len(folders))
    received = read_sources(folders)
    check_alike(received)
    warn_of_other_labels(received)
    return received


def check_alike(received: Sequence[ReceivedSource]) -> None:
    """Check that sources have different names, and the same inputs and outputs."""
    names = [one.manifest.name for one in received]
    if len(names) < 2:
        raise InputError("one source", "needs no combination; give two source folders or more")
    check_different(names, "sources", "pack again under another name")
    first = received[0].manifest
    for one in received[1:]:
        if one.manifest.task != first.task:
            raise InputError(
                one.folder,
                f"is for {one.manifest.task}, the first for {first.task}; give sources of one task",
            )
        kind, wanted_kind = (
            "whole numbers" if isinstance((m.classes or ("",))[0], int) else "words"
            for m in (one.manifest, first)
        )
        if kind != wanted_kind:
            raise InputError(
                one.folder,
                f"has labels that are {kind}, the first source {wanted_kind}; write them alike in "
                "all tables, and pack again",
            )
        given = [feature.name for feature in one.manifest.features]
        wanted = [feature.name for feature in first.features]
        if given != wanted:
            raise InputError(
                one.folder,
                f"takes the features {given}, the first source {wanted}; all sources must take the "
                "same, in the same order; pack again with --features",
            )
        for feature, due in zip(one.manifest.features, first.features, strict=True):
            _check_same_codes(f"{one.folder}: column {quoted(feature.name)}", feature, due)
        # log D_k/U can be compared between sources that share U, and with no plain density.
        references = [getattr(r.source.density, "reference_", None) for r in (one, received[0])]
        mine, other = (None if found is None else found.to_dict() for found in references)
        if mine != other:
            raise InputError(
                one.folder,
                "has a density against another reference than the first source, so that the two "
                "cannot be compared; pack all sources with one reference file (anymix reference)",
            )


def _check_same_codes(where: str, feature: Feature, due: Feature) -> None:
    """A table is coded once for all sources, so a word must have one code in all of them."""
    if feature.categories == due.categories:
        return
    kinds = ["numbers" if f.categories is None else "words" for f in (feature, due)]
    differ = f"holds {kinds[0]}, in the first source {kinds[1]}"
    if kinds[0] == kinds[1]:
        differ = "has other categories than in the first source"
    remedy = "pack all sources with one reference file (anymix reference)"
    raise InputError(where, f"{differ}; {remedy}")
