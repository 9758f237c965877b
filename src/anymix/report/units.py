"""What numbers are measured in, and how they are written: a number without a unit says nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from anymix.report.markup import decimals, number

SQUARED = "the target’s unit, squared"


class Unit(NamedTuple):
    """A measure in words, and its unit; shares are written as per cent, their gaps as points.

    short stands behind a number in a sentence, `unit` in the head of a table.
    """

    name: str
    unit: str = ""
    short: str = ""
    share: bool = False

    @property
    def head(self) -> str:
        """Name the measure with its unit.

        >>> unit_of("cross_entropy").head, unit_of("accuracy").head
        ('cross-entropy in nats', 'share of wrong labels')
        """
        return f"{self.name} in {self.unit}" if self.unit else self.name

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


WRONG = Unit("share of wrong labels", share=True)
NATS = ("nats", "nats")
UNITS = {
    "accuracy": WRONG,
    WRONG.name: WRONG,
    "cross-entropy": Unit("cross-entropy", *NATS),
    "logistic": Unit("logistic loss", *NATS),
    "poisson": Unit("half the Poisson deviance", *NATS),
    "poisson-log": Unit("half the Poisson deviance", *NATS),
    "brier": Unit("Brier score (0 is perfect, 2 the worst)"),
    "hinge": Unit("hinge loss"),
    "squared": Unit("squared error", SQUARED, "units²"),
    "huber": Unit("Huber loss", SQUARED, "units²"),
    "absolute": Unit("absolute error", "the target’s unit", "units"),
    "pinball": Unit("pinball loss", "the target’s unit", "units"),
}


def unit_of(measure: str | None) -> Unit:
    """Return the unit of a measure or loss by its name; one of the user's own has none.

    >>> unit_of("MyLoss").head, unit_of(None).head
    ('MyLoss', 'loss')
    """
    if measure is None:
        return Unit("loss")
    return UNITS.get(str(measure).replace("_", "-"), Unit(str(measure)))
