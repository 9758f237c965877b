"""Fitted attributes that are read from `result_`, and the errors where there is none."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

from anymix.sources import FitEvidence, FitResult

# What a regressor has in place of what a classifier has, and the other way round.
INSTEAD = {
    "predict_interval": "predict_set",
    "predict_set": "predict_interval",
    "predict_proba": "predict and predict_interval",
}


class FromResult:
    """A fitted attribute that reads a field of `result_`, or of its evidence.

    Where the fit has no such thing, the AttributeError says why, and what would give it one.
    """

    def __init__(self, field: str, optional: bool = True):
        self.field, self.optional = field, optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        result: FitResult | None = vars(model).get("result_")
        part = result if self.field == "combination" else getattr(result, "evidence", None)
        value = getattr(part, self.field, None)
        absent = part is None or (value is None and not self.optional)
        if absent or (value is None and result is not None and result.members):
            raise_missing(model, self.name)
        return value

    def __set__(self, model: Any, value: Any) -> None:
        result: FitResult = vars(model).get("result_") or FitResult(None)
        if self.field == "combination":
            model.result_ = replace(result, combination=value)
        else:
            evidence = replace(result.evidence or FitEvidence(), **{self.field: value})
            model.result_ = replace(result, evidence=evidence)


def forget(model: Any) -> None:
    """Drop what an earlier fit has learned."""
    for name in ("result_", "influence_", "comparison_"):
        vars(model).pop(name, None)


def raise_missing(model: Any, name: str) -> NoReturn:
    """Raise the AttributeError that says why a model lacks an attribute, and what would give it."""
    kind, known = type(model).__name__, vars(model)
    learned = isinstance(getattr(type(model), name, None), FromResult | cached_property | property)
    members = getattr(known.get("result_"), "members", ())
    if learned and len(known.get("source_names_", ())) == 1 and name != "combination_":
        raise AttributeError(
            f"this {kind} has no {name}: it was fitted with one source, which leaves nothing to "
            "combine or certify; fit it with sample_domain, the source of each row."
        )
    if learned and members:
        raise AttributeError(
            f"this {kind} deploys the models of its folds (refit=False), of which each has its own "
            f"{name}: ask one of members_, or fit it with refit=True."
        )
    if learned and "source_names_" not in known and name != "z_":
        raise AttributeError(
            f"this {kind} has no {name} yet: fit it with sample_domain, the source of each row."
        )
    instead = f"; it has {INSTEAD[name]}." if name in INSTEAD else ""
    raise AttributeError(f"{kind!r} object has no attribute {name!r}{instead}")
