"""Read a model folder as a stranger's: parse, audit, build.

Whatever the record says is checked: its entries one by one, the sources by their manifests, and
what was learned by the tables beside it, which must give it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from anymix.core import Certificate, plain, restored
from anymix.estimators import summarise
from anymix.exceptions import AuditError, InputError, MissingError
from anymix.exchange import FileFacts, ReceivedSource, facts_of, parse_json, read_sources
from anymix.models.claims import (
    check_alone,
    check_learned,
    check_loss,
    check_sources,
    check_untold,
)
from anymix.models.entries import check_entries, plain_name
from anymix.models.novelty_file import read_novelty
from anymix.models.parts import name_columns, nameless, read_router
from anymix.models.place import RECORD, RECORD_LIMIT, is_own
from anymix.models.record import KIND, NOVELTY, SCHEMA, model_from_dict
from anymix.models.saved_records import Saved, read_records
from anymix.models.tables_file import read_tables
from anymix.models.upgrade import upgraded
from anymix.sources import Novelty, check_measure
from anymix.storage import read_file

T = TypeVar("T")
# What to give where a model folder is due.
WRITTEN = "give a folder that anymix.save or anymix fit wrote"
# How often a reader may meet a writer and read again.
TRIES = 20


@dataclass(frozen=True)
class SavedModel:
    """A model folder that was read: where, the model, its record, its sources, and its SHA-256."""

    path: Path
    model: Any
    record: dict[str, Any]
    received: list[ReceivedSource]
    sha256: str = ""


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read model.json alone; one of the first format is brought to this one.

    Examples
    --------
    >>> read_record("nowhere")
    Traceback (most recent call last):
    ...
    anymix.exceptions.MissingError: nowhere does not exist; give a folder that anymix.save ...
    """
    return _open(Path(folder))[0]


def _open(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the record and the SHA-256 of model.json."""
    if not folder.exists():
        raise MissingError(folder, f"does not exist; {WRITTEN}")
    if not (folder / RECORD).is_file():
        raise AuditError(folder, f"is not a model folder: it has no {RECORD}; {WRITTEN}")
    content = read_file(folder / RECORD, RECORD_LIMIT)
    record, digest = parse_json(content, str(folder / RECORD)), facts_of(content).sha256
    if is_own(record):
        now = record["schema"] == SCHEMA
        return (record if now else _audited(folder, upgraded, record)), digest
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise AuditError(folder / RECORD, "is not the record of a model")
    raise AuditError(
        folder / RECORD,
        f"has schema {record.get('schema')!r:.20}; this version reads 1 to {SCHEMA}; update anymix",
    )


def _audited(folder: Path, build: Callable[..., T], *given: Any) -> T:
    """Build from a record that may be wrong in any way; say in a sentence what is wrong."""
    try:
        return build(*given)
    except AuditError:
        raise
    except KeyError as error:
        raise AuditError(folder / RECORD, f"lacks {error}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise AuditError(folder, f"lacks a part: {error.strerror} ({error.filename})") from error
    except (TypeError, AttributeError, IndexError, OverflowError) as error:
        raise AuditError(folder / RECORD, "has an entry of the wrong kind") from error
    except ValueError as error:
        raise AuditError(folder / RECORD, f"is not sound: {str(error).rstrip('.')}") from error


def _settled(folder: Path, build: Callable[[Path, dict[str, Any], str], T]) -> T:
    """Build from the record and its parts; again if a writer has replaced the model meanwhile.

    Parts are named by their content, so that what was read is of one model or not at all.
    """
    record, digest = _open(folder)
    for _ in range(TRIES):
        try:
            return _audited(folder, build, folder, record, digest)
        except AuditError:
            record, now = _open(folder)
            if now == digest:
                raise
            digest = now
    return _audited(folder, build, folder, record, digest)


def read_model(folder: str | Path) -> SavedModel:
    """Read a model folder; its sources are audited as if they came from strangers."""
    return _settled(Path(folder), _restore)


def load(folder: str | Path, *, in_process: bool = False) -> Any:
    """Read a model that `save` or `anymix fit` wrote; it answers as the fitted one did.

    Its sources are audited as if they came from strangers, and asked in a process that has little
    memory and time and no files.  `in_process` asks them here, which saves some hundred
    microseconds a call: for sources of one's own.  See `save`.
    """
    saved = read_model(folder)
    for one in saved.received:
        one.source.predictor.in_process = in_process
    return saved.model


def _restore(folder: Path, record: dict[str, Any], digest: str) -> SavedModel:
    model = _restore_learned(folder, record)
    entries = record["sources"]
    folders = [folder / "sources" / entry["folder"] for entry in entries]
    # A single source, and those that a router tells apart, need no density.
    bare = record["router"] is not None or len(folders) == 1
    received = read_sources(folders, without_density=bare)
    for one, entry in zip(received, entries, strict=True):
        if one.sha256 != entry["sha256"]:
            raise AuditError(one.folder, "is not the source that the model was made of")
    check_sources(model, received, entries)
    model.sources = [nameless(one.source) for one in received]
    model.sources_ = list(model.sources)
    model.router_ = None
    if record["router"] is not None:
        path, facts = _part(folder, record["router"])
        model.router_ = read_router(path, facts, len(received[0].manifest.features))
    model.columns_ = next(
        (one.manifest.columns for one in received if one.manifest.columns is not None), None
    )
    if getattr(model, "novelty_", None) is not None and None in [s.density for s in model.sources_]:
        raise ValueError("novelty is known, but a source has no density to ask for it")
    name_columns(model)
    return SavedModel(folder, model, record, received, digest)


def _restore_learned(folder: Path, record: dict[str, Any], *_: Any) -> Any:
    """Return the model without its sources, which no table asks for."""
    model = model_from_dict(record)
    check_loss(model)
    check_entries(folder / "sources", record)
    for entry in ("has_densities", "at_label"):
        restored(bool, record[entry])
    if len(model.source_names_) == 1:
        check_alone(record)
        return model
    if record["tables"] is None:
        check_untold(record)
        model.novelty_ = model.advice_ = None
        return model
    path, facts = _part(folder, record["tables"])
    model.tables_ = read_tables(
        path,
        facts,
        classes=getattr(model, "classes_", None),
        has_densities=record["has_densities"],
        at_label=record["at_label"],
    )
    check_learned(model, record)
    if record.get(NOVELTY) is not None:
        model.novelty_ = read_novelty(*_part(folder, record[NOVELTY]), model.tables_)
    else:
        model.novelty_ = Novelty.from_tables(model.tables_) if record["has_densities"] else None
    return model


def _part(folder: Path, stated: Any) -> tuple[Path, FileFacts]:
    """Return where a part is, and its facts; it lies in the folder and is named by its SHA-256."""
    if not isinstance(stated, dict) or set(stated) != {"file", "size", "sha256"}:
        raise ValueError("a part is not described by file, size and sha256")
    facts = FileFacts(restored(int, stated["size"]), restored(str, stated["sha256"]))
    return folder / plain_name(stated["file"]), facts


def read_certificate(folder: str | Path) -> Certificate | None:
    """Return what fit certified, if the tables in the folder give it again; no source is read."""
    model = _settled(Path(folder), _restore_learned)
    return None if len(model.source_names_) < 2 else model.certificate_


def summarise_folder(
    folder: str | Path, name: str | None = None, measure: str | None = None
) -> dict[str, Any]:
    """Return what a report says of a model folder; no source is read or run.

    Records of new rows that were kept there take the place of those of fit.  By another `measure`
    a comparison that was kept is shown if it is by that; else the rows of fit are judged by it.
    """
    folder = Path(folder)
    model, saved = _settled(folder, _restore_all)
    check_several(folder, model)
    check_told(folder, model)
    kept = saved.get("comparison")
    if measure is not None and kept is not None and kept.record.measure != check_measure(measure):
        del saved["comparison"]
        kept = None
    ranked = measure is not None and check_measure(measure) == "auc"
    if ranked and kept is None and model.tables_.at_label:
        raise InputError(
            folder,
            "tells what was said at each label alone, which gives no area under the ROC curve; "
            "keep that of new rows by anymix compare --held-out ... --measure auc --save",
        )
    # A kept comparison of rows takes the place of that of fit, which need not tell labels.
    by = None if kept is not None else measure
    shown = summarise(model, model.compared(by), name=name or folder.resolve().name, measure=by)
    if "certificate" in saved:
        shown["adapted"] = None
    shown["recorded"] = {part: one.day or "a day not stated" for part, one in saved.items()}
    shown |= {part: plain(one.record) for part, one in saved.items()}
    if "comparison" in saved and saved["comparison"].record.verdicts:
        shown["verdict"] = shown["comparison"]["verdicts"]
        shown["recorded"]["verdict"] = shown["recorded"]["comparison"]
    return shown


def _restore_all(folder: Path, record: dict[str, Any], digest: str) -> tuple[Any, dict[str, Saved]]:
    model = _restore_learned(folder, record)
    several = len(model.source_names_) > 1
    return model, read_records(folder, model, digest) if several else {}


def check_several(folder: str | Path, model: Any) -> None:
    """Refuse a model of one source where sources are compared."""
    if len(model.source_names_) < 2:
        raise ValueError(f"{folder} is a model of one source: there is nothing to compare.")


def check_told(folder: str | Path, model: Any) -> None:
    """Refuse a model whose rows stayed at their sites where these are asked for."""
    if not hasattr(model, "tables_"):
        raise InputError(
            folder,
            "was learned from rows that stayed at their sites, so that there are none to show this "
            "by; give rows of your own",
        )
