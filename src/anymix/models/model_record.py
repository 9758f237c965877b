"""A fitted model as one JSON object, without sources and tables, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from anymix._version import __version__
from anymix.core import (
    Certificate,
    CrossFittedCombination,
    Solution,
    loss_from_dict,
    loss_to_dict,
    restored,
    share_ranges,
)
from anymix.densities import CalibrationReport
from anymix.estimators import (
    DensityChoice,
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    LearnerChoice,
)
from anymix.sources import (
    ConsultingGain,
    CrossLoss,
    FitEvidence,
    FitResult,
    GeneralistRecord,
    Seen,
)
from anymix.tables import is_text

KIND, SCHEMA = "anymix model", 4
SETTINGS = ("objective", "shrinkage", "eta", "calibrate", "cv", "confidence", "skip_below")
# The sources that were set aside, by name; it stands there only if there are any.
ASIDE = "set_aside"
# What was stated of the shares of sources, {name: [least, most]}, if anything was.
MIXTURES = "mixtures"
# Older records lack it: their sources do not consult each other.
CONSULT = "consult"
# Columns of the table that named the source or group of a row, if there were any.
LEFT_OUT = "left_out"
TASKS = {
    "regression": DistributionWeightedRegressor,
    "classification": DistributionWeightedClassifier,
}
# What is recorded of a model with several sources, and the record that each attribute is.
LEARNED: dict[str, Any] = {
    "certificate": Certificate,
    "solution": Solution,
    "cross_loss": CrossLoss,
    "calibration_report": CalibrationReport,
}
# z that was adapted has no certificate, and densities need not be calibrated.
NEEDED = ("solution", "cross_loss")
# All that stands in a record, after `write_model` has added the parts.
ENTRIES = (
    *("kind", "schema", "anymix", "task", "loss", "settings", "classes", "names", "features"),
    *("combination", *LEARNED, "comparison"),
    *("sources", "tables", "router", "has_densities", "at_label", "crossed", "consulting_gain"),
)
# What a record may lack: the density that was chosen, what novelty needs with the tables, digests
# of the training rows, and their number where the rows of the tables only evaluate.
UPGRADED = "upgraded_from"
CHOICE, NOVELTY, SEEN, TAUGHT = "density_choice", "novelty", "seen", "taught"
LEARNER = "learner_choice"
# The densities of folds, which the monitor needs where `fit` has trained the densities.
FOLD_SCORES = "fold_scores"
# With refit=False: the records of the models that were learned without each fold.
MEMBERS = "members"
# The predictor of all rows, where sources consult one: an entry like those of the sources; and how
# it was learned.
GENERALIST, GENERALIST_RECORD = "generalist", "generalist_record"
OPTIONAL = (
    *(CHOICE, LEARNER, NOVELTY, FOLD_SCORES, SEEN, TAUGHT, MEMBERS, UPGRADED),
    *(GENERALIST, GENERALIST_RECORD),
)
# What a model and its members have in common.
SHARED = ("kind", "schema", "anymix", "task", "loss", "names", "features")
# Certificates are of answers in which no source is skipped, so that those that skip must be near.
MOST_SKIPPED = 0.01
RANGES = {
    "eta": (0.0, 1e6),
    "confidence": (0.0, 1.0),
    "skip_below": (0.0, MOST_SKIPPED),
    "shrinkage": (0.0, 1e12),
    "cv": (1, 10**6),
}
MOST_FEATURES = 100_000


def check_kind(model: Any) -> None:
    """Refuse objects that are not models of this library, and subclasses of these."""
    if type(model) not in TASKS.values():
        last = "; save its last step, and keep the others" if hasattr(model, "steps") else ""
        raise ValueError(
            "only a DistributionWeightedRegressor or -Classifier can be saved; got "
            f"{type(model).__name__}{last}."
        )


def model_to_dict(model: Any) -> dict[str, Any]:
    """Write a fitted model as a dictionary; raise an error for what cannot be written."""
    task = next(name for name, kind in TASKS.items() if isinstance(model, kind))
    _check_writable(model)
    names = vars(model).get("feature_names_in_")
    left_out = vars(model).get("left_out_", ())
    n, columns = vars(model).get("n_features_in_"), vars(model).get("columns_")
    if columns is not None and names is not None:
        # The sources take the numbers that dates and texts have become.
        names, n = columns.names, len(columns)
    record = {
        "kind": KIND,
        "schema": SCHEMA,
        "anymix": __version__,
        "task": task,
        "loss": {"name": model.loss} if isinstance(model.loss, str) else loss_to_dict(model.loss),
        "settings": _settings_of(model),
        "classes": model.classes_.tolist() if task == "classification" else None,
        "names": np.asarray(model.source_names_).tolist(),
        "features": {
            "n": n,
            "names": None if names is None else [str(name) for name in names],
            **({LEFT_OUT: list(left_out)} if left_out else {}),
        },
        "combination": model.result_.combination,
        **{name: getattr(model, f"{name}_", None) for name in LEARNED},
        "comparison": model.comparison_ if hasattr(model, "tables_") else None,
        "consulting_gain": getattr(model, "advice_", None),
    }
    optional = {name: getattr(model, f"{name}_", None) for name in (CHOICE, LEARNER, SEEN, TAUGHT)}
    seen: Any = optional[SEEN]
    optional[SEEN] = None if seen is None else seen.faint()
    optional[GENERALIST_RECORD] = getattr(model.result_.evidence, "generalist", None)
    optional[MEMBERS] = [model_to_dict(member) for member in model.result_.members]
    return record | {name: value for name, value in optional.items() if value}


def _check_writable(model: Any) -> None:
    """Refuse classes that JSON does not hold, and answers that are not those of the certificate."""
    classes = getattr(model, "classes_", None)
    if classes is not None and classes.dtype.kind not in "iuUO":
        raise ValueError(
            f"classes of the type {classes.dtype} cannot be saved; label the rows by "
            "strings or whole numbers."
        )
    if not 0 <= model.skip_below <= MOST_SKIPPED:
        raise ValueError(
            f"a model with skip_below={model.skip_below!r:.60} cannot be saved: its answers would "
            f"not be those of its certificate; set at most {MOST_SKIPPED:g}."
        )


def _settings_of(model: Any) -> dict[str, Any]:
    """Return the parameters that a loaded model keeps."""
    settings = {name: getattr(model, name) for name in (*SETTINGS, CONSULT)}
    if hasattr(model.cv, "get_n_splits"):
        # A model that is loaded needs no splitter; how many folds it had says enough.
        settings["cv"] = int(getattr(model.cv, "n_splits", 5))
    shares = share_ranges(model.mixtures, [str(name) for name in model.source_names_])
    # "auto" may have been given for who is set aside; what is kept is who it was.
    aside = list(getattr(model, "set_aside_", ()))
    stated: dict[str, Any] = {ASIDE: aside} if aside else {}
    stated |= {MIXTURES: {one.name: [one.lower, one.upper] for one in shares}} if shares else {}
    return settings | stated


def model_from_dict(record: dict[str, Any]) -> Any:
    """Return the model without its sources and tables; a ValueError says what is wrong."""
    check_entries(record, ENTRIES, "the record", OPTIONAL)
    if MEMBERS in record:
        return _with_members(record)
    combination = CrossFittedCombination.from_dict(record["combination"])
    model = _from_settings(record, combination.rule, combination.z.size)
    if combination.consults and not model.consult:
        raise ValueError("its sources consult each other, but its settings have consult=false")
    pools = [part.consulting for part in combination.parts]
    if GENERALIST not in record and any(pool and pool.has_generalist for pool in pools):
        raise ValueError("its sources consult a generalist, which is not there")
    model.combination_ = combination
    names, aside = [str(name) for name in model.source_names_], model.set_aside or []
    # Sources that were set aside are some of the sources, each named once, and not all.
    words = isinstance(aside, list) and all(isinstance(name, str) for name in aside)
    if not words or len({*aside} & {*names}) < len(aside) or len(aside) > max(len(names) - 2, 0):
        raise ValueError("a source that is set aside is not one of the sources")
    if len(names) > 1:
        model.set_aside_ = tuple(name for name in names if name in aside)
        _restore_evidence(model, record)
        return model
    stated = [name for name in (*LEARNED, "consulting_gain") if record[name] is not None]
    stated += [name for name in (CHOICE, LEARNER, TAUGHT, SEEN, FOLD_SCORES) if name in record]
    if stated:
        raise ValueError(f"a model of one source has the entry {stated[0]!r}")
    return model


def _with_members(record: dict[str, Any]) -> Any:
    """Return a model that deploys the models of its folds; of itself it has no combination."""
    members = []
    for entry in restored(list, record[MEMBERS]):
        if not isinstance(entry, dict) or MEMBERS in entry:
            raise ValueError("a member is not the record of one model")
        if any(entry.get(name) != record[name] for name in SHARED):
            raise ValueError("a member is not of the same task, loss, sources and features")
        members.append(model_from_dict(entry))
    p = len(record["names"])
    if len(members) < 2 or p < 2:
        raise ValueError("fewer than two members, or sources, leave nothing to average")
    absent = ("combination", "solution", "calibration_report", "router", "consulting_gain")
    learned = (CHOICE, LEARNER, NOVELTY, FOLD_SCORES, TAUGHT, GENERALIST, GENERALIST_RECORD)
    stated = [name for name in (*absent, *learned) if record.get(name)]
    if stated or record["sources"] != []:
        raise ValueError(f"only its members have the entry {[*stated, 'sources'][0]!r}")
    model = _from_settings(record, members[0].rule, p)
    if hasattr(model, "classes_"):
        known = {label for member in members for label in member.classes_.tolist()}
        if model.classes_.tolist() != sorted(known):
            raise ValueError("the classes are not those of its members")
    evidence = FitEvidence(
        certificate=restored(Certificate, record["certificate"]),
        cross_loss=restored(CrossLoss, record["cross_loss"]),
        seen=read_seen(record[SEEN]) if SEEN in record else None,
    )
    model.refit, model.result_ = False, FitResult(None, evidence, tuple(members))
    return model


def _from_settings(record: dict[str, Any], rule: str, p: int) -> Any:
    """Return a model of p sources with its settings, classes and features, and nothing learned."""
    task, loss = record["task"], record["loss"]
    if not isinstance(task, str) or task not in TASKS:
        raise ValueError(f"the task {task!r:.60} is not known.")
    if not is_text(record["anymix"], 60):
        raise ValueError("the version of anymix is not a string")
    stated = record["settings"]
    check_entries(stated, SETTINGS, "settings", (ASIDE, CONSULT, MIXTURES))
    for name, (least, most) in RANGES.items():
        kind, value = int if name == "cv" else float, stated[name]
        if (name, value) != ("shrinkage", "auto") and not least <= restored(kind, value) <= most:
            raise ValueError(f"the setting {name} is {value!r:.60}")
    if stated["confidence"] in (0, 1) or stated["objective"] not in ("regret", "robust", "gamma"):
        wrong = "confidence" if stated["confidence"] in (0, 1) else "objective"
        raise ValueError(f"the setting {wrong} is {stated[wrong]!r:.60}")
    settings = {CONSULT: False, **stated}
    for name in ("calibrate", CONSULT):
        restored(bool, settings[name])
    if task == "classification":
        settings["rule"] = rule
    elif rule != "marginal":
        raise ValueError("a regression has the rule 'marginal'")
    if not isinstance(loss, dict) or not isinstance(loss.get("name"), str):
        raise ValueError("the loss has no name")
    given = {name: restored(float, value) for name, value in loss.items() if name != "name"}
    if not all(0 < value < np.inf for value in given.values()):
        raise ValueError("the loss has a parameter that is not positive and finite")
    found = loss_from_dict({"name": loss["name"], **given})
    if (found.takes != "number") != (task == "classification"):
        raise ValueError("the loss is not one of this task")
    # A loss without parameters stays the name that was given.
    model = TASKS[task](loss=found if given else loss["name"], **settings)
    _restore_names(model, record, p)
    if model.mixtures is not None and not isinstance(model.mixtures, dict):
        raise ValueError("the shares of sources are not an object")
    share_ranges(model.mixtures, [str(name) for name in model.source_names_])
    return model


def _restore_names(model: Any, record: dict[str, Any], p: int) -> None:
    """Give a model the names of its sources, one for each weight z, its classes and features."""
    names, labels, features = record["names"], record["classes"], record["features"]
    if not isinstance(names, list) or not {*map(type, names)} <= {str, int, float, bool}:
        raise ValueError("the names are not a list of names")
    if len(names) != p or len({*map(str, names)}) < p:
        raise ValueError("there are not as many sources as weights z, or two have one name")
    model.source_names_ = np.asarray(names)
    if record["task"] == "classification":
        sound = isinstance(labels, list) and {*map(type, labels)} in ({str}, {int})
        if not sound or len({*labels}) < len(labels):
            raise ValueError("the classes are not a list of different labels")
        if isinstance(labels[0], int) and max(map(abs, labels)) >= 2**62:
            raise ValueError("a class is too large a number")
        model.classes_ = np.asarray(labels)
    elif labels is not None:
        raise ValueError("a regression has no classes")
    check_entries(features, ("n", "names"), "features", (LEFT_OUT,))
    model.left_out_ = tuple(restored(list, features.get(LEFT_OUT, [])))
    if not all(is_text(name) for name in model.left_out_):
        raise ValueError("a column that was left out has a name that is not text")
    n, columns = features["n"], features["names"]
    if n is not None:
        model.n_features_in_ = restored(int, n)
        if not 0 < n <= MOST_FEATURES:
            raise ValueError(f"there are {n!r:.60} features")
    if columns is not None:
        words = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
        if not words or len({*columns}) != n or len(columns) != n:
            raise ValueError("the names of the features must be distinct, one for each feature")
        model.feature_names_in_ = np.asarray(columns, dtype=object)


def check_entries(
    given: Any, names: Sequence[str], what: str, optional: Sequence[str] = ()
) -> None:
    """Check that an object has exactly the known entries."""
    if not isinstance(given, dict):
        raise ValueError(f"{what} is not an object")
    missing, unknown = sorted(set(names) - set(given)), sorted({*given} - {*names, *optional})
    if missing:
        raise ValueError(f"{what} lacks {missing[0]!r}")
    if unknown:
        raise ValueError(f"{what} has the unknown entry {unknown[0]!r:.60}")


MOST_CHOICES, LONGEST_NAME = 20, 60
DIGESTS = re.compile("([0-9a-f]{16} )+")


def _restore_evidence(model: Any, record: dict[str, Any]) -> None:
    """Read what the record itself says of a model with several sources."""
    for name in NEEDED:
        # A model that was written to be shared has its certificate as the only evidence.
        if record[name] is None and record["tables"] is not None:
            raise ValueError(f"the {name} is missing")
    for name, kind in LEARNED.items():
        setattr(model, f"{name}_", None if record[name] is None else restored(kind, record[name]))
    gain = record["consulting_gain"]
    model.advice_ = None if gain is None else restored(ConsultingGain, gain)
    model.taught_ = restored(int, record[TAUGHT]) if TAUGHT in record else None
    if model.taught_ is not None and not 0 < model.taught_ < 2**53:
        raise ValueError(f"there are {model.taught_!r:.60} rows that it was fitted on")
    if CHOICE in record:
        model.density_choice_ = read_choice(record[CHOICE])
    if LEARNER in record:
        model.learner_choice_ = read_learner_choice(record[LEARNER])
    if SEEN in record:
        model.seen_ = read_seen(record[SEEN])
    if GENERALIST_RECORD in record:
        known = GeneralistRecord.from_dict(record[GENERALIST_RECORD])
        model.result_ = replace(
            model.result_, evidence=replace(model.result_.evidence, generalist=known)
        )


def read_seen(stated: Any) -> Seen:
    """Digests are words of 16 digits, of as many rows as there are; the steps of grids are > 0."""
    found = restored(Seen, stated)
    sound = (found.steps is None) == (not found.grids) and len(found.grids) <= 2
    steps = np.ones(1) if found.steps is None else found.steps
    sound &= steps.ndim == 1 and bool((np.isfinite(steps) & (steps > 0)).all())
    for one in filter(None, (found.rows, found.said, *found.grids)):
        sound &= 0 < one.n_different <= one.n_rows and 0 <= one.limit < 2**64
        sound &= 0 <= one.bits <= 64
        sound &= all(0 <= twins.n_twins <= twins.n_rows for twins in one.twins)
        sound &= bool(DIGESTS.fullmatch(" ".join([one.salt, *one.digests, ""])))
    if not sound:
        raise ValueError("the digests of rows are not sound")
    return cast(Seen, found)


def read_choice(stated: Any) -> DensityChoice:
    """Candidates have short, different names, and losses; the chosen one is among them."""
    found = restored(DensityChoice, stated)
    names, losses = found.names, np.asarray(found.losses)
    sound = 0 < len(names) <= MOST_CHOICES and len({*names}) == len(names)
    if not sound or not all(is_text(name, LONGEST_NAME) for name in names):
        raise ValueError("the densities that were tried have invalid names")
    if losses.shape != (len(names),) or not np.isfinite(losses).all():
        raise ValueError("the densities that were tried do not have a loss each")
    if found.chosen not in names or found.novelty not in (None, *names) or found.n_rows < 1:
        raise ValueError("the density that was chosen is not one of those that were tried")
    return found


def read_learner_choice(stated: Any) -> LearnerChoice:
    """Candidates have short, different names, and numbers; the chosen one is the first."""
    found = restored(LearnerChoice, stated)
    names = found.names
    sound = 0 < len(names) <= MOST_CHOICES and len({*names}) == len(names)
    if not sound or not all(is_text(name, LONGEST_NAME) for name in names):
        raise ValueError("the learners that were compared have invalid names")
    numbers = (found.losses, found.differences, found.errors, found.n_rows)
    if not all(one.shape == (len(names),) and np.isfinite(one).all() for one in numbers):
        raise ValueError("the learners that were compared do not have a loss each")
    if found.generalist not in (None, *names) or found.chosen != names[0] or found.n_rows.min() < 0:
        raise ValueError("the learner that was chosen is not the first of those compared")
    return found
