"""What an exported graph says of itself: metadata of the ONNX file, under documented keys.

Every value is a text; those of `AS_JSON` are JSON.  docs/serving.md lists the keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from anymix._version import __version__
from anymix.exceptions import InputError
from anymix.exchange._optional import need
from anymix.exchange.features import Feature, gaps_of
from anymix.exchange.manifest import parse_json
from anymix.exchange.read import ReceivedSource

PREFIX = "anymix."
AS_JSON = ("features", "classes", "sources", "z", "eta", "certificate.grounds")


def notes_of(
    received: Sequence[ReceivedSource], classes: NDArray[Any] | None, float32: bool
) -> dict[str, str]:
    """Return what sources say of themselves: features, classes, names.

    "columns" is the coding of a table with words or gaps, which older readers look for.
    """
    first = received[0].manifest
    notes = noted(
        version=__version__,
        task=first.task,
        dtype="float32" if float32 else "float64",
        features=described_features(first.features),
        classes=None if classes is None else classes.tolist(),
        sources=[one.manifest.name for one in received],
    )
    if first.columns is not None:
        notes["columns"] = json.dumps(first.columns.to_dict())
    return notes


def described_features(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """Name columns and say their kinds; the code of a category is its place in the list.

    Examples
    --------
    >>> described_features([Feature("age", "float32")])
    [{'name': 'age', 'kind': 'number', 'gaps': False}]
    """
    found = []
    for feature, gaps in zip(features, gaps_of(features), strict=True):
        words = getattr(feature, "categories", None)
        kind = "text" if feature.dtype == "string" else "number" if words is None else "category"
        listed = {} if words is None else {"categories": list(words)}
        found.append({"name": feature.name, "kind": kind, "gaps": gaps, **listed})
    return found


def noted(**values: Any) -> dict[str, str]:
    """Write values as texts under their keys; what is None is left out.

    Examples
    --------
    >>> noted(loss="squared", z=[0.5, 0.5], certificate__date=None)
    {'anymix.loss': 'squared', 'anymix.z': '[0.5, 0.5]'}
    """
    keys = {name: name.replace("__", ".") for name in values}
    return {
        PREFIX + keys[name]: json.dumps(value) if keys[name] in AS_JSON else str(value)
        for name, value in values.items()
        if value is not None
    }


def describe_graph(path: str | Path) -> dict[str, Any]:
    """Return what a file that `anymix export` wrote says of itself.

    Parameters
    ----------
    path : path
        The ONNX file.

    Returns
    -------
    dict
        By key, without the prefix "anymix.": `features`, `classes`, `sources`, `z`, `certificate`
        and more; docs/serving.md lists them.  It is what the file claims; nothing is checked.

    Raises
    ------
    InputError
        If the file is no graph that anymix has written.

    Examples
    --------
    >>> describe_graph("nowhere.onnx")
    Traceback (most recent call last):
    ...
    anymix.exceptions.InputError: nowhere.onnx cannot be read as an ONNX file; give one that \
anymix export wrote.
    """
    onnx = need("onnx")
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception as error:
        raise InputError(
            path, "cannot be read as an ONNX file; give one that anymix export wrote"
        ) from error
    told = {one.key: one.value for one in model.metadata_props if one.key.startswith(PREFIX)}
    if not told:
        raise InputError(path, "has no notes of anymix; export the model again to have them")
    found = {key.removeprefix(PREFIX): value for key, value in told.items()}
    return {
        key: parse_json(value.encode(), f"{path}, {key}") if key in AS_JSON else value
        for key, value in found.items()
    }
