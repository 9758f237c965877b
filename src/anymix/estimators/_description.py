"""Describe a fitted model: what was learned, and what to check."""

from __future__ import annotations

from typing import Any

import numpy as np

from anymix.core import CLAIMED
from anymix.estimators.comparison import Comparison
from anymix.sources import MOST_SOURCES, Influence, SecondRound, Tables

# More would bury the rest; all are in `influence_` and in the report.
MOST_SENTENCES = 3
STATED = f"All numbers below are {CLAIMED}; anymix.load(folder, verify=True) recomputes them."
SHARED = (
    f"All numbers below are {CLAIMED}: it was written to be shared, "
    "without the rows that could show them."
)


def describe(model: Any) -> str:
    """Describe what was learned; see `DistributionWeightedRegressor.describe`."""
    certificate, known = model.certificate_, hasattr(model, "tables_")
    named = zip(model.source_names_, model.combination_.z, strict=True)
    evidence = model.result_.evidence
    verified = evidence is None or evidence.verified
    first = [] if verified else [STATED if known else SHARED]
    if certificate is not None:
        first.append(certificate.sentence)
    if model.set_aside_:
        aside = " and ".join(model.set_aside_)
        first.append(
            f"The rows of {aside} did not choose z; the certificate covers them all the same."
        )
    first.append(f"z: {', '.join(f'{name} {weight:.3g}' for name, weight in named)}")
    if not known:
        return "\n".join(first)
    comparison = model.comparison_
    columns = vars(model).get("columns_")
    parts = (
        "\n".join(first),
        "" if columns is None else " ".join(columns.notes()),
        *said_of_choices(model),
        str(comparison),
        advice(model, comparison),
        suspicion(model),
    )
    return "\n\n".join(filter(None, parts))


def advice(model: Any, comparison: Comparison) -> str:
    """Return advice if the average is better on the worst mixture, else nothing.

    comparison is `model.comparison_`.  The source to look at is the one whose part in the loss
    there is largest: its mean weight on these rows times its own loss on them.
    """
    worst = dict(zip(comparison.methods, comparison.worst.tolist(), strict=True))
    if worst["uniform"] >= worst["anymix"]:
        return ""
    where = comparison.worst_mixture[comparison.methods.index("anymix")]
    names, tables = list(comparison.sources), model.tables_
    k = names.index(where)
    rows = tables.domain == k
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
    """Describe the density, the learner and the consulting."""
    told, choice = model.advice_, getattr(model, "density_choice_", None)
    learner = getattr(model, "learner_choice_", None)
    names = [str(name) for name in model.source_names_]
    again = [isinstance(source.predictor, SecondRound) for source in model.sources_]
    said = [""] * len(names) if told is None else told.sentences(names)
    for k in np.flatnonzero(again):
        own = "" if told is None or not told.gains[k] else f"{said[k]} "
        said[k] = f"{own}{names[k]} was trained again, on the residuals of the others' pool."
    general = model.result_.evidence.generalist
    chosen = [str(one) for one in (learner, choice, general) if one is not None]
    return ["\n".join(chosen), "\n".join(filter(None, said))]


# The share of the rows of all others from which on a density claims what is not its own.
CLAIMS_ALL = 0.99


def claims_all(tables: Tables) -> int | None:
    """Return the source whose density claims nearly all rows of every other source, if any."""
    claimed = np.exp(tables.log_responsibilities())
    p = tables.n_sources
    for j in range(p if p > 1 else 0):
        others = [claimed[j, tables.domain == k].mean() for k in range(p) if k != j]
        if min(others) > CLAIMS_ALL:
            return j
    return None


def suspicion(model: Any) -> str:
    """Describe a site or source that raises the loss of another, and a remedy; else nothing."""
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
    if (everywhere := claims_all(model.tables_)) is not None:
        liar = found.names[everywhere]
        remedy = (
            f"The density of {liar} claims nearly all rows of every other source: look first at "
            f"{liar}, and leave it out if its density is not of its rows."
        )
        return " ".join([*said[:MOST_SENTENCES], *rest, remedy])
    remedy = (
        "Wrong rows do that, and so do sources that disagree where their rows overlap: look first "
        f"at the rows of {name}, of which its own density claims {share:.0f} %, and set them aside "
        "(set_aside; --set-aside of anymix fit) or leave the source out if they are not to be "
        "trusted."
    )
    return " ".join([*said[:MOST_SENTENCES], *rest, remedy])
