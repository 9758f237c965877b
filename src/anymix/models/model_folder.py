"""Read an untrusted model folder: parse, audit, build.

Evidence is read as the folder states it; `verify=True` recomputes it from the tables there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anymix.core import Certificate, plain, restored
from anymix.estimators import summarise
from anymix.exceptions import AuditError, InputError, MissingError
from anymix.exchange import (
    LIMITS,
    FileFacts,
    Manifest,
    ReceivedSource,
    check_facts,
    check_name,
    density_from_arrays,
    facts_of,
    load_arrays,
    parse_json,
    read_sources,
)
from anymix.models.fold_scores_file import FOLDS_LIMIT, read_fold_scores
from anymix.models.model_record import (
    FOLD_SCORES,
    GENERALIST,
    KIND,
    MEMBERS,
    NOVELTY,
    SCHEMA,
    UPGRADED,
    check_entries,
    model_from_dict,
)
from anymix.models.older_records import upgraded
from anymix.models.saved_records import check_certificate, check_evidence, read_records
from anymix.models.source_files import (
    OTHER_SOURCE,
    check_sources,
    read_generalist,
    without_generated_names,
)
from anymix.models.tables_file import FILE_LIMIT, NOVELTY_LIMIT, read_novelty, read_tables
from anymix.models.target_folder import PART, RECORD, RECORD_LIMIT, SOURCE, is_own
from anymix.models.verify import restore_held_out, verify_evidence
from anymix.sources import Novelty, check_measure
from anymix.storage import read_file

T = TypeVar("T")
# What to give where a model folder is due.
WRITTEN = "give a folder that anymix.save or anymix fit wrote"
# How often a reader may meet a writer and read again.
TRIES = 20
MANIFEST, ROUTER_LIMIT = "manifest.json", 2**28


@dataclass(frozen=True)
class SavedModel:
    """A model folder that was read: its path, model, record, sources and SHA-256."""

    path: Path
    model: Any
    record: dict[str, Any]
    received: list[ReceivedSource]
    sha256: str = ""
    generalist: ReceivedSource | None = None


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read only model.json; an older format is converted to the current one.

    Examples
    --------
    >>> read_record("nowhere")
    Traceback (most recent call last):
    ...
    anymix.exceptions.MissingError: nowhere does not exist; give a folder that anymix.save ...
    """
    return _settled(Path(folder), lambda folder, record, digest: record)


def _open(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the record as it is written, and the SHA-256 of model.json."""
    if not folder.exists():
        raise MissingError(folder, f"does not exist; {WRITTEN}")
    path = folder / RECORD
    if not path.is_file():
        raise AuditError(folder, f"is not a model folder: it has no {RECORD}; {WRITTEN}")
    content = read_file(path, RECORD_LIMIT)
    record = parse_json(content, str(path))
    if is_own(record):
        return record, facts_of(content).sha256
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise AuditError(path, "is not the record of a model")
    raise AuditError(
        path,
        f"has schema {record.get('schema')!r:.20}; this version reads 1 to {SCHEMA}; update anymix",
    )


def _settled(folder: Path, build: Callable[[Path, dict[str, Any], str], T]) -> T:
    """Build from the record and its parts; again if a writer has replaced the model meanwhile."""
    record, digest = _open(folder)
    for attempt in range(TRIES):
        try:
            return build(folder, record if record["schema"] == SCHEMA else upgraded(record), digest)
        except Exception as error:
            record, now = _open(folder)
            if now == digest or attempt == TRIES - 1:
                raise _refusal(folder, error) from error
            digest = now
    raise AssertionError


def _refusal(folder: Path, error: Exception) -> Exception:
    """Say in a sentence what is wrong with a record, which may be wrong in any way."""
    match error:
        case AuditError():
            return error
        case KeyError():
            return AuditError(folder / RECORD, f"lacks {error}")
        case FileNotFoundError() | NotADirectoryError():
            return AuditError(folder, f"lacks a part: {error.strerror} ({error.filename})")
        case TypeError() | AttributeError() | IndexError() | OverflowError():
            return AuditError(folder / RECORD, "has an entry of the wrong kind")
        case ValueError():
            return AuditError(folder / RECORD, f"is not sound: {str(error).rstrip('.')}")
    return error


def read_model(folder: str | Path, *, verify: bool = False, members: bool = False) -> SavedModel:
    """Read a model folder; its sources are audited as untrusted.  See `load`.

    A model that deploys the models of its folds (refit=False) is refused unless members=True.
    """
    saved = _settled(Path(folder), partial(_restore, verify=verify))
    if not members:
        check_combination(folder, saved.model)
    return saved


def load(folder: str | Path, *, in_process: bool = False, verify: bool = False) -> Any:
    """Read a model that `save` or `anymix fit` wrote; it predicts as the fitted one did.

    Parameters
    ----------
    folder : path
    in_process : bool
        Whether to run the models of the sources in this process, which saves some hundred
        microseconds a call: for sources of your own.  By default they are audited as untrusted and
        run in a process that has little memory and time and no files.
    verify : bool
        Whether to recompute the certificate, the comparison and all other evidence from the tables
        in the folder.  By default they are taken as the folder states them.

    Raises
    ------
    AuditError
        If the folder is malformed; with verify=True also if its evidence is not what its tables
        give.  The message names what differs.

    See Also
    --------
    save : Write the folder.
    """
    saved = read_model(folder, verify=verify, members=True)
    for one in saved.received:
        one.source.predictor.in_process = in_process
    for model in saved.model.result_.members or (saved.model,):
        if model.generalist_ is not None:
            model.generalist_.predictor.in_process = in_process
    return saved.model


def _restore(
    folder: Path, record: dict[str, Any], digest: str, *, verify: bool = False, alone: bool = False
) -> SavedModel:
    """Build the model; `alone` reads no source but its manifest."""
    model, received = model_from_dict(record), []
    members = model.result_.members
    models, records = members or (model,), record[MEMBERS] if members else [record]
    check_manifests(folder / "sources", records)
    each = list(zip(models, records, strict=True))
    if any([s["name"] for s in one["sources"]] != [*map(str, one["names"])] for one in records):
        raise ValueError("it does not name the sources as their manifests do")
    for member, entry in [*each, *([(model, record)] if members else [])]:
        _add_evidence(member, folder, entry, verify)
    generalist = None
    for member, entry in [] if alone else each:
        received += _add_sources(member, folder, entry)
        if entry.get(GENERALIST) is not None:
            stated = entry[GENERALIST]
            place = folder / "sources" / plain_name(stated["folder"])
            generalist = read_generalist(place, stated["sha256"], member)
        member.generalist = member.generalist_
        _add_fold_scores(member, folder, entry, received[-1].manifest)
    if members and not alone:
        model.sources_ = [source for member in members for source in member.sources_]
        model.columns_ = members[0].columns_
    return SavedModel(folder, model, record, received, digest, generalist)


def _add_sources(model: Any, folder: Path, record: dict[str, Any]) -> list[ReceivedSource]:
    """Audit the sources of a model and give them to it, with its router and its columns."""
    entries = record["sources"]
    folders = [folder / "sources" / plain_name(entry["folder"]) for entry in entries]
    # A single source, and those that a router tells apart, need no density.
    bare = record["router"] is not None or len(folders) == 1
    received = read_sources(folders, without_density=bare)
    model.sources = [without_generated_names(one.source) for one in received]
    check_sources(model, received, entries)
    model.sources_ = list(model.sources)
    model.router_ = None
    if record["router"] is not None:
        path, arrays = _part(folder, record["router"], ROUTER_LIMIT)
        n_features = len(received[0].manifest.features)
        model.router_ = density_from_arrays("domain_classifier", arrays, n_features, str(path))
    columns = [one.manifest.columns for one in received]
    model.columns_ = next((found for found in columns if found is not None), None)
    if model.columns_ is not None and "feature_names_in_" in vars(model):
        names = model.columns_.table_names
        model.feature_names_in_, model.n_features_in_ = np.array(names, dtype=object), len(names)
    densities = [source.density for source in model.sources_]
    if getattr(model, "novelty_", None) is not None and None in densities:
        raise ValueError("novelty is known, but a source has no density to ask for it")
    # Densities were fitted with these names, and would warn of names that they do not know; a table
    # with categories or missing values they get as plain numbers.
    names = vars(model).get("feature_names_in_") if model.columns_ is None else None
    for density in (model.router_, *densities):
        if names is not None and hasattr(density, "n_features_in_"):
            density.feature_names_in_ = names
    return received


def _add_fold_scores(model: Any, folder: Path, record: dict[str, Any], manifest: Manifest) -> None:
    """Read the densities of the folds, if they were kept."""
    if record.get(FOLD_SCORES) is None:
        return
    path, arrays = _part(folder, record[FOLD_SCORES], FOLDS_LIMIT)
    names = vars(model).get("feature_names_in_") if model.columns_ is None else None
    known = len(manifest.features), manifest.is_text, names
    found = read_fold_scores(path, arrays, model.tables_, *known)
    evidence = replace(model.result_.evidence, fold_scores=found)
    model.result_ = replace(model.result_, evidence=evidence)
    routed = model.router_ is not None
    if any((fold.router is not None) != routed for fold in found.learned):
        raise ValueError("its folds weigh the sources otherwise than the model does")
    if (None in found.learned[0].densities) == (model.novelty_ is not None):
        raise ValueError("its folds do not have the densities that novelty needs")


def _add_evidence(model: Any, folder: Path, record: dict[str, Any], verify: bool) -> None:
    """Read the tables of a model, and check the evidence that the record states."""
    for entry in ("has_densities", "at_label"):
        restored(bool, record[entry])
    several, members = len(model.source_names_) > 1, model.result_.members
    if not several or record["tables"] is None:
        _check_without_tables(record, several)
        if several:
            _settle_claims(model, verify)
        return
    model.tables_, held_out = read_tables(
        *_part(folder, record["tables"], FILE_LIMIT),
        restored(bool | None, record["crossed"]),
        classes=getattr(model, "classes_", None),
        has_densities=record["has_densities"],
        at_label=record["at_label"],
    )
    if model.tables_.n_sources != len(model.source_names_):
        raise ValueError(f"the tables are not of {len(model.source_names_)} sources")
    model.tables_.check_loss(model.loss, model.rule)
    if held_out is None and members:
        raise ValueError("it lacks the predictions of its members")
    model.held_out_ = held_out
    if held_out is None:
        restore_held_out(model)
    if verify:
        verify_evidence(model, record)
    if record.get(UPGRADED, SCHEMA) < 3 and model.certificate_ is not None:
        # These certificates claimed a confidence that rows used for learning do not give.
        model.certificate_ = model.certify(confidence=model.confidence)
    check_evidence(model, record["comparison"])
    model.novelty_ = Novelty.from_tables(model.tables_) if record["has_densities"] else None
    if record.get(NOVELTY) is not None:
        model.novelty_ = read_novelty(*_part(folder, record[NOVELTY], NOVELTY_LIMIT), model.tables_)
    evidence = replace(model.result_.evidence, verified=verify)
    model.result_ = replace(model.result_, evidence=evidence)


def _settle_claims(model: Any, verify: bool) -> None:
    """Take the certificate of a model without tables as a claim, which nothing here can show."""
    if verify and model.certificate_ is not None:
        raise ValueError("it has no tables to recompute its certificate from")
    check_certificate(model)
    evidence = replace(model.result_.evidence, verified=False)
    model.result_ = replace(model.result_, evidence=evidence)


def _check_without_tables(record: dict[str, Any], several: bool) -> None:
    """A model without tables states its certificate alone, of all that only tables could show."""
    # A model of one source has nothing that is learned from several.
    names = [] if several else ["tables", "router", "consulting_gain"]
    names += ["certificate"] * (not several)
    names += ["comparison", "novelty", FOLD_SCORES, "seen", "crossed"]
    if stated := [name for name in names if record.get(name) is not None]:
        raise ValueError(f"it has the entry {stated[0]!r}, and no tables that show it")
    if record["has_densities"] or record["at_label"]:
        raise ValueError("it states the type of its tables, and has none")
    parts = [] if several else record["combination"]["parts"]
    if any(part.get("calibration") or part.get("consulting") for part in parts):
        raise ValueError("a model of one source has parts that only several sources need")


def plain_name(name: str) -> str:
    """Refuse a part outside of the folder."""
    outside = isinstance(name, str) and Path(name).name != name
    if outside or not isinstance(name, str) or not (PART.fullmatch(name) or SOURCE.fullmatch(name)):
        why = "which lies outside its folder" if outside else "which is no name of a part"
        raise AuditError(RECORD, f"names the part {name!r:.60}, {why}")
    return name


def check_manifests(sources: Path, records: Sequence[dict[str, Any]]) -> None:
    """Check that the sources of the record are those of the manifests in the folder."""
    models = [*chain.from_iterable(record["sources"] for record in records)]
    for entry in models + [record[GENERALIST] for record in records if GENERALIST in record]:
        check_name(entry["name"])
        folder = sources / plain_name(entry["folder"])
        content = read_file(folder / MANIFEST, LIMITS[MANIFEST])
        if facts_of(content).sha256 != entry["sha256"]:
            raise AuditError(folder, OTHER_SOURCE)
        stated = parse_json(content, str(folder / MANIFEST))
        if stated != {n: value for n, value in entry.items() if n not in ("folder", "sha256")}:
            raise ValueError(f"the entry of {folder.name} is not what its manifest states")


def _part(folder: Path, stated: Any, limit: int) -> tuple[Path, dict[str, NDArray[Any]]]:
    """Return a part's file and its arrays; it lies in the folder and is named by its SHA-256."""
    check_entries(stated, ("file", "size", "sha256"), "a part")
    facts = FileFacts(restored(int, stated["size"]), restored(str, stated["sha256"]))
    path = folder / plain_name(stated["file"])
    content = read_file(path, limit)
    check_facts(path, content, facts)
    return path, load_arrays(content, str(path))


def read_certificate(folder: str | Path, subpopulation: float | None = None) -> Certificate | None:
    """Recompute the certificate of fit from the tables in the folder; no source is run.

    With `subpopulation` the loss on any subpopulation of at least that share is bounded as well.
    """
    model = _settled(Path(folder), partial(_restore, verify=True, alone=True)).model
    if len(model.source_names_) < 2:
        return None
    found: Certificate | None = model.certificate_
    if found is None or subpopulation is None:
        return found
    again: Certificate = model.certify(confidence=model.confidence, subpopulation=subpopulation)
    return again


def summarise_folder(
    folder: str | Path,
    name: str | None = None,
    measure: str | None = None,
    verify: bool = False,
) -> dict[str, Any]:
    """Return the report record of a model folder; no source is read or run.

    Records of new rows that were kept there take the place of those of fit.  By another `measure`
    a saved comparison is shown if it has that measure; else the rows of fit are evaluated by it.
    `verify` recomputes the evidence of fit; records of new rows stay claims, as no row of theirs is
    there.
    """
    folder = Path(folder)
    model, saved = _settled(folder, partial(_restore_all, verify=verify))
    check_several(folder, model)
    check_combination(folder, model)
    if not hasattr(model, "tables_"):
        raise InputError(
            folder,
            "was learned from rows that stayed at their sites, which are needed for this; "
            "give rows of your own",
        )
    kept, _ = saved.get("comparison", (None, None))
    if measure is not None and kept is not None and kept.measure != check_measure(measure):
        del saved["comparison"]
        kept = None
    ranked = measure is not None and check_measure(measure) == "auc"
    if ranked and kept is None and model.tables_.at_label:
        raise InputError(
            folder,
            "holds only predictions for each label, which give no area under the ROC curve; "
            "keep that of new rows by anymix compare --held-out ... --measure auc --save",
        )
    # A kept comparison of rows takes the place of that of fit, which need not tell labels.
    by = None if kept is not None else measure
    shown = summarise(model, model.compared(by), name=name or folder.resolve().name, measure=by)
    if "certificate" in saved:
        shown["adapted"] = None
    shown["stated"] = not verify
    shown["recorded"] = {part: day or "a day not stated" for part, (_, day) in saved.items()}
    shown |= {part: plain(record) for part, (record, _) in saved.items()}
    if kept is not None and kept.verdicts:
        shown["verdict"] = shown["comparison"]["verdicts"]
        shown["recorded"]["verdict"] = shown["recorded"]["comparison"]
    return shown


def _restore_all(
    folder: Path, record: dict[str, Any], digest: str, verify: bool = False
) -> tuple[Any, dict[str, tuple[Any, str | None]]]:
    """Return the model without its sources, and the records of new rows with it."""
    model = _restore(folder, record, digest, verify=verify, alone=True).model
    several = len(model.source_names_) > 1
    return model, read_records(folder, model, digest) if several else {}


def check_several(folder: str | Path, model: Any) -> None:
    """Refuse a model of one source where sources are compared."""
    if len(model.source_names_) < 2:
        raise ValueError(f"{folder} is a model of one source: there is nothing to compare.")


def check_combination(folder: str | Path, model: Any) -> None:
    """Refuse a model that deploys the models of its folds where one combination is needed."""
    if model.result_.members:
        raise InputError(
            folder,
            "deploys the models of its folds (refit=False), which have no combination in common; "
            "save one of its members_, or fit it with refit=True",
        )
