"""Write the model folder; docs/format.md describes its files.

Parts are named by their SHA-256 and written first; model.json, which names them, is replaced at
the end in one step.  So a run that is killed leaves the old model whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anymix.core import plain
from anymix.exceptions import AuditError
from anymix.exchange import LIMITS, Part, ReceivedSource, all_classes, check_facts, part_of
from anymix.models.fold_scores_file import fold_scores_to_arrays
from anymix.models.model_folder import read_model
from anymix.models.model_record import (
    FOLD_SCORES,
    GENERALIST,
    MEMBERS,
    TASKS,
    check_kind,
    model_to_dict,
)
from anymix.models.saved_records import FILES
from anymix.models.source_files import (
    TrainingData,
    check_shared,
    pack_sources,
    packed_generalist,
    router_to_arrays,
    write_source,
)
from anymix.models.tables_file import novelty_to_arrays, tables_to_arrays
from anymix.models.target_folder import (
    RECORD,
    ReservedFolder,
    check_place,
    clean,
    reserved,
    source_folder,
)
from anymix.sources import FitEvidence, FitResult, LearningSettings, Source
from anymix.storage import read_file, read_folder, replacing


def save(
    model: Any, folder: str | Path, *, share: bool = False, rows: Any = None, targets: Any = None
) -> None:
    """Write a fitted model into a folder: sources, densities and all that was learned.

    Predictors are written as ONNX graphs, densities as plain numbers, so that the folder can be
    read where nothing but anymix is trusted.  The folder replaces a model that is there, and
    nothing else.

    By default the folder has everything that `load` needs, and so it reveals single
    rows: a kernel density *is* its training rows, also those of the folds; the tables hold the
    exact target of each held-out row, in the order of `fit`, and what each source predicts for it;
    hashes of rows narrow down the rows for anyone who can list the possible ones.  Keep it where
    these rows may be seen.  With `share` the folder holds what predicts and the certificate alone.

    Parameters
    ----------
    model : DistributionWeightedRegressor or DistributionWeightedClassifier
        Fitted.
    folder : path
    share : bool
        Whether to leave out all that reveals single held-out rows: tables, hashes, novelty,
        densities of folds, densities that no weight needs.  The certificate is then the word of
        who wrote the folder, and `load(folder, verify=True)` refuses it; sets, intervals and the
        monitor need new rows.
    rows, targets : array, optional
        With `share`: the training rows, which predictors and densities are compared with.

    Raises
    ------
    ValueError
        If a part cannot be written, such as a Python function, or if what is to be shared holds
        training rows, such as a kernel density or support vectors; nothing is written then.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from anymix import DistributionWeightedRegressor, load, save
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (60, 1)), rng.normal(2, 1, (60, 1))]
    >>> y, d = np.abs(X[:, 0]), np.repeat(["north", "south"], 60)
    >>> model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=d)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder + "/model")
    ...     again = load(folder + "/model")
    >>> bool(np.allclose(again.predict(X), model.predict(X), rtol=1e-5))
    True
    >>> again.certificate_.sentence == model.certificate_.sentence
    True
    """
    check_kind(model)
    check_is_fitted(model, "result_")
    check_place(folder)
    data = TrainingData(rows, targets) if share else None
    model = to_share(model) if share else model
    record = model_to_dict(model)
    models = model.result_.members or (model,)
    received = [one for each in models for one in pack_sources(each, data)]
    with reserved(folder) as place:
        write_model(place, model, received, record)


def to_share(model: Any) -> Any:
    """Return the model with all that predicts and its certificate, and no other evidence."""
    if model.result_.members:
        raise ValueError(
            "a model with refit=False deploys the models of its folds, which reveal single rows; "
            "share one of its members_, or fit it with refit=True."
        )
    shared, certificate = copy(model), model.certificate_
    for name in ("comparison_", "influence_"):
        vars(shared).pop(name, None)
    evidence = None
    if model.result_.evidence is not None:
        evidence = FitEvidence(certificate=certificate, set_aside=tuple(model.set_aside_))
    shared.result_ = replace(model.result_, evidence=evidence)
    return shared


def share(folder: str | Path, place: ReservedFolder) -> dict[str, Any]:
    """Write a shareable copy of a model folder; see `save`."""
    saved = read_model(folder)
    shared, received = to_share(saved.model), saved.received
    if shared.router_ is None and len(received) > 1:
        check_shared(received)
    else:
        received = pack_sources(shared, TrainingData())
    return write_model(place, shared, received)


def write_model(
    place: ReservedFolder,
    model: Any,
    received: Sequence[ReceivedSource],
    record: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a fitted model whose sources, of all members, are packed; return its record."""
    folder = place.folder
    record = model_to_dict(model) if record is None else record
    parts, packed = _add_parts(record, model, received), list(received)
    for entry, member in zip(record.get(MEMBERS, []), model.result_.members, strict=True):
        n_models = len(member.source_names_) + (member.generalist_ is not None)
        parts += _add_parts(entry, member, packed[:n_models])
        del packed[:n_models]
    record = plain(record, exact=True)
    try:
        written = json.dumps(record, indent=1, allow_nan=False)
    except TypeError as error:
        raise ValueError(
            f"the model cannot be written as JSON ({error}); name domains and classes by strings "
            "or whole numbers."
        ) from error
    sources = {folder / "sources" / source_folder(one): one for one in received}
    for path, one in sources.items():
        write_source(path, one.files)
    for part in parts:
        with replacing(folder / part.name) as temporary:
            temporary.write_bytes(part.content)
    with replacing(folder / RECORD) as temporary:
        temporary.write_text(written, "utf-8")
        # Every part is there as it was meant to be, just before the record comes to name it.
        for part in parts:
            path = folder / part.name
            check_facts(path, read_file(path, part.facts.size), part.facts)
        for path, one in sources.items():
            if read_folder(path, LIMITS) != one.files:
                raise AuditError(
                    path, "was changed by others while the model was written; run again"
                )
        # Before the new model and not after: killed between the two, an old model lacks a record,
        # which can be made again; a new one would show the certificate of another.
        for name in FILES.values():
            (folder / name).unlink(missing_ok=True)
    kept = {*(path.name for path in sources), *(part.name for part in parts)}
    clean(folder, place.record, kept)
    return record


def _add_parts(
    record: dict[str, Any], model: Any, received: Sequence[ReceivedSource]
) -> list[Part]:
    """Add to a model's record what is in files of their own; return those but the sources."""
    members, tables = model.result_.members, getattr(model, "tables_", None)
    arrays = {
        "tables": None if tables is None else tables_to_arrays(tables, model.held_out_),
        "router": None if members else router_to_arrays(model),
    }
    record |= dict.fromkeys(arrays)
    arrays["novelty"] = novelty_to_arrays(model)
    arrays[FOLD_SCORES] = fold_scores_to_arrays(model)
    parts = {stem: part_of(stem, found) for stem, found in arrays.items() if found is not None}
    record |= {stem: {"file": part.name, **vars(part.facts)} for stem, part in parts.items()}
    entries = [
        {"folder": source_folder(one), "sha256": one.sha256, **one.manifest.to_dict()}
        for one in ([] if members else received)
    ]
    if model.generalist_ is not None:
        record[GENERALIST] = entries.pop()
    record["sources"] = entries
    record["has_densities"] = tables is not None and tables.has_densities
    record["at_label"] = tables is not None and tables.at_label
    record["crossed"] = None if tables is None else model.held_out_.crossed
    return list(parts.values())


BESIDE = ".sites.json"


def write_taught(
    place: ReservedFolder,
    received: Sequence[ReceivedSource],
    goal: LearningSettings,
    taught: FitResult,
    told: Mapping[str, Any],
    generalist: Source | None = None,
) -> Any:
    """Write a model that was learned from rows elsewhere, and what is known of them.

    `told` is the account of the numbers that left the sites.  Returns the model.
    """
    assert taught.evidence is not None
    certificate = taught.evidence.certificate
    assert certificate is not None
    kind, sources = TASKS[received[0].manifest.task], [one.source for one in received]
    names = ("loss", "eta", "objective", "calibrate", "confidence", "consult", "shrinkage")
    model: Any = kind.from_sources(sources, **{name: getattr(goal, name) for name in names})
    model.sources_, model.router_, model.columns_ = sources, None, None
    model.source_names_ = np.asarray([one.manifest.name for one in received])
    model.n_features_in_ = len(received[0].manifest.features)
    classes = all_classes(received)
    if classes is not None:
        model.classes_ = classes
    if generalist is not None:
        model.generalist_ = generalist
        received = [*received, packed_generalist(generalist, sources[0].density)]
    # The rows stayed at their sites, so that nothing here can show a certificate.
    evidence = replace(taught.evidence, certificate=None, novelty=None, tables=None, held_out=None)
    model.result_ = replace(taught, evidence=evidence)
    write_model(place, model, received)
    found = {
        **told,
        "z": model.combination_.z,
        "solution": model.solution_,
        "certificate": certificate,
        "sentence": certificate.sentence,
    }
    path = Path(place.folder)
    with replacing(path.with_name(path.name + BESIDE)) as temporary:
        temporary.write_text(json.dumps(plain(found), indent=1, allow_nan=False), "utf-8")
    return model
