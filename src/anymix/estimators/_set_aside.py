"""Whose rows are to be set aside: names, or the one site that harms others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from anymix.exceptions import InputError
from anymix.sources import FEWEST_SITES, LearningSettings, Tables, find_influence


def with_set_aside(
    asked: str | Sequence[str] | None,
    tables: Tables,
    goal: LearningSettings,
    names: Iterable[object],
) -> LearningSettings:
    """Return the goal with the numbers of the sources that are set aside.

    Where the rows themselves have chosen whom, the certificate is spread over all they could.

    Examples
    --------
    >>> import numpy as np
    >>> tables = Tables(np.zeros((3, 3)), np.zeros((3, 3)))
    >>> with_set_aside(["west"], tables, LearningSettings(), ["north", "south", "west"]).set_aside
    (2,)
    """
    if asked is None:
        return goal
    known = [str(name) for name in names]
    if asked == "worst":
        _check_left(len(known) - 1)
        worst = find_influence(tables, goal, known).worst()
        return replace(goal, set_aside=() if worst is None else (worst,), ways=len(known) + 1)
    chosen = check_set_aside(asked, known)
    return replace(goal, set_aside=tuple(k for k, name in enumerate(known) if name in chosen))


def check_set_aside(asked: str | Sequence[str] | None, names: Iterable[object]) -> set[str]:
    """Return the sources that are named; refuse names of none, and too many of them."""
    known = [str(name) for name in names]
    if asked is None:
        return set()
    if asked == "worst":
        _check_left(len(known) - 1)
        return set()
    if isinstance(asked, str):
        raise InputError("set_aside", f"takes a list of names, or 'worst'; got {asked!r}")
    chosen = {str(name) for name in asked}
    for name in sorted(chosen - {*known}):
        raise InputError("set_aside", f"names {name!r}; the sources are {', '.join(known)}")
    _check_left(len(known) - len(chosen))
    return chosen


def _check_left(n: int) -> None:
    if n < FEWEST_SITES:
        raise InputError(
            "set_aside",
            f"would leave the rows of fewer than {FEWEST_SITES} sources to choose z; give the rows "
            "of more sources, or set fewer aside",
        )
