"""The model folder: model.json, the sources it was made of, and the tables it was learned from.

    model.json                      everything that was found, as one JSON object
    sources/<name>-<digits>/        the source folders
    tables-<digits>.safetensors     what the sites handed over, joined; no features, no labels

Parts are named by their SHA-256 and written first; model.json, which names them, is replaced at
the end in one step.  So a run that is killed leaves the old model whole.  Records that `--save`
kept of the old model go just before that: a new model never stands beside them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anymix._files import read_file, read_folder, replacing, write_folder
from anymix._version import __version__
from anymix.cli.saving import drop_saved
from anymix.core import plain, simplex
from anymix.densities import TemperatureScaling
from anymix.estimators import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    Weighing,
)
from anymix.exchange import (
    LIMITS,
    AuditError,
    FileFacts,
    ReceivedSource,
    all_classes,
    check_facts,
    dump,
    facts_of,
    load,
    parse_json,
    read_sources,
)
from anymix.sources import Novelty, Tables

KIND, SCHEMA = "anymix model", 1
RECORD = "model.json"
RECORD_LIMIT, TABLES_LIMIT = 64 * 2**20, 2**31


@dataclass(frozen=True)
class FittedFolder:
    """A model folder that was read: the fitted model, its record, sources and held-out tables.

    `tables` holds the raw log-masses; `has_densities` says whether they are densities, as novelty
    and monitoring need them, or responsibilities alone.
    """

    path: Path
    model: Any
    record: dict[str, Any]
    audited: list[ReceivedSource]
    tables: Tables

    @property
    def has_densities(self) -> bool:
        """Whether the sites told the densities of their rows."""
        return bool(self.record["tables"]["densities"])


def new_model(audited: Sequence[ReceivedSource], **settings: Any) -> Any:
    """Return an unfitted model of these sources."""
    regression = audited[0].manifest.task == "regression"
    kind = DistributionWeightedRegressor if regression else DistributionWeightedClassifier
    return kind.from_sources([one.source for one in audited], **settings)


def write_model(
    folder: str | Path,
    model: Any,
    audited: Sequence[ReceivedSource],
    tables: Tables,
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Write a fitted model; `extra` is put into the record as it is."""
    folder = Path(folder)
    check_place(folder)
    names = [_store_source(folder / "sources", one) for one in audited]
    stored = _store_tables(folder, tables)
    stored["densities"] = bool(extra.pop("densities"))
    record = _record(model, audited, names) | {"tables": stored} | extra
    with replacing(folder / RECORD) as temporary:
        temporary.write_text(json.dumps(plain(record), indent=1, allow_nan=False), "utf-8")
        # Before the new model and not after: killed between the two, an old model lacks a record,
        # which can be made again; a new one would show the certificate of another.
        drop_saved(folder)
    _clean(folder, {*names, stored["file"]})
    return record


def check_place(folder: str | Path) -> bool:
    """Return whether a model is there to be replaced; refuse a place that holds other things."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; choose another name for the model folder.")
    if folder.exists() and any(folder.iterdir()) and not (folder / RECORD).exists():
        left_over = all(p.name == "sources" or p.name.startswith("tables-") for p in _seen(folder))
        if not left_over:
            raise ValueError(f"{folder} exists and is not a model folder; choose another name.")
    return (folder / RECORD).exists()


def _seen(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def _store_source(folder: Path, one: ReceivedSource) -> str:
    name = f"{one.manifest.name}-{one.sha256[:12]}"
    content = read_folder(one.folder, LIMITS)
    if facts_of(content["manifest.json"]).sha256 != one.sha256:
        raise ValueError(f"{one.folder} was changed while it was used; start again.")
    if not (folder / name).exists():
        write_folder(folder / name, content)
    return name


def _store_tables(folder: Path, tables: Tables) -> dict[str, Any]:
    content = dump(
        {
            "log_masses": tables.log_masses,
            "predictions": tables.predictions.reshape(tables.log_masses.shape),
            "sample_domain": np.asarray(tables.sample_domain, dtype=np.int64),
        }
    )
    facts = facts_of(content)
    name = f"tables-{facts.sha256[:12]}.safetensors"
    with replacing(folder / name) as temporary:
        temporary.write_bytes(content)
    return {"file": name, **facts.to_dict()}


def _clean(folder: Path, kept: set[str]) -> None:
    """Remove what an older model, or a run that was killed, has left."""
    for path in [*folder.glob("tables-*"), *folder.glob(".*.tmp*")]:
        if path.name not in kept:
            path.unlink()
    for path in (folder / "sources").iterdir():
        if path.name not in kept:
            shutil.rmtree(path)


def _record(model: Any, audited: Sequence[ReceivedSource], names: list[str]) -> dict[str, Any]:
    first = audited[0].manifest
    scaling = model.weighing_.scaling
    certificate = model.certificate_
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "anymix": __version__,
        "task": first.task,
        "loss": model.loss,
        "objective": model.objective,
        "eta": model.eta,
        "classes": None if first.classes is None else model.classes_,
        "features": [feature.to_dict() for feature in first.features],
        "sources": [
            {"folder": name, "sha256": one.sha256, **one.manifest.to_dict()}
            for name, one in zip(names, audited, strict=True)
        ],
        "z": model.z_,
        "certificate": {**certificate.to_dict(), "sentence": certificate.sentence},
        "solution": model.solution_.to_dict(),
        "cross_loss": model.cross_loss_.to_dict(),
        "calibration": None if scaling is None else _calibration(scaling, model.weighing_),
    }


def _calibration(scaling: TemperatureScaling, weighing: Weighing) -> dict[str, Any]:
    return {
        "temperature": scaling.temperature_,
        "offset": scaling.offset_,
        "floor": scaling.floor_,
        "sharpness": weighing.sharpness,
        "report": plain(scaling.report_),
    }


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read model.json alone."""
    folder = Path(folder)
    if not folder.exists():
        raise ValueError(f"{folder} does not exist; give a model folder, which anymix fit writes.")
    if not (folder / RECORD).is_file():
        raise ValueError(f"{folder} is not a model folder: it has no {RECORD}.")
    record = parse_json(read_file(folder / RECORD, RECORD_LIMIT), str(folder / RECORD))
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise AuditError(folder / RECORD, "is not the record of a model")
    if record.get("schema") != SCHEMA:
        raise AuditError(
            folder / RECORD,
            f"has schema {record.get('schema')!r:.20}; this version reads {SCHEMA}",
        )
    return record


def read_model(folder: str | Path) -> FittedFolder:
    """Read a model folder; its sources are audited as if they came from strangers.

    Examples
    --------
    >>> read_model("nowhere")
    Traceback (most recent call last):
    ...
    ValueError: nowhere does not exist; give a model folder, which anymix fit writes.
    """
    folder, record = Path(folder), read_record(folder)
    try:
        audited = _sources(folder, record)
        tables = read_tables(folder, record)
        model = _restore(record, audited, tables)
    except (KeyError, TypeError, AttributeError) as error:
        raise AuditError(folder / RECORD, f"lacks {error} or has an odd entry") from error
    return FittedFolder(folder, model, record, audited, tables)


def _plain_name(name: str) -> str:
    if Path(name).name != name or name.startswith("."):
        raise AuditError(RECORD, f"names the part {name!r:.60}, which lies outside of its folder")
    return name


def _sources(folder: Path, record: dict[str, Any]) -> list[ReceivedSource]:
    entries = record["sources"]
    audited = read_sources([folder / "sources" / _plain_name(e["folder"]) for e in entries])
    for one, entry in zip(audited, entries, strict=True):
        if one.sha256 != entry["sha256"]:
            raise AuditError(one.folder, "is not the source that the model was made of")
    return audited


def read_tables(folder: Path, record: dict[str, Any]) -> Tables:
    """Read the tables that z was learned from; their log-masses are as the sources gave them."""
    stated = record["tables"]
    path = folder / _plain_name(stated["file"])
    content = read_file(path, TABLES_LIMIT)
    check_facts(path, content, FileFacts(stated["size"], stated["sha256"]))
    arrays = load(content, str(path))
    log_masses, h, domain = (arrays[n] for n in ("log_masses", "predictions", "sample_domain"))
    m = log_masses.shape[1]
    if record["loss"] == "squared":
        return Tables(log_masses, h, np.zeros(m), domain.astype(np.intp))
    return Tables(log_masses, h[:, :, None], np.zeros(m, dtype=np.intp), domain.astype(np.intp))


def _restore(record: dict[str, Any], audited: list[ReceivedSource], tables: Tables) -> Any:
    """Build the fitted model from what was found when it was learned."""
    settings = {name: record[name] for name in ("loss", "objective", "eta")}
    model = new_model(audited, **settings, calibrate=record["calibration"] is not None)
    model.sources_, model.router_ = list(model.sources), None
    model.source_names_ = np.asarray([one.manifest.name for one in audited])
    model.z_ = simplex.check(record["z"], len(audited))
    model.weighing_ = read_weighing(record)
    model.novelty_ = Novelty.from_tables(tables) if record["tables"]["densities"] else None
    classes = all_classes(audited)
    if classes is not None:
        model.classes_ = classes
    if not audited[0].manifest.is_text:
        model.n_features_in_ = len(audited[0].manifest.features)
    return model


def read_weighing(record: dict[str, Any]) -> Weighing:
    """Return what turns log-masses into the responsibilities that the model uses."""
    calibration = record["calibration"]
    if calibration is None:
        return Weighing()
    scaling = TemperatureScaling()
    scaling.temperature_ = np.asarray(calibration["temperature"], dtype=float)
    scaling.offset_ = np.asarray(calibration["offset"], dtype=float)
    scaling.floor_ = float(calibration["floor"])
    if not (scaling.temperature_ > 0).all():
        raise AuditError(RECORD, "has a temperature that is not positive")
    return Weighing(scaling, float(calibration["sharpness"]))
