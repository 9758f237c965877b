"""Summarise a verdict: how the model compares with each rival, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from anymix.report.markup import Unit, unit_of

Data = dict[str, Any]
GUESSES = ("constant", "chance")
ABOVE_GUESSING = "better than guessing at every source"


def standing(lower: float | None, upper: float | None) -> str:
    """Say on which side of zero the interval of a difference lies."""
    if upper is not None and upper < 0:
        return "better"
    return "worse" if lower is not None and lower > 0 else "level"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Join names in a sentence; shorten a long list."""
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


class Stand(NamedTuple):
    """A verdict with source names: the comparison with each baseline, and where."""

    found: Data
    sources: list[str]

    @property
    def unit(self) -> Unit:
        """The unit of the verdict."""
        return unit_of(self.found["measure"])

    @property
    def digits(self) -> int:
        """One choice of decimals for all of it."""
        return self.unit.digits(self.found["loss"])

    def rival(self, *names: str) -> Data | None:
        """Return the baseline of one of these names, if it was compared."""
        return next((rival for rival in self.found["rivals"] if rival["name"] in names), None)

    @property
    def guess(self) -> str:
        """Describe the guessing baseline."""
        if self.rival("chance") is not None:
            return "all labels alike, as these rows do not tell how often each occurs"
        return "the best answer that is the same for every row"

    def words(self, *names: str) -> list[str]:
        """Describe the comparison with a baseline on each source, and on all in equal parts."""
        rival = self.rival(*names)
        if rival is None:
            return []
        return [standing(a, b) for a, b in zip(rival["lower"], rival["upper"], strict=True)]

    def where(self, word: str, *names: str) -> list[str]:
        """Name the sources with this result."""
        verdicts = self.words(*names)[:-1]
        return [
            name for name, verdict in zip(self.sources, verdicts, strict=False) if verdict == word
        ]

    @property
    def average(self) -> str:
        """The comparison with the plain average, on all sources in equal parts."""
        return (self.words("average") or ["level"])[-1]

    @property
    def not_above_guessing(self) -> list[str]:
        """Name the sources where the model is not better than guessing."""
        return self.where("level", *GUESSES) + self.where("worse", *GUESSES)

    def phrases(self) -> list[str]:
        """Describe the comparison with the average, with own models, with guessing."""
        with_average = "level with" if self.average == "level" else f"{self.average} than"
        sentences = [f"{with_average} the plain average of the models"]
        worse, better, level = (self.where(word, "own") for word in ("worse", "better", "level"))
        if worse:
            sentences.append(f"worse at home than the own model of {listed(worse)}")
        elif better and level:
            sentences.append(
                f"at home better than the own model of {listed(better)} and level with that of "
                f"{listed(level)}"
            )
        elif better:
            sentences.append("better at home than each source’s own model")
        elif level:
            sentences.append("level at home with each source’s own model")
        if self.rival(*GUESSES) is not None:
            weak = self.not_above_guessing
            guess = f"no better than guessing at {listed(weak)}" if weak else ABOVE_GUESSING
            sentences.append(guess)
        return sentences

    def decision(self) -> tuple[str, str]:
        """Return the verdict's title and its level: "good", "mixed" or "bad"."""
        worse = self.where("worse", "own")
        if not self.found["fresh"]:
            return "mixed", "judge it on new rows first"
        if self.not_above_guessing:
            return "bad", "do not deploy it yet"
        if self.average == "worse":
            return "bad", "do not deploy it, the plain average does better"
        if worse and self.average == "better":
            verb, whose = ("does", "its") if len(worse) == 1 else ("do", "their")
            better = f"{listed(worse)} {verb} better with {whose} own model"
            return "mixed", f"deploy it for mixed traffic; at home {better}"
        if worse:
            return "bad", "these rows give no reason to deploy it"
        if self.average == "better":
            return "good", "these rows speak for deploying it"
        if self.where("better", "own"):
            return "mixed", "it can be deployed, but the plain average does as well"
        return "mixed", "on these rows it is level with what there is already"

    def advice(self) -> str:
        """Say which source's rows would help most; four times the rows halve an interval."""
        p = len(self.sources)
        L, U = (self.found[name][:p] for name in ("loss", "upper"))
        j = max(range(p), key=lambda k: (U[k] is None, U[k] if U[k] is not None else 0.0))
        if U[j] is None:
            return f"More labelled rows of {self.sources[j]}: it has too few for an interval."
        after = max(a + (b - a) / 2 for a, b in zip(L, U, strict=True))
        short = [name for name, upper in zip(self.sources, U, strict=True) if upper > after]
        most, then = (self.unit.said(v, self.digits) for v in (U[j], after))
        if U[j] - after >= LITTLE * U[j]:
            whose = "every source" if len(short) == p else listed(short)
            return (
                f"More labelled rows of {whose}. By these rows it may lose up to {most} at "
                f"{self.sources[j]}; four times as many would bring that to about {then}, if it "
                "does as well on them."
            )
        lost = self.unit.said(L[j], self.digits)
        return (
            f"A better model for {self.sources[j]}, so rows to train on: there it may lose most, "
            f"{lost} measured and up to {most}. Rows to judge by help little: four times as many "
            f"would bring that to about {then}."
        )


# A gain below this part of what may be lost is not worth the rows.
LITTLE = 0.1
