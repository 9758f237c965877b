"""How numbers are written on the page, each with its unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anymix.core import MetricUnit
from anymix.core import unit_of as measured
from anymix.report.markup import decimals, number


class Unit(MetricUnit):
    """A unit that writes: shares are written as per cent, their gaps as points."""

    @property
    def scale(self) -> float:
        """What a value is multiplied by to be shown."""
        return 100.0 if self.share else 1.0

    def digits(self, values: Iterable[Any]) -> int:
        """How many decimals serve all these values."""
        found = decimals(values)
        return max(found - 3, 1) if self.share else found

    def text(self, value: float | None, digits: int, sign: bool = False) -> str:
        r"""Write a value for a cell of a table whose head tells the unit.

        >>> unit_of("accuracy").text(0.0718, 1), unit_of("squared").text(-0.5, 2, sign=True)
        ('7.2\xa0%', '−0.50')
        """
        if value is None:
            return number(None, digits)
        return number(self.scale * value, digits, sign) + "\u00a0%" * self.share

    def gap(self, value: float | None, digits: int) -> str:
        """Write a difference for a cell: of shares in points, which are no per cent of anything.

        >>> unit_of("accuracy").gap(-0.25, 1)
        '−25.0'
        """
        return number(None if value is None else self.scale * value, digits, True)

    def said(self, value: float | None, digits: int) -> str:
        r"""Write a value with its unit, for a sentence.

        >>> unit_of("cross-entropy").said(0.3561, 3), unit_of("brier").said(0.5, 1)
        ('0.356\xa0nats', '0.5')
        """
        return self.text(value, digits) + (f"\u00a0{self.short}" if self.short else "")

    @property
    def gap_unit(self) -> str:
        """What a difference is in, for a sentence."""
        return "points" if self.share else self.short


def unit_of(measure: str | None) -> Unit:
    """Return the unit of a measure or loss by its name; one of the user's own has none.

    >>> unit_of("cross_entropy").head, unit_of("MyLoss").head, unit_of(None).head
    ('cross-entropy in nats', 'MyLoss', 'loss')
    """
    return Unit(*measured(measure))
