"""The model folder: model.json, the sources it was made of, and the tables it was learned from.

    model.json                      everything that was learned, as one JSON object
    sources/<name>-<digits>/        the source folders
    tables-<digits>.safetensors     what the sources said of held-out rows; no features
    router-<digits>.safetensors     a classifier of sources, where it took the place of densities

Parts are named by their SHA-256 and written first; model.json, which names them, is replaced at
the end in one step.  So a run that is killed leaves the old model whole.  Records of new rows that
were kept beside the old model go just before that: a new model never stands beside them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from anymix._errors import AuditError, MissingError
from anymix._files import read_file, replacing, write_folder
from anymix.core import plain
from anymix.estimators import summarise
from anymix.exchange import FileFacts, ReceivedSource, parse_json, part_of, read_sources
from anymix.models.parts import (
    described,
    name_columns,
    nameless,
    pack_sources,
    read_router,
    router_to_arrays,
)
from anymix.models.place import check_place, clean, source_folder
from anymix.models.record import (
    KIND,
    SCHEMA,
    check_kind,
    check_learned,
    model_from_dict,
    model_to_dict,
)
from anymix.models.saved_records import drop_records, read_records
from anymix.models.tables_file import read_tables, tables_to_arrays
from anymix.models.upgrade import upgraded
from anymix.sources import Novelty, Tables

RECORD = "model.json"
RECORD_LIMIT = 64 * 2**20


@dataclass(frozen=True)
class SavedModel:
    """A model folder that was read: where, the fitted model, its record and its sources."""

    path: Path
    model: Any
    record: dict[str, Any]
    received: list[ReceivedSource]


def save(model: Any, folder: str | Path) -> None:
    """Write a fitted model into a folder: sources, densities and all that was learned.

    Predictors are written as ONNX graphs, densities as plain numbers, so that the folder can be
    read where nothing but anymix is trusted.  A kernel density *is* its training rows, and they
    are in the folder; so are the targets of the held-out rows.  The folder replaces a model that
    is there, and nothing else.

    Parameters
    ----------
    model : DistributionWeightedRegressor or DistributionWeightedClassifier
        Fitted.
    folder : path

    Raises
    ------
    ValueError
        If a part cannot be written, such as a Python function; nothing is written then.

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
    >>> bool(np.allclose(again.predict(X), model.predict(X), rtol=1e-12))
    True
    >>> again.certificate_.sentence == model.certificate_.sentence
    True
    """
    check_kind(model)
    check_is_fitted(model, "combination_")
    check_place(folder)
    record = model_to_dict(model)
    write_model(folder, model, pack_sources(model), record)


def write_model(
    folder: str | Path,
    model: Any,
    received: Sequence[ReceivedSource],
    record: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a fitted model whose sources are in folders already; return its record."""
    folder = Path(folder)
    check_place(folder)
    record = model_to_dict(model) if record is None else record
    arrays = {"tables": _tables(model), "router": router_to_arrays(model)}
    parts = {stem: part_of(stem, found) for stem, found in arrays.items() if found is not None}
    record |= dict.fromkeys(arrays)
    record |= {stem: {"file": part.name, **vars(part.facts)} for stem, part in parts.items()}
    names = [source_folder(one) for one in received]
    record["sources"] = [described(one, name) for one, name in zip(received, names, strict=True)]
    record["has_densities"] = vars(model).get("novelty_") is not None
    record["at_label"] = "tables_" in vars(model) and model.tables_.at_label
    record = plain(record, exact=True)
    written = _json(record)
    for name, one in zip(names, received, strict=True):
        if not (folder / "sources" / name).exists():
            write_folder(folder / "sources" / name, one.files)
    for part in parts.values():
        with replacing(folder / part.name) as temporary:
            temporary.write_bytes(part.content)
    with replacing(folder / RECORD) as temporary:
        temporary.write_text(written, "utf-8")
        # Before the new model and not after: killed between the two, an old model lacks a record,
        # which can be made again; a new one would show the certificate of another.
        drop_records(folder)
    clean(folder, {*names, *(part.name for part in parts.values())})
    return record


def _tables(model: Any) -> dict[str, NDArray[Any]] | None:
    tables: Tables | None = vars(model).get("tables_")
    return None if tables is None else tables_to_arrays(tables)


def _json(record: dict[str, Any]) -> str:
    try:
        return json.dumps(record, indent=1, allow_nan=False)
    except TypeError as error:
        raise ValueError(
            f"the model cannot be written as JSON ({error}); name domains and classes by strings "
            "or whole numbers."
        ) from error


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read model.json alone; one of the first format is brought to this one.

    Examples
    --------
    >>> read_record("nowhere")
    Traceback (most recent call last):
    ...
    anymix._errors.MissingError: nowhere does not exist; give a model folder...
    """
    folder = Path(folder)
    if not folder.exists():
        raise MissingError(folder, "does not exist; give a model folder, which anymix fit writes")
    if not (folder / RECORD).is_file():
        raise AuditError(folder, f"is not a model folder: it has no {RECORD}")
    record = parse_json(read_file(folder / RECORD, RECORD_LIMIT), str(folder / RECORD))
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise AuditError(folder / RECORD, "is not the record of a model")
    schema = record.get("schema")
    if schema == 1:
        return _audited(folder, upgraded, record)
    if schema != SCHEMA:
        raise AuditError(
            folder / RECORD, f"has schema {schema!r:.20}; this version reads 1 and {SCHEMA}"
        )
    return record


def _audited(folder: Path, build: Any, *given: Any) -> Any:
    """Build from a record that may be wrong in any way; say in a sentence what is wrong."""
    try:
        return build(*given)
    except AuditError:
        raise
    except KeyError as error:
        raise AuditError(folder / RECORD, f"lacks {error}") from error
    except OSError as error:
        raise AuditError(folder, f"lacks a part: {error.strerror} ({error.filename})") from error
    except (TypeError, AttributeError, IndexError, OverflowError) as error:
        raise AuditError(folder / RECORD, "has an entry of the wrong kind") from error
    except ValueError as error:
        raise AuditError(folder / RECORD, f"is not sound: {str(error).rstrip('.')}") from error


def read_model(folder: str | Path) -> SavedModel:
    """Read a model folder; its sources are audited as if they came from strangers."""
    folder, record = Path(folder), read_record(folder)
    model, received = _audited(folder, _restore, folder, record)
    return SavedModel(folder, model, record, received)


def load(folder: str | Path) -> Any:
    """Read a model that `save` or `anymix fit` wrote; it answers as the fitted one did.

    Its sources are audited as if they came from strangers; see `save`.
    """
    return read_model(folder).model


def _restore(folder: Path, record: dict[str, Any]) -> tuple[Any, list[ReceivedSource]]:
    model = _restore_learned(folder, record)
    entries = record["sources"]
    folders = [folder / "sources" / plain_name(entry["folder"]) for entry in entries]
    # A single source, and those that a router tells apart, need no density.
    bare = record["router"] is not None or len(folders) == 1
    received = read_sources(folders, without_density=bare)
    for one, entry in zip(received, entries, strict=True):
        if one.sha256 != entry["sha256"]:
            raise AuditError(one.folder, "is not the source that the model was made of")
    model.sources = [nameless(one.source) for one in received]
    model.sources_ = list(model.sources)
    model.router_ = None
    if record["router"] is not None:
        path = folder / plain_name(record["router"]["file"])
        model.router_ = read_router(path, record["router"], model.n_features_in_)
    name_columns(model)
    if [source.name for source in model.sources] != [str(n) for n in model.source_names_]:
        raise AuditError(folder / RECORD, "does not name the sources as their manifests do")
    return model, received


def _restore_learned(folder: Path, record: dict[str, Any]) -> Any:
    """Return the model without its sources, which no table asks for."""
    model, stated = model_from_dict(record), record["tables"]
    if stated is None:
        return model
    model.tables_ = read_tables(
        folder / plain_name(stated["file"]),
        FileFacts(stated["size"], stated["sha256"]),
        classes=getattr(model, "classes_", None),
        has_densities=bool(record["has_densities"]),
        at_label=bool(record["at_label"]),
    )
    check_learned(model)
    model.novelty_ = Novelty.from_tables(model.tables_) if record["has_densities"] else None
    return model


def plain_name(name: str) -> str:
    """Refuse a part that does not lie in the folder itself."""
    if Path(name).name != name or name.startswith("."):
        raise AuditError(RECORD, f"names the part {name!r:.60}, which lies outside its folder")
    return name


def summarise_folder(folder: str | Path, name: str | None = None) -> dict[str, Any]:
    """Return what a report says of a model folder; no source is read or run.

    Records of new rows that were kept there take the place of those of fit.
    """
    folder = Path(folder)
    record = read_record(folder)
    model = _audited(folder, _restore_learned, folder, record)
    check_several(folder, model)
    shown = summarise(model, model.comparison_, name=name or folder.resolve().name)
    return shown | read_records(folder)


def check_several(folder: str | Path, model: Any) -> None:
    """Refuse a model of one source where sources are compared."""
    if len(model.source_names_) < 2:
        raise ValueError(f"{folder} is a model of one source: there is nothing to compare.")
