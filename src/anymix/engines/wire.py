"""Values as arrays with names, and back: what may travel between a server and sites, nothing else.

The shape of a value is written as JSON, its arrays beside it.  Only records that are listed are
ever built, from fields that are numbers, words, arrays or such records; nothing is unpickled.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.core import loss_from_dict, loss_to_dict
from anymix.exceptions import InputError
from anymix.storage import plain_json

Arrays = Mapping[str, NDArray[Any]]
Records = Mapping[str, Callable[..., Any]]
SHAPE = "shape"
# Numbers and truth values, and labels that are words.
KINDS = "biufU"


def pack(value: Any, records: Records) -> dict[str, NDArray[Any]]:
    """Write a value as arrays; `records` are the classes that may occur in it, by name.

    Examples
    --------
    >>> packed = pack(("losses", np.arange(3.0), None, 0.5), {})
    >>> sorted(packed)
    ['a0', 'shape']
    >>> unpack(packed, {})
    ('losses', array([0., 1., 2.]), None, 0.5)
    """
    arrays: dict[str, NDArray[Any]] = {}
    shape = json.dumps(_shape(value, records, arrays), allow_nan=False)
    return {SHAPE: np.frombuffer(shape.encode(), np.uint8), **arrays}


def unpack(arrays: Arrays, records: Records) -> Any:
    """Return the value that `pack` wrote; whatever is not of its form is refused."""
    if SHAPE not in arrays or arrays[SHAPE].dtype != np.uint8 or arrays[SHAPE].ndim != 1:
        raise InputError("a message", "has no shape of its values; both ends need the same anymix")
    try:
        return _value(plain_json(arrays[SHAPE].tobytes()), records, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError("a message", f"cannot be understood: {error}") from error


def _shape(value: Any, records: Records, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return what JSON can say of a value; lists begin with a word that says what they are."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return ["float", str(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays[name := f"a{len(arrays)}"] = _plain(value)
        return ["array", name]
    # A loss of the library is written by its name; of others loss_to_dict says that they have none.
    if hasattr(value, "dc_terms"):
        return ["loss", loss_to_dict(value)]
    return _compound(value, records, arrays)


def _compound(value: Any, records: Records, arrays: dict[str, NDArray[Any]]) -> Any:
    def inner(item: Any) -> Any:
        return _shape(item, records, arrays)

    kind = type(value).__name__
    if records.get(kind) is type(value):
        fields = (
            {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            if dataclasses.is_dataclass(value)
            else value._asdict()
        )
        return ["record", kind, {name: inner(item) for name, item in fields.items()}]
    if type(value) in (tuple, list):
        return [kind, *map(inner, value)]
    if type(value) is dict:
        return ["dict", {str(name): inner(item) for name, item in value.items()}]
    raise InputError(f"a {kind}", "may not travel between a server and sites")


def _value(shape: Any, records: Records, arrays: Arrays) -> Any:
    if not isinstance(shape, list):
        if isinstance(shape, dict):
            raise ValueError("a bare object")
        return shape
    kind, *rest = shape
    if kind in ("tuple", "list"):
        found = [_value(item, records, arrays) for item in rest]
        return tuple(found) if kind == "tuple" else found
    if kind == "dict":
        return {name: _value(item, records, arrays) for name, item in rest[0].items()}
    if kind == "record":
        fields = {name: _value(item, records, arrays) for name, item in rest[1].items()}
        return records[rest[0]](**fields)
    if kind == "loss":
        return loss_from_dict(rest[0])
    return _plain(arrays[rest[0]]) if kind == "array" else _odd_float(kind, *rest)


def _odd_float(kind: Any, word: str) -> float:
    if kind != "float" or word not in ("inf", "-inf", "nan"):
        raise ValueError(f"an unknown kind {kind!r:.40}")
    return float(word)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in KINDS:
        raise InputError(f"an array of {array.dtype}", "may not travel between a server and sites")
    return array
