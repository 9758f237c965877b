"""What numbers are measured in, in words: a number without a unit says nothing."""

from __future__ import annotations

from typing import NamedTuple

SQUARED = "squared units of the target"


class Unit(NamedTuple):
    """A measure in words, and its unit.

    short stands behind a number in a sentence, `unit` in the head of a table.  Of a share all
    values lie in [0, 1].  `higher` is better of some; all others are losses.  What is no `mean`
    over rows on a mixture does not follow from what it is on each source.
    """

    name: str
    unit: str = ""
    short: str = ""
    share: bool = False
    higher: bool = False
    mean: bool = True

    @property
    def head(self) -> str:
        """Name the measure with its unit.

        >>> unit_of("cross_entropy").head, unit_of("accuracy").head, unit_of("mae").head
        ('cross-entropy in nats', 'share of wrong labels', 'absolute error in units of the target')
        """
        return f"{self.name} in {self.unit}" if self.unit else self.name

    @property
    def direction(self) -> str:
        """Say which values are better.

        >>> unit_of("auc").direction, unit_of("squared").direction
        ('higher is better', 'smaller is better')
        """
        return "higher is better" if self.higher else "smaller is better"


WRONG = Unit("share of wrong labels", share=True)
AUC = Unit("area under the ROC curve", higher=True, mean=False)
ABSOLUTE = Unit("absolute error", "units of the target", "units")
ROOT = Unit("root of the mean squared error", "units of the target", "units", mean=False)
NATS = ("nats", "nats")
# By the names of losses, and by those that people use for measures.
UNITS = {
    "accuracy": WRONG,
    WRONG.name: WRONG,
    "auc": AUC,
    AUC.name: AUC,
    "rmse": ROOT,
    "cross-entropy": Unit("cross-entropy", *NATS),
    "log-loss": Unit("cross-entropy", *NATS),
    "logistic": Unit("logistic loss", *NATS),
    "poisson": Unit("half the Poisson deviance", *NATS),
    "poisson-log": Unit("half the Poisson deviance", *NATS),
    "brier": Unit("Brier score, 0 to 2"),
    "hinge": Unit("hinge loss"),
    "squared": Unit("squared error", SQUARED, "units²"),
    "mse": Unit("squared error", SQUARED, "units²"),
    "huber": Unit("Huber loss", SQUARED, "units²"),
    "absolute": ABSOLUTE,
    "mae": ABSOLUTE,
    "pinball": Unit("pinball loss", "units of the target", "units"),
}


def unit_of(measure: str | None) -> Unit:
    """Return the unit of a measure or loss by its name; one of the user's own has none.

    >>> unit_of("MyLoss").head, unit_of(None).head
    ('MyLoss', 'loss')
    """
    if measure is None:
        return Unit("loss")
    return UNITS.get(str(measure).replace("_", "-"), Unit(str(measure)))
