"""A word on a model that is no better than the plain average of its sources."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.cli.judging import weighed
from anymix.core import source_weights
from anymix.estimators import Comparison
from anymix.sources import Tables


def advice(comparison: Comparison, tables: Tables, model: Any) -> str:
    """Say when the average is better on the worst mixture, where, and what may help; else nothing.

    The source to look at is the one whose part in the loss there is largest: its mean weight on
    these rows times its own loss on them.
    """
    worst = dict(zip(comparison.methods, comparison.worst.tolist(), strict=True))
    if worst["uniform"] >= worst["anymix"]:
        return ""
    where = comparison.worst_mixture[comparison.methods.index("anymix")]
    names = list(comparison.sources)
    k = names.index(where)
    rows = np.asarray(tables.sample_domain) == k
    weights = source_weights(weighed(tables, model).log_masses, model.z_, model.eta)
    share = weights[:, rows].mean(axis=1)
    blamed = int((share * comparison.loss[: len(names), k]).argmax())
    robust = "" if model.objective == "robust" else "try --objective robust, or "
    return (
        f"The plain average is better on the worst mixture: its loss is {worst['uniform']:.4g}, "
        f"the model's {worst['anymix']:.4g}, on the rows of {where}, where it follows "
        f"{names[blamed]} to {100 * share[blamed]:.0f} %; {robust}look at the predictor and the "
        f"density of {names[blamed]}."
    )
