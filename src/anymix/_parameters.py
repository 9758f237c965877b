"""Rules for parameters, checked before anything is read or trained.

A class states a rule for each parameter in `_takes`; `check_parameters` checks all of them.  A
rule returns nothing, or the rest of a sentence: what the value must be, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from anymix.exceptions import ParameterError

Rule = Callable[[Any], str | None]


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """Suggest the name that was probably meant, as the end of a sentence, or return nothing.

    Examples
    --------
    >>> did_you_mean("regrets", ["regret", "robust"]), did_you_mean(7, ["regret"])
    ("; did you mean 'regret'?", '')
    >>> did_you_mean("AUC", ["accuracy", "auc"])
    "; did you mean 'auc'?"
    """
    found = nearest(word, words) if isinstance(word, str) else None
    return f"; did you mean {found!r}?" if found is not None else ""


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the closest known name (case, spaces, prefix or spelling), or None.

    >>> nearest("acc", ["auc", "accuracy"]), nearest("age", ["wage", " Age"]), nearest("f1", ["r2"])
    ('accuracy', ' Age', None)
    """
    known, plain = list(words), word.strip().casefold()
    same = [one for one in known if one.strip().casefold() == plain]
    longer = [one for one in known if len(plain) > 2 and one.casefold().startswith(plain)]
    folded = {one.casefold(): one for one in known}
    alike = [folded[one] for one in get_close_matches(plain, folded, 1)]
    return next(iter([*same, *longer, *alike]), None)


def either(words: Iterable[str]) -> str:
    """List words as alternatives.

    >>> either(["a", "b", "c"]), either(["a"])
    ("'a', 'b' or 'c'", "'a'")
    """
    *first, last = [repr(word) for word in words]
    return f"{', '.join(first)} or {last}" if first else last


class Words:
    """One of a few words.

    Examples
    --------
    >>> Words("regret", "robust")("regert")
    "must be 'regret' or 'robust', not 'regert'; did you mean 'regret'?"
    """

    def __init__(self, *words: str):
        self.words = words

    def __call__(self, value: Any) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        return f"must be {either(self.words)}, not {value!r:.60}{did_you_mean(value, self.words)}"


@dataclass(frozen=True)
class Number:
    """A number from `least` to `most`; `above` and `below` are ends that it must not reach.

    Examples
    --------
    >>> Number(above=0)(-1)
    'must be a number above 0, not -1'
    >>> Number(2, whole=True)(2.5)
    'must be a whole number of 2 or more, not 2.5'
    """

    least: float = -np.inf
    most: float = np.inf
    above: float = -np.inf
    below: float = np.inf
    whole: bool = False

    def __call__(self, value: Any) -> str | None:
        kind = Integral if self.whole else Real
        fits = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
        within = fits and self.least <= value <= self.most and self.above < value < self.below
        if within and np.isfinite(value):
            return None
        ends = {
            f"of {self.least:g} or more": self.least,
            f"above {self.above:g}": self.above,
            f"of {self.most:g} or less": self.most,
            f"below {self.below:g}": self.below,
        }
        meant = " and ".join(text for text, end in ends.items() if np.isfinite(end))
        what = f"a {'whole ' * self.whole}number {meant}".rstrip()
        return f"must be {what}, not {value!r:.60}"


def share_rule(value: Any) -> str | None:
    """Check a share strictly between 0 and 1, such as a confidence.

    Examples
    --------
    >>> share_rule(95)
    'is a share between 0 and 1: write 0.95, not 95'
    """
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if number and 0 < value < 1:
        return None
    percent = number and 1 < value < 100
    meant = f": write {value / 100:g}, not {value:g}" if percent else f", not {value!r:.60}"
    return f"is a share between 0 and 1{meant}"


def flag_rule(value: Any) -> str | None:
    """Check that a value is True or False, and nothing merely truthy.

    >>> flag_rule("no")
    "must be True or False, not 'no'"
    """
    sound = isinstance(value, bool | np.bool_)
    return None if sound else f"must be True or False, not {value!r:.60}"


class Either:
    """Accept what any of several rules accepts; their options are listed together.

    >>> Either(Words("auto"), Number(0))("atuo")
    "must be 'auto', or a number of 0 or more, not 'atuo'; did you mean 'auto'?"
    >>> Either(None, Number(1, whole=True))(None)
    """

    def __init__(self, *rules: Rule | None):
        self.rules = rules

    def __call__(self, value: Any) -> str | None:
        if value is None and None in self.rules:
            return None
        said = [rule(value) for rule in self.rules if rule is not None]
        if None in said:
            return None
        wants = [str(one).removeprefix("must be ").partition(", not ")[0] for one in said]
        wants += ["None"] * (None in self.rules)
        words = [w for rule in self.rules if isinstance(rule, Words) for w in rule.words]
        return f"must be {', or '.join(wants)}, not {value!r:.60}{did_you_mean(value, words)}"


def seed_rule(value: Any) -> str | None:
    """Check a seed: a whole number, a random number generator, or None.

    >>> seed_rule("today")
    "must be a whole number of 0 or more, a RandomState or None, not 'today'"
    """
    number = Number(0, 2**32 - 1, whole=True)(value) is None
    if value is None or number or hasattr(value, "random_sample") or value is np.random:
        return None
    return f"must be a whole number of 0 or more, a RandomState or None, not {value!r:.60}"


def check(value: Any, name: str, rule: Rule) -> None:
    """Raise an error for a value that breaks its rule.

    Examples
    --------
    >>> check(95, "confidence", share_rule)
    Traceback (most recent call last):
    ...
    anymix.exceptions.ParameterError: confidence is a share between 0 and 1: write 0.95, not 95.
    """
    said = rule(value)
    if said is not None:
        raise ParameterError(f"{name} {said}" if said.endswith("?") else f"{name} {said}.")


def check_parameters(thing: Any) -> None:
    """Check all parameters of an object for which its class, or a base class, states a rule."""
    rules: dict[str, Rule] = {}
    for kind in reversed(type(thing).__mro__):
        rules |= vars(kind).get("_takes", {})
    for name, rule in rules.items():
        check(getattr(thing, name), name, rule)


def is_automatic(estimator: Any) -> bool:
    """Whether the learner is chosen automatically."""
    return estimator is None or (isinstance(estimator, str) and estimator == "auto")
