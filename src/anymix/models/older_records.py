"""Convert records of models that older versions wrote to the current format."""

from __future__ import annotations

from typing import Any

from anymix.models.model_record import SCHEMA

FIRST_ENTRIES = {
    *("kind", "schema", "anymix", "task", "loss", "objective", "eta", "classes", "features"),
    *("sources", "z", "certificate", "solution", "cross_loss", "calibration", "tables"),
    "comparison",
}


def upgraded(old: dict[str, Any]) -> dict[str, Any]:
    """Convert a record of format 1 to 3 to format 4."""
    found = _second(old) if old["schema"] == 1 else old
    if not isinstance(found.get("combination"), dict):
        raise ValueError("it does not state how sources are combined")
    if old["schema"] < 3:
        found = {**found, "combination": {"parts": [found["combination"]]}}
    lacking = {"crossed": None, "consulting_gain": None}
    return {**found, **lacking, "schema": SCHEMA, "upgraded_from": old["schema"]}


def _second(old: dict[str, Any]) -> dict[str, Any]:
    """Return what a record of format 1 says in the words of format 2."""
    if set(old) != FIRST_ENTRIES or set(old["tables"]) != {"file", "size", "sha256", "densities"}:
        raise ValueError("it has other entries than a record of the first format")
    if any(source["features"] != old["features"] for source in old["sources"]):
        raise ValueError("its features are not those of its sources")
    calibration, certificate = old["calibration"], old["certificate"]
    numbers = ("temperature", "offset", "floor", "sharpness")
    text = old["features"][0]["dtype"] == "string"
    return {
        "kind": old["kind"],
        "schema": 2,
        "anymix": old["anymix"],
        "task": old["task"],
        "loss": {"name": old["loss"]},
        "settings": {
            "objective": old["objective"],
            "shrinkage": "auto",
            "eta": old["eta"],
            "calibrate": calibration is not None,
            "cv": 5,
            "confidence": certificate["confidence"] or 0.95,
            "skip_below": 1e-6,
        },
        "classes": old["classes"],
        "names": [source["name"] for source in old["sources"]],
        "features": {"n": None if text else len(old["features"]), "names": None},
        "combination": {
            "z": old["z"],
            "eta": old["eta"],
            "calibration": calibration and {name: calibration[name] for name in numbers},
            "rule": "marginal",
        },
        "calibration_report": calibration and calibration["report"],
        "tables": {name: old["tables"][name] for name in ("file", "size", "sha256")},
        "has_densities": old["tables"]["densities"],
        "at_label": True,
        "router": None,
        **{name: old[name] for name in ("certificate", "solution", "cross_loss", "comparison")},
        "sources": old["sources"],
    }
