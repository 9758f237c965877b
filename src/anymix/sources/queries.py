"""Queries to blocks: from a name, options and small arrays to small arrays.

A query can be pickled, or sent as it is: options are strings (the loss may also be a `Loss`),
arrays are numbers.  The same query goes to every block, and no response depends on an earlier one,
so that a block that was lost can be asked again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anymix.core import Calibration, Combination, Consulting, CrossFittedCombination, Loss, get_loss

Arrays = dict[str, NDArray[Any]]
Options = dict[str, Any]
T = TypeVar("T")
# Names of the arrays that a calibration and a consulting are written as.
CALIBRATION = ("temperature", "offset", "floor", "sharpness")
CONSULTING = ("ears", "ear_offset", "reach", "choice")
# What may differ between two queries about one problem, and between two about one average.
NOT_OF_PROBLEM = ("Z", "multipliers", "z", "width", "theta")
NOT_OF_AVERAGE = ("part", "c", "t", "delta", "thresholds", "totals", "asked")


@dataclass(frozen=True)
class Query:
    """A query to every block."""

    name: str
    options: Options = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)

    def __call__(self, block: Any) -> Arrays:
        """Let a block respond."""
        response: Arrays = block.answer(self.name, self.options, self.arrays)
        return response


class Memory:
    """A cache of the last `size` results, by key."""

    def __init__(self, size: int):
        self.size = size
        self._store: OrderedDict[Any, Any] = OrderedDict()
        self._lock = Lock()

    def __call__(self, key: Any, make: Callable[[], T]) -> T:
        """Return what was made for a key, or make it."""
        with self._lock:
            if key in self._store:
                self._store.move_to_end(key)
                found: T = self._store[key]
                return found
        made = make()
        with self._lock:
            self._store[key] = made
            while len(self._store) > self.size:
                self._store.popitem(last=False)
        return made


def key_of(
    options: Options, arrays: Mapping[str, Any], besides: tuple[str, ...] = NOT_OF_PROBLEM
) -> Any:
    """A key that differs for different tables."""
    told = {n: np.asarray(a).tobytes() for n, a in arrays.items() if n not in besides}
    return tuple(sorted(options.items(), key=str)), tuple(sorted(told.items()))


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


def form_of(loss: str | Loss) -> str:
    """Return the form of pools for a loss.

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
        found[f"z.{t}"] = part.z
        if part.calibration is not None:
            known = ((name, getattr(part.calibration, name)) for name in CALIBRATION)
            found |= {f"{name}.{t}": np.asarray(value) for name, value in known}
        if part.consulting is not None:
            pools = part.consulting
            given = pools.weights, pools.offset, pools.reach, pools.choices
            found |= {f"{n}.{t}": a for n, a in zip(CONSULTING, given, strict=True)}
    return found


def read_average(options: Mapping[str, Any], arrays: Mapping[str, Any]) -> CrossFittedCombination:
    """Read what `pack_average` wrote, besides the options "rule" and "loss".

    >>> one = CrossFittedCombination((Combination(np.array([0.5, 0.5]), 0.1),))
    >>> read_average({"rule": "marginal", "loss": "squared"}, pack_average(one)).z
    array([0.5, 0.5])
    """
    parts, eta, form = [], float(arrays["eta"]), form_of(options["loss"])
    for t in range(int(arrays["parts"])):
        calibration = consulting = None
        if f"temperature.{t}" in arrays:
            temperature, offset, floor, sharpness = (arrays[f"{n}.{t}"] for n in CALIBRATION)
            calibration = Calibration(temperature, offset, float(floor), float(sharpness))
        if f"ears.{t}" in arrays:
            weights, offset, reach = (arrays[f"{name}.{t}"] for name in CONSULTING[:3])
            choice = arrays.get(f"choice.{t}")
            chosen = None if choice is None else tuple(int(one) for one in choice)
            consulting = Consulting(weights, offset, reach, form, chosen)
        parts.append(Combination(arrays[f"z.{t}"], eta, calibration, options["rule"], consulting))
    return CrossFittedCombination(tuple(parts))
