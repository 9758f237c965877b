"""What the evidence compares: one learner, and all ways to make one model of several sources.

own             each domain's own model at home; it is told the domain of a row
uniform         the plain average of these models
router          the model of the likeliest domain, by the paper's density
stacking        one average for all rows, learned on held-out rows
group DRO       one model, trained on all rows in one place for its worst domain
joint           one model, trained on all rows in one place
best pooled     one model, trained on all rows in one place, its learner by cross-validation
DW              the paper's weighing with the paper's density: shared words, or kernels
anymix          all settings as they are by default; with rows that stay at their sites; its parts
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from anymix._arrays import FloatArray, positions
from anymix.core import losses_at
from anymix.densities import BigramModel, GaussianKDE, SharedVocabulary
from anymix.estimators import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    GroupDRO,
    HardRouter,
    Joint,
    Stacking,
    Uniform,
    candidate_estimators,
    default_estimator,
)
from anymix.sources import PROBABILITY_FLOOR
from anymix.tables import Columns
from experiments.evidence_sets import EvidenceSet
from experiments.runner import Setup

# Fits of group DRO; its weights have settled by then.
N_ROUNDS = 10
# Rows of the tables, and how each was set up.
PROTOCOLS: dict[str, Setup] = {
    "own": "clean",
    "uniform": "clean",
    "router": "clean",
    "stacking": "clean",
    "group DRO": "clean",
    "joint": "clean",
    "best pooled": "clean",
    "DW": "clean",
    "DW, density alone": "beyond",
    "DW, consulting alone": "beyond",
    "anymix, no rows pooled": "beyond",
    "anymix": "beyond",
}
# What knows the domain of a row, or sees all rows in one place.
PRIVILEGED = ("own", "group DRO", "joint", "best pooled")
WORDS = make_column_selector(dtype_exclude=["number", "bool"])
NUMBERS = make_column_selector(dtype_include=["number", "bool"])


class Encoder(TransformerMixin, BaseEstimator):
    """Write a table as the default learner takes it: words as codes, gaps as NaN.

    A column that is empty at a domain is more than boosted trees can bear: in training it is zero.
    """

    def __init__(self, columns: Columns):
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing: the columns are those of all training rows."""
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Return the training table as numbers."""
        table = self.columns.encode(X)
        return np.where(np.isnan(table).all(axis=0), 0.0, table)

    def transform(self, X: Any) -> FloatArray:
        """Return another table as numbers."""
        return self.columns.encode(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class PooledSearch(GridSearchCV):
    """A search that is fitted on all rows in one place, whatever their domains."""

    def __init__(self, estimator: Any, param_grid: Any, cv: Any, scoring: str):
        super().__init__(estimator, param_grid, cv=cv, scoring=scoring)

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Fit the best model on all rows."""
        super().fit(X, y)
        return self


def learner(train: EvidenceSet) -> Any:
    """Return what every method trains: anymix's default estimator for such rows."""
    default = default_estimator(train.X, train.classification)
    if train.kind != "table":
        return default
    return make_pipeline(Encoder(Columns.of(train.X)), default)


def paper_density(train: EvidenceSet, seed: int) -> Any:
    """Bigrams over the words that all domains share, or kernels on complete, scaled columns.

    What comes before the density is fitted once, on the training rows of all domains.
    """
    if train.kind == "texts":
        shared = SharedVocabulary(output="tokens").fit(train.X, sample_domain=train.domain)
        return make_pipeline(FrozenEstimator(shared), BigramModel(vocabulary=shared.vocabulary_))
    kernels = GaussianKDE(random_state=seed)
    if train.kind == "vectors":
        return kernels
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((numbers, NUMBERS), (words, WORDS)).fit(train.X)
    return make_pipeline(FrozenEstimator(columns), kernels)


def weighted(train: EvidenceSet, seed: int, **settings: Any) -> Any:
    """Return anymix's estimator with its defaults but for the settings."""
    kind = DistributionWeightedClassifier if train.classification else DistributionWeightedRegressor
    return kind(random_state=seed, **settings)


def methods(train: EvidenceSet, seed: int) -> dict[str, Any]:
    """Return the models to be fitted, by name; own is read off the sources of uniform."""
    base, density = learner(train), paper_density(train, seed)
    plain: dict[str, Any] = {"estimator": base, "generalist": None}
    return {
        "uniform": Uniform(base),
        "router": HardRouter(base, density),
        "stacking": Stacking(base, random_state=seed),
        "group DRO": GroupDRO(base, n_rounds=N_ROUNDS),
        "joint": Joint(base),
        "best pooled": best_pooled(train, seed),
        "DW": weighted(train, seed, **plain, density=density, consult=False),
        "DW, density alone": weighted(train, seed, **plain, consult=False),
        "DW, consulting alone": weighted(train, seed, **plain, density=density),
        "anymix, no rows pooled": weighted(train, seed, share_rows=False),
        "anymix": weighted(train, seed),
    }


def best_pooled(train: EvidenceSet, seed: int) -> Any:
    """Return a search over models of all rows by three folds: anymix's candidates, and plain trees.

    They are what `estimator="auto"` compares for each source, and scikit-learn's boosted trees.
    """
    labels, table = train.classification, train.kind == "table"
    columns = Columns.of(train.X) if table else None
    kind = {"table": "mixed", "texts": "text", "vectors": "vectors"}[train.kind]
    tried = [*candidate_estimators(kind, train.X, columns, labels, seed).values()]
    if columns is not None:
        trees = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
        tried = [make_pipeline(Encoder(columns), one) for one in (*tried, trees(random_state=seed))]
    folds = (StratifiedKFold if labels else KFold)(3, shuffle=True, random_state=seed)
    score = "neg_log_loss" if labels else "neg_mean_squared_error"
    return PooledSearch(Pipeline([("model", tried[0])]), {"model": tried}, folds, score)


def row_losses(model: Any, rows: EvidenceSet) -> FloatArray:
    """Cross-entropy, with probabilities of at least 1e-6, or squared error at each row, (n,)."""
    if not rows.classification:
        return losses_at(np.asarray(model.predict(rows.X), dtype=np.float64), rows.y, "squared")
    return _cross_entropy(model.predict_proba(rows.X), np.asarray(model.classes_), rows.y)


def own_losses(uniform: Uniform, rows: EvidenceSet) -> FloatArray:
    """The same of each domain's own model at home."""
    losses = np.empty(len(rows.y))
    for k, name in enumerate(uniform.source_names_):
        here = np.flatnonzero(rows.domain == name)
        part, source = rows.take(here), uniform.sources_[k]
        if rows.classification:
            proba = source.predict_proba(part.X, uniform.classes_)
            losses[here] = _cross_entropy(proba, uniform.classes_, part.y)
        else:
            losses[here] = losses_at(source.predict(part.X), part.y, "squared")
    return losses


def _cross_entropy(proba: Any, classes: NDArray[Any], y: NDArray[Any]) -> FloatArray:
    floored = np.maximum(np.asarray(proba, dtype=np.float64), PROBABILITY_FLOOR)
    return losses_at(floored, positions(y, classes), "cross_entropy")


def named_right(model: Any, rows: EvidenceSet) -> float | None:
    """In percent, how often the domain is the likeliest, as a mean over domains; None if unsaid."""
    if not getattr(model, "uses_density", False):
        return None
    say = getattr(model, "log_responsibilities", None)
    said = model.source_weights(rows.X).T if say is None else say(rows.X)
    right = np.asarray(model.source_names_)[said.argmax(axis=0)] == rows.domain
    return 100 * float(np.mean([right[rows.domain == name].mean() for name in rows.domains]))
