"""The deployed model's losses at held-out rows, from wherever they can be had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import CrossFittedCombination, get_loss, loss_name, losses_at
from anymix.sources import HeldOut, Tables, crossed_answers

# What to do where there are none.
REMEDY = (
    "give losses, the deployed model's loss at each held-out row, or y_reference, the labels of "
    "X_reference, to Monitor(model, X_reference, sample_domain)"
)


class Losses(NamedTuple):
    """Losses at the held-out rows (m,), the name of the loss, whether z never saw these rows."""

    values: FloatArray
    loss: str = ""
    fresh: bool = True


def losses_of_rows(model: Any, X: Any, y: Any, domain: IntArray) -> Losses:
    """ℓ(h(x_i), y_i) of the model's own predictions at labelled rows."""
    if not hasattr(model, "evaluate"):
        raise ValueError(f"y_reference is of use only to models that evaluate rows; {REMEDY}.")
    names = np.array([str(name) for name in model.source_names_], dtype=object)
    return losses_of_tables(model, model.evaluate(X, y, names[domain]))


def losses_of_tables(model: Any, tables: Tables) -> Losses:
    """The same at rows that all sources have answered."""
    h = model.combination_.predict(tables.log_masses, tables.predictions)
    return _losses(h, tables, model)


def losses_held_out(model: Any) -> Losses | None:
    """Losses at the rows that z was learned from, each predicted by what had not seen it."""
    held_out = getattr(model, "held_out_", None)
    if held_out is None:
        return None
    found = _losses(held_out.predictions, model.tables_, model)
    return found._replace(fresh=getattr(held_out, "crossed", True))


def answered_again(model: Any, combination: CrossFittedCombination) -> HeldOut:
    """What another combination of the same parts says at the rows that z was learned from."""
    held_out: HeldOut = model.held_out_
    answers = crossed_answers(model.tables_, combination, held_out.fold)
    return replace(held_out, predictions=answers)


def _losses(h: FloatArray, tables: Tables, model: Any) -> Losses:
    values = losses_at(np.asarray(h), np.asarray(tables.targets), model.loss)
    return Losses(np.asarray(values), loss_name(get_loss(model.loss)))
