"""Queries to blocks: a name, a few options and small arrays go in, small arrays come out.

A query can be pickled, or sent as it is: options are strings (the loss may also be a `Loss`),
arrays are numbers.  The same query goes to every block, and no response depends on an earlier one,
so that a block that was lost can be asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anymix.core import Calibration, Combination, Consulting, CrossFittedCombination, Loss, get_loss

Arrays = dict[str, NDArray[Any]]
Options = dict[str, Any]


@dataclass(frozen=True)
class Query:
    """What every block is asked."""

    name: str
    options: Options = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)

    def __call__(self, block: Any) -> Arrays:
        """Let a block respond."""
        response: Arrays = block.answer(self.name, self.options, self.arrays)
        return response


if TYPE_CHECKING:
    once = cached_property
else:

    class once(cached_property):
        """A property that is computed once; unlike Python's own up to 3.11 it holds no lock.

        Several learners may ask at the same time, and a response comes when all of them wait for
        one: a lock that all instances of a class share would keep them from it for ever.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Compute it; from then on it stands before this in the instance."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


def numbers_in(arrays: Mapping[str, Any]) -> int:
    """Count the numbers of a response: what leaves a block.

    >>> numbers_in({"losses": np.zeros((2, 3)), "rows": np.zeros(2)})
    8
    """
    return sum(int(np.size(array)) for array in arrays.values())


def pack_calibration(calibration: Calibration | None) -> Arrays:
    """Write a calibration as arrays; none has none."""
    if calibration is None:
        return {}
    return {
        "temperature": calibration.temperature,
        "offset": calibration.offset,
        "floor": np.array(calibration.floor),
        "sharpness": np.array(calibration.sharpness),
    }


def read_calibration(arrays: Mapping[str, Any]) -> Calibration | None:
    """Read what `pack_calibration` wrote.

    >>> found = read_calibration(pack_calibration(Calibration(np.ones(2), np.zeros(2), -9.0)))
    >>> found.floor, read_calibration({})
    (-9.0, None)
    """
    if "temperature" not in arrays:
        return None
    known = arrays["temperature"], arrays["offset"]
    return Calibration(*known, float(arrays["floor"]), float(arrays["sharpness"]))


def pack_consulting(consulting: Consulting | None) -> Arrays:
    """Write a consulting as arrays; none has none."""
    if consulting is None:
        return {}
    known = consulting.weights, consulting.offset, consulting.reach
    return dict(zip(("ears", "ear_offset", "reach"), known, strict=True))


def read_consulting(arrays: Mapping[str, Any], loss: str | Loss) -> Consulting | None:
    """Read what `pack_consulting` wrote; the loss says of which form it is."""
    if "ears" not in arrays:
        return None
    return Consulting(arrays["ears"], arrays["ear_offset"], arrays["reach"], form_of(loss))


def form_of(loss: str | Loss) -> str:
    """Return which form pools have, by the loss.

    >>> form_of("squared"), form_of("brier")
    ('numbers', 'labels')
    """
    known = get_loss(loss)
    if known.takes != "number":
        return "labels"
    return "positive" if known.positive else "numbers"


def pack_average(used: CrossFittedCombination) -> Arrays:
    """Write an average as arrays, those of part t with the number t in their names."""
    found: Arrays = {"eta": np.array(used.eta), "parts": np.array(len(used.parts))}
    for t, part in enumerate(used.parts):
        each = {"z": part.z} | pack_calibration(part.calibration)
        each |= pack_consulting(part.consulting)
        found |= {f"{name}.{t}": array for name, array in each.items()}
    return found


def read_average(options: Mapping[str, Any], arrays: Mapping[str, Any]) -> CrossFittedCombination:
    """Read what `pack_average` wrote, beside the options "rule" and "loss".

    >>> one = CrossFittedCombination((Combination(np.array([0.5, 0.5]), 0.1),))
    >>> read_average({"rule": "marginal", "loss": "squared"}, pack_average(one)).z
    array([0.5, 0.5])
    """
    parts = [
        Combination(
            each["z"],
            float(arrays["eta"]),
            read_calibration(each),
            options["rule"],
            read_consulting(each, options["loss"]),
        )
        for each in (_of_part(arrays, t) for t in range(int(arrays["parts"])))
    ]
    return CrossFittedCombination(tuple(parts))


def _of_part(arrays: Mapping[str, Any], t: int) -> Arrays:
    ending = f".{t}"
    return {n.removesuffix(ending): a for n, a in arrays.items() if n.endswith(ending)}
