"""Fit a distribution-weighted model: check rows, train sources, choose a density, learn z."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from anymix._arrays import FloatArray, IntArray
from anymix._parameters import (
    Either,
    Number,
    Rule,
    Words,
    check,
    flag_rule,
    is_automatic,
    seed_rule,
    share_rule,
)
from anymix.core import Combination, CrossFittedCombination, check_n_sources, share_ranges
from anymix.densities import GaussianKDE, counted
from anymix.estimators._automatic import (
    N_PARTS,
    DensityChoice,
    candidates,
    check_set_aside,
    choose_density,
    predict_held_out,
    with_set_aside,
)
from anymix.estimators._generalist import GeneralistTrainer, trainer_of
from anymix.estimators._input_warnings import warn_of_slips
from anymix.estimators._learner_choice import ChosenLearner, can_choose, choose_learner
from anymix.estimators._learners import (
    candidate_estimators,
    kind_of,
    named_estimators,
)
from anymix.estimators._members import fit_members
from anymix.estimators._row_checks import check_every_source, check_rows, check_tables
from anymix.estimators._rows import FOLDS, Rows, folds_of, set_aside_of
from anymix.estimators._running import one_thread, step
from anymix.estimators._source_training import SourceTrainer, takes_weight
from anymix.exceptions import InputError
from anymix.sources import (
    FitEvidence,
    FitResult,
    FoldDensities,
    FoldScores,
    GeneralistRecord,
    LearningSettings,
    Novelty,
    Seen,
    Source,
    Tables,
    TrainingRows,
    learn,
    log_reference,
    warn_of_training_rows,
)
from anymix.tables import Columns, texts_of

PARAMETER_RULES: dict[str, Rule] = {
    "objective": Words("regret", "robust", "gamma"),
    "shrinkage": Either(Words("auto"), Number(0)),
    "eta": Number(above=0),
    "calibrate": flag_rule,
    "confidence": share_rule,
    "skip_below": Number(0),
    "random_state": seed_rule,
    "consult": flag_rule,
    "share_rows": flag_rule,
    "refit": flag_rule,
    "rule": Words("marginal", "normalised"),
    "n_jobs": Either(None, Number(1, whole=True), Number(most=-1, whole=True)),
}
LEARNED_FROM_ALL = (
    "z is learned from held-out rows of every source: add some of it, or leave it out"
)
# What an earlier fit has learned, besides the names of its sources and columns.
LEARNED = ("result_", "influence_", "comparison_", "generalist_")
# A category of fewer rows is missing, as it is to a `Reference`: all folds must have one coding.
FEW = 5


def fit(
    model: Any, X: Any, y: Any, sample_domain: Any, sample_weight: Any, groups: Any = None
) -> None:
    """Check the rows, train the sources, evaluate them on held-out rows, weight them, learn z."""
    rows = check_fit(model, X, y, sample_domain, sample_weight, groups)
    with one_thread(rows):
        if not model.refit and not model.sources and len(model.source_names_) > 1:
            given = X, y, sample_domain, sample_weight
            model.result_ = fit_members(model, kept_of(given, rows), rows)
        else:
            model.result_ = fit_rows(model, rows)


def kept_of(given: tuple[Any, ...], rows: Rows) -> tuple[Any, ...]:
    """Return the rows passed to `fit` that were not left out."""
    if rows.kept is None:
        return given
    return tuple(v if v is None else _safe_indexing(v, rows.kept) for v in given)


def check_fit(
    model: Any, X: Any, y: Any, sample_domain: Any, sample_weight: Any, groups: Any = None
) -> Rows:
    """Check all arguments of `fit` before anything is trained; X is inspected only here."""
    if sample_domain is None and not model.sources:
        warnings.warn(
            f"{type(model).__name__} was fitted without sample_domain, so all rows are one "
            "source and there is nothing to combine or certify: pass sample_domain, the source "
            "of each row.",
            UserWarning,
            stacklevel=3,
        )
    for stale in LEARNED:
        vars(model).pop(stale, None)
    model._check_parts()
    kind, model.columns_ = "", None
    if model.sources:
        known = [source.columns for source in model.sources]
        model.columns_ = known[0] if all(columns == known[0] for columns in known) else None
    elif is_automatic(model.estimator):
        X = texts_of(X)
        kind = kind_of(X)
        model.columns_ = Columns.of(X, least=FEW) if kind == "mixed" else None
    rows = check_rows(model, X, y, sample_domain, sample_weight, kind, groups)
    # A learner of its own that takes missing values gets them; a saved model says so.
    frame = model.columns_ is None and not model.sources and hasattr(rows.X, "isna")
    model.rows_had_missing_ = frame and bool(rows.X.isna().to_numpy().any())
    names = [str(name) for name in model.source_names_]
    check_n_sources(len(names))
    if len(names) > 1:
        check(model.cv, "cv", FOLDS)
        if model.set_aside is not None:
            check_set_aside(model.set_aside, names)
    share_ranges(model.mixtures, names)
    if model.sources:
        return rows
    if sample_domain is not None:
        warn_of_slips(kept_of((X,), rows)[0], rows.y, model.source_names_[rows.domain])
    if kind == "text" and not isinstance(next(iter(X)), str):
        raise InputError(
            "X", "holds lists of tokens; join each to a text, or give an estimator for them"
        )
    return rows


def learners_of(model: Any, rows: Rows) -> dict[str, Any]:
    """Return the candidate learners of a model's sources, by name."""
    if not is_automatic(model.estimator):
        given = model.estimator
        return named_estimators(given) if isinstance(given, list | tuple) else {"": given}
    by_task = model._classification, model.random_state, rows.weight
    return candidate_estimators(rows.kind, rows.X, model.columns_, *by_task)


def settings_of(model: Any) -> LearningSettings:
    """Return the parameters of a model that learning needs."""
    return LearningSettings(
        loss=model.loss,
        eta=model.eta,
        rule=model.rule,
        objective=model.objective,
        shrinkage=model.shrinkage,
        calibrate=model.calibrate,
        confidence=model.confidence,
        consult=model.consult,
    )


def fit_rows(model: Any, rows: Rows) -> FitResult:
    """Train sources, evaluate them on held-out rows, choose a density, and learn z."""
    trainer, several = _trainer_of(model), len(model.source_names_) > 1
    fold = np.zeros(rows.y.size, dtype=np.intp)
    learners: dict[str, Any] = {}
    chosen: ChosenLearner | None = None
    if several and not (model.sources and trainer.weighed):
        fold = folds_of(rows, model.cv, model._classification, model.random_state)
    if not model.sources:
        with step(model, "choice of the learner"):
            learners = learners_of(model, rows)
            rows = replace(rows, X=counted(rows.X, list(learners.values()), training=True))
            trainer, chosen = _with_learner(model, rows, trainer, fold, learners)
        model.estimator_ = trainer.estimator
    with step(model, "models of all sources"):
        model.sources_, model.router_ = trainer.predictors(rows), None
    if not several:
        model.router_ = trainer.with_densities(model.sources_, rows)[1]
        alone = Combination(np.ones(1), model.eta, None, model.rule)
        return FitResult(CrossFittedCombination.of(alone))
    # Held-out rows choose the density, unless all sources have brought one.
    bare = not model.sources or any(source.density is None for source in model.sources)
    chooses = isinstance(model.density, str) and bare
    with step(model, "held-out answers"):
        generalist = _generalist_of(model, fold, learners, chosen)
        trained = {} if chosen is None else chosen.trained
        tables, record = _held_out(model, rows, trainer, fold, trained, generalist)
    with step(model, "what weighs them"):
        tables, choice, novel_masses, learned = _weigh(model, rows, trainer, tables, fold, chooses)
    with step(model, "z and its certificate"):
        # Whether nothing but the combination is learned from the rows of `fit`.
        fresh = bool(trainer.sources) and trainer.weighed and not chooses and record is None
        result = _learn_from(model, tables, fresh=fresh)
    assert result.evidence is not None
    evidence = replace(result.evidence, seen=Seen.of(tables, rows.X), generalist=record)
    evidence = replace(evidence, density_choice=choice)
    if chosen is not None:
        learner = chosen.choice
        if record is None or record.learned_from != "pooled rows":
            learner = replace(learner, generalist=None)
        evidence = replace(evidence, learner_choice=learner)
    evidence = _with_novelty(evidence, model, rows, tables, novel_masses, learned)
    return replace(result, evidence=evidence)


def _trainer_of(model: Any) -> SourceTrainer:
    """Return what trains the sources, its learner and an automatic density still to be chosen."""
    several, density = len(model.source_names_) > 1, model.density
    if isinstance(density, str) or not several:
        density = None
    elif density is None and not model.sources:
        density = GaussianKDE(random_state=model.random_state)
    given = None, density, model.sources, several, model.n_jobs
    known = {"columns": model.columns_, "share_rows": model.share_rows}
    return SourceTrainer(model.source_names_, *given, **known)


def _held_out(
    model: Any,
    rows: Rows,
    trainer: SourceTrainer,
    fold: IntArray,
    trained: Mapping[int, list[Source]],
    generalist: GeneralistTrainer | None,
) -> tuple[Tables, GeneralistRecord | None]:
    """Predict held-out rows by the sources and a generalist; learn that and second rounds."""
    tables, record = trainer.blank(rows, model._labels), None
    if generalist is not None and not fold.any():
        # Sources and densities that were given need no folds, but this does.
        fold = folds_of(rows, model.cv, model._classification, model.random_state)
    given = trainer, rows, tables, fold, settings_of(model), trained
    again = predict_held_out(*given, generalist)
    if generalist is not None:
        found = generalist.learned(model.sources_, rows, tables, model.loss)
        model.generalist_, predictions, record = found
        tables = replace(tables, generalist=predictions)
    if again:
        model.sources_ = trainer.second_round(model.sources_, rows, again)
    return tables, record


def _generalist_of(
    model: Any, fold: IntArray, learners: dict[str, Any], chosen: ChosenLearner | None
) -> GeneralistTrainer | None:
    """Say how the generalist is learned; of pooled rows another learner may be best."""
    found = trainer_of(model)
    automatic = isinstance(model.generalist, str) and model.share_rows
    if found is None or not automatic or chosen is None or chosen.choice.generalist is None:
        return found
    trained = {int(np.flatnonzero(fold == t)[0]): models for t, models in chosen.shared.items()}
    return replace(found, estimator=learners[chosen.choice.generalist], trained=trained)


def _with_novelty(
    evidence: FitEvidence,
    model: Any,
    rows: Rows,
    tables: Tables,
    novel_masses: FloatArray | None,
    learned: tuple[dict[int, FoldDensities], IntArray],
) -> FitEvidence:
    """Add what is usual for each source, and the densities of the folds."""
    if novel_masses is None and model.router_ is None:
        novel_masses = tables.log_masses
    if novel_masses is not None:
        novel_masses = novel_masses + log_references(model.sources_, rows, *learned)
        # The densities may have been evaluated on some of the rows alone.
        known = np.flatnonzero(~np.isnan(novel_masses).any(axis=0))
        usual = replace(tables.taken(known), log_masses=novel_masses[:, known])
        evidence = replace(evidence, novelty=Novelty.from_tables(usual))
    return replace(evidence, fold_scores=FoldScores.of(*learned, tables.domain, novel_masses))


def _with_learner(
    model: Any, rows: Rows, trainer: SourceTrainer, fold: IntArray, learners: dict[str, Any]
) -> tuple[SourceTrainer, ChosenLearner | None]:
    """Choose the learner by some of the folds."""
    first = replace(trainer, estimator=next(iter(learners.values())))
    if fold.any() and len(learners) > 1 and can_choose(rows, model._classification):
        general = model.consult and isinstance(model.generalist, str)
        given = first, learners, rows, fold, model.loss, model._labels
        chosen = choose_learner(*given, general=general)
        return replace(trainer, estimator=learners[chosen.choice.chosen]), chosen
    if model.columns_ is not None:
        return replace(trainer, estimator=learners["trees"]), None
    return first, None


def _weigh(
    model: Any, rows: Rows, trainer: SourceTrainer, tables: Tables, fold: IntArray, chooses: bool
) -> tuple[
    Tables, DensityChoice | None, FloatArray | None, tuple[dict[int, FoldDensities], IntArray]
]:
    """Add what weighs the sources, to them and to the held-out tables.

    Returns the tables, the choice of a density if there was one and, where novelty is not measured
    by the weights, held-out log-densities for it; last, what was learned without each fold, and the
    fold of each row.
    """
    choice, novel_masses, columns = None, None, model.columns_
    learned: dict[int, FoldDensities] = {}
    if not chooses:
        log_masses = trainer.held_out_masses(rows, fold, None, learned)
    else:
        # Densities are trained here, whatever the sources brought.
        fold = folds_of(rows, N_PARTS, model._classification, model.random_state)
        options = candidates(rows, columns, model.random_state, model.share_rows)
        if rows.weight is not None:
            options = {name: option for name, option in options.items() if takes_weight(option)}
        # Sites that are known to be set aside choose no density, either.
        aside = set_aside_of(model)
        aside = None if aside == "worst" else aside
        settings = settings_of(model)
        if aside is not None:
            names = [str(name) for name in model.source_names_]
            settings = with_set_aside(aside, tables, settings, names)
        choice, log_masses, novel_masses, learned = choose_density(
            trainer, rows, tables, fold, settings, options
        )
        trainer = replace(trainer, density=options[choice.chosen])
        if choice.novelty is not None:
            kept = replace(trainer, density=options[choice.novelty])
            model.sources_, _ = kept.with_densities(model.sources_, rows)
    sources, model.router_ = trainer.with_densities(model.sources_, rows)
    if columns is not None and not model.sources:
        sources = [replace(source, columns=columns) for source in sources]
    model.sources_ = sources
    tables = replace(tables, log_masses=log_masses, has_densities=model.router_ is None)
    return tables, choice, novel_masses, (learned, fold)


def log_references(
    sources: list[Source], rows: Rows, learned: dict[int, FoldDensities], fold: IntArray
) -> FloatArray:
    """log U(x) at each row, by the reference that was made without it: (m,)."""
    found = np.zeros(rows.y.size) + log_reference(sources, rows.X)
    for t, densities in learned.items():
        held = np.flatnonzero(fold == t)
        found[held] = log_reference(densities.of(sources), rows.take(held).X)
    return found


def fit_tables(
    model: Any, tables: Tables, teaching: TrainingRows | None, fresh: bool = True
) -> FitResult:
    """Learn z from tables alone; see `DistributionWeightedRegressor.fit_tables`."""
    check_tables(tables, model.sources)
    for stale in (*LEARNED, "n_features_in_", "feature_names_in_"):
        vars(model).pop(stale, None)
    model.sources_, model.router_, model.columns_ = list(model.sources), None, None
    model.source_names_ = np.asarray([source.name for source in model.sources_])
    columns = model.sources_[0].feature_names
    if columns is not None:
        model.n_features_in_ = len(columns)
    if model._classification:
        if tables.classes is None:
            raise ValueError("tables of a classification come from evaluate(..., classes=...).")
        model.classes_ = np.asarray(tables.classes)
    tables = _with_given_generalist(model, tables)
    result = _learn_from(model, tables, fresh=fresh, teaching=teaching)
    assert result.evidence is not None
    seen = Seen.of(tables) if teaching is None else teaching.seen()
    return replace(result, evidence=replace(result.evidence, seen=seen))


def _with_given_generalist(model: Any, tables: Tables) -> Tables:
    """Use the predictions of a generalist where the model was given it, and else leave them out."""
    given = model.generalist if isinstance(model.generalist, Source) and model.consult else None
    if given is not None and tables.generalist is None:
        raise InputError(
            "the tables",
            "hold no predictions of the generalist; evaluate the rows with generalist=, or fit "
            "with generalist=None",
        )
    if given is None:
        return replace(tables, generalist=None)
    model.generalist_ = given
    return tables


def _learn_from(
    model: Any, tables: Tables, fresh: bool = True, teaching: TrainingRows | None = None
) -> FitResult:
    """Calibrate, learn z, certify, all on rows that no source has seen."""
    if model.sources:
        check_every_source(tables, model.source_names_, LEARNED_FROM_ALL)
        warn_of_training_rows(tables, model.sources, stacklevel=4)
    names = tuple(str(name) for name in model.source_names_)
    mixtures = share_ranges(model.mixtures, names)
    settings = replace(settings_of(model), fresh=fresh, names=names, mixtures=mixtures)
    if (chosen := set_aside_of(model)) is not None:
        settings = with_set_aside(chosen, tables, settings, names)
    result = learn(tables, settings, teaching)
    assert result.evidence is not None
    aside = tuple(names[k] for k in settings.set_aside)
    return replace(result, evidence=replace(result.evidence, set_aside=aside))


# What depends on the mixtures that z is for.
LEARNED_FOR_MIXTURES = (
    *("certificate", "solution", "calibration_report", "held_out"),
    *("consulting_gain", "set_aside", "n_training", "sketched"),
)


def relearned(model: Any, settings: dict[str, Any]) -> Any:
    """Learn z of a fitted model again with other parameters; see `with_mixtures`."""
    changed, known = copy.copy(model), model.result_.evidence
    changed.set_params(**settings)
    names = [str(name) for name in model.source_names_]
    share_ranges(changed.mixtures, names)
    if known is None or known.tables is None or model.result_.members:
        raise ValueError(
            "z can be learned again from the held-out rows that fit keeps with refit=True; this "
            "model keeps none: fit it with mixtures=... instead."
        )
    certificate = known.certificate
    result = _learn_from(changed, known.tables, certificate is None or not certificate.covers)
    new = {name: getattr(result.evidence, name) for name in LEARNED_FOR_MIXTURES}
    changed.result_ = replace(result, evidence=replace(known, **new))
    for stale in ("influence_", "comparison_"):
        vars(changed).pop(stale, None)
    return changed
