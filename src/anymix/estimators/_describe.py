"""Describe a fitted model in sentences, with a word where a plain average would do better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anymix.estimators.comparison import Comparison
from anymix.sources import MOST_SOURCES, Influence, SecondRound

# More would bury the rest; all are in `influence_` and in the report.
MOST_SENTENCES = 3


def describe(model: Any) -> str:
    """Say what was learned; see `DistributionWeightedRegressor.describe`."""
    comparison, certificate = model.comparison_, model.certificate_
    named = zip(model.source_names_, model.combination_.z, strict=True)
    sentence = "" if certificate is None else f"{certificate.sentence}\n"
    parts = (
        f"{sentence}{said_aside(model.set_aside_)}"
        f"z: {', '.join(f'{name} {weight:.3g}' for name, weight in named)}",
        *said_of_choices(model),
        str(comparison),
        advice(model, comparison),
        suspicion(model),
    )
    return "\n\n".join(filter(None, parts))


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


def said_of_choices(model: Any) -> list[str]:
    """Say what the sources are weighed by, and which of them hear the others."""
    told, choice = model.advice_, getattr(model, "density_choice_", None)
    names = [str(name) for name in model.source_names_]
    again = [isinstance(source.predictor, SecondRound) for source in model.sources_]
    said = [""] * len(names) if told is None else told.sentences(names)
    for k in np.flatnonzero(again):
        own = "" if told is None or not told.gains[k] else f"{said[k]} "
        said[k] = f"{own}{names[k]} was trained again, on what the pool of the others leaves."
    return ["" if choice is None else str(choice), "\n".join(filter(None, said))]


def said_aside(names: Sequence[str]) -> str:
    r"""Say whose rows were set aside, in a line of its own, if any were.

    >>> said_aside(["west"])
    'The rows of west did not choose z; the certificate covers them all the same.\n'
    """
    if not names:
        return ""
    return (
        f"The rows of {' and '.join(names)} did not choose z; the certificate covers them all the "
        "same.\n"
    )


def suspicion(model: Any) -> str:
    """Say which site or source raises the loss of another, and what can be done; else nothing."""
    p = len(model.source_names_)
    if p > MOST_SOURCES:
        return (
            f"Whether a site harms others was not looked at: that is done for {MOST_SOURCES} "
            "sources at most."
        )
    found: Influence = model.influence_
    said, asked = found.sentences(), found.least_known()
    if asked is None:
        return ""
    more = len(said) - MOST_SENTENCES
    rest = [f"So it is {more} times more; the report names all."] if more > 0 else []
    name, share = found.names[asked], 100 * float(found.recognised[asked])
    remedy = (
        "Wrong rows do that, and so do sources that disagree where their rows overlap: look first "
        f"at the rows of {name}, of which its own density claims {share:.0f} %, and set them aside "
        "(set_aside; --set-aside of anymix fit) or leave the source out if they are not to be "
        "trusted."
    )
    return " ".join([*said[:MOST_SENTENCES], *rest, remedy])
