"""A word on a model that is no better than the plain average of its sources."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.estimators.comparison import Comparison


def advice(model: Any, comparison: Comparison) -> str:
    """Say when the average is better on the worst mixture, where, and what may help; else nothing.

    comparison is `model.comparison_`.  The source to look at is the one whose part in the loss
    there is largest: its mean weight on these rows times its own loss on them.
    """
    worst = dict(zip(comparison.methods, comparison.worst.tolist(), strict=True))
    if worst["uniform"] >= worst["anymix"]:
        return ""
    where = comparison.worst_mixture[comparison.methods.index("anymix")]
    names, tables = list(comparison.sources), model.tables_
    k = names.index(where)
    rows = np.asarray(tables.sample_domain) == k
    share = model.combination_.weights(tables.log_masses)[:, rows].mean(axis=1)
    blamed = int((share * comparison.loss[: len(names), k]).argmax())
    robust = "" if model.objective == "robust" else "try the objective robust, or "
    return (
        f"The plain average is better on the worst mixture: its loss is {worst['uniform']:.4g}, "
        f"the model's {worst['anymix']:.4g}, on the rows of {where}, where it follows "
        f"{names[blamed]} to {100 * share[blamed]:.0f} %; {robust}look at the predictor and the "
        f"density of {names[blamed]}."
    )
