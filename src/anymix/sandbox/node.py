"""A node of a graph whose inputs are known, as the rules of operators see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anymix.sandbox.shapes import N, Refused, Shape, Size, Value, W


@dataclass(frozen=True)
class Node:
    """An operator, its attributes as Python values, its inputs (None where one is left out)."""

    operator: str
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]
    n_outputs: int
    opset: int

    @property
    def first(self) -> Value:
        """The first input."""
        return self.given(0)

    def given(self, i: int) -> Value:
        """Return an input that must be there."""
        value = self.inputs[i] if i < len(self.inputs) else None
        if value is None:
            raise Refused(f"{self.operator} lacks an input")
        return value

    def there(self) -> list[Value]:
        """Return all inputs that are there."""
        return [value for value in self.inputs if value is not None]

    def option(self, name: str, i: int | None = None, default: Any = None) -> Any:
        """Return a setting: an attribute, or, since later opsets, an input that is constant."""
        if i is not None and i < len(self.inputs) and self.inputs[i] is not None:
            array = self.given(i).array
            if array is None:
                raise Refused(f"{self.operator} takes its {name} from the rows")
            return array.tolist()
        found = self.attributes.get(name, default)
        return found.tolist() if isinstance(found, np.ndarray) else found

    def axis(self, default: int, rank: int | None = None) -> int:
        """Return the attribute `axis`, counted from the front."""
        rank = len(self.first.shape) if rank is None else rank
        return place(self.attributes.get("axis", default), rank)


Rule = Callable[[Node], list[Shape]]


def place(axis: int, rank: int) -> int:
    """Count an axis from the front."""
    if not -rank <= axis < rank:
        raise Refused("an operator names an axis that is not there")
    return axis % rank


def along(shape: Shape, axis: int) -> int:
    """Refuse to work along the rows."""
    if shape[axis] in (N, W):
        raise Refused("an operator works along the rows, so that one would change another")
    return axis


def sizes_of(value: Value) -> tuple[Size, ...]:
    """Return sizes that are known before a row is there."""
    found = value.array if value.sizes is None else value.sizes
    if found is None or found.ndim != 1:
        raise Refused("a shape depends on the values of the rows")
    return tuple(found.tolist())
