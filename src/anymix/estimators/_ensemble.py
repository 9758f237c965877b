"""The base of all combinations: train or accept sources, weight them, combine them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from anymix._arrays import FloatArray, n_rows
from anymix._parameters import check_parameters, is_automatic
from anymix.core import Ask, mix
from anymix.estimators._row_checks import check_rows, check_sources, check_X, take_columns
from anymix.estimators._rows import Rows
from anymix.estimators._running import names_checked, one_thread, step, warnings_once
from anymix.estimators._source_training import SourceTrainer, check_part, no_estimator
from anymix.estimators._views import ModelViews, labelled
from anymix.exceptions import ParameterError
from anymix.sources import CHUNK_ROWS, Source, masses_of

# Predictions of all sources that are held at a time: 128 MB.
CHUNK_NUMBERS = 2**24


def store_parameters(model: Any, given: Mapping[str, Any]) -> None:
    """Store the arguments of a constructor as attributes, as scikit-learn's convention asks."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(model, name, value)


class SourceEnsemble(ModelViews, BaseEstimator):
    """Sources with a weight for each at every row; subclasses define the weights.

    A baseline defines `_learn(rows, trainer)`, which runs after the sources are there, and
    `_weights(X)`, shape (p, n); and states with `uses_density` whether it needs one.
    """

    # With metadata routing, cross-validation passes the source of each row on without being asked.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    uses_density: ClassVar[bool] = False
    privileged: ClassVar[bool] = False
    # Sources whose weights at a row sum to less than this are not asked about it.
    skip_below: float = 1e-6

    estimator: Any
    sources: Sequence[Source] | None
    sources_: list[Source]
    n_jobs: int | None = None
    verbose: bool | int = False

    @classmethod
    def from_sources(cls, sources: Sequence[Source], **parameters: Any) -> Self:
        """Combine sources that were trained elsewhere: `fit` then learns only the weights."""
        return cls(sources=list(sources), **parameters)

    @property
    def _classification(self) -> bool:
        """A classifier if the estimator is one, or if the given sources have probabilities."""
        if self.sources:
            return self.sources[0].gives_probabilities
        return not is_automatic(self.estimator) and is_classifier(self.estimator)

    def _density(self) -> Any:
        """Return the density to clone for each domain; None leaves it to the given sources."""
        return None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train a source for each domain, unless sources were passed, and learn their weights.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame (n, d), or a list of documents
        y : array (n,)
        sample_domain : array (n,) or the name of a column of X, optional
            Which source each row belongs to, as any labels; None makes all rows one source, which
            leaves nothing to combine.  A column that is named is left out of the features.
        sample_weight : array (n,), optional

        Returns
        -------
        self
        """
        X, (sample_domain,), self.left_out_ = take_columns(X, sample_domain=sample_domain)
        with warnings_once():
            self._fit(X, y, sample_domain, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_domain: Any, sample_weight: Any) -> None:
        self._check_parts()
        if is_automatic(self.estimator) and not self.sources:
            raise no_estimator(f"{type(self).__name__} needs an estimator, or sources")
        rows = check_rows(self, X, y, sample_domain, sample_weight)
        self._check_sources_named()
        # A single source needs no density.
        weighs = self.uses_density and len(self.source_names_) > 1
        density = self._density() if weighs else None
        given = self.estimator, density, self.sources, weighs, self.n_jobs
        trainer = SourceTrainer(self.source_names_, *given)
        with one_thread(rows):
            with step(self, "models of all sources"):
                sources = trainer.predictors(rows)
                self.sources_, self.router_ = trainer.with_densities(sources, rows)
            self._learn(rows, trainer)

    def _check_sources_named(self) -> None:
        """Check, before anything is trained, parameters that must fit `source_names_`."""

    def _check_parts(self) -> None:
        """Check the parameters, the given sources, and what is to be trained."""
        check_parameters(self)
        if self.sources is not None:
            check_sources(self.sources)
        for estimator in self._learners():
            check_part(estimator, "estimator", ("predict",), "LogisticRegression() or Ridge()")
        density = getattr(self, "density", None)
        if density is None or (isinstance(density, str) and density == "auto"):
            return
        example = "GaussianKDE()" + ", or 'auto'" * isinstance(density, str)
        check_part(density, "density", ("score_samples", "log_responsibilities"), example)
        for _, part in getattr(density, "steps", [("", density)]):
            check_parameters(part)

    def _learners(self) -> list[Any]:
        """Return the estimators that were given; none where anymix chooses."""
        given = self.estimator
        if is_automatic(given):
            return []
        return list(given) if isinstance(given, list | tuple) else [given]

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does; those of `estimator` need one that is given."""
        inner = next((name for name in params if name.startswith("estimator__")), None)
        estimator = params.get("estimator", self.estimator)
        if inner is not None and not hasattr(estimator, "set_params"):
            what = "is a list" if isinstance(estimator, list | tuple) else "is chosen by fit"
            raise ParameterError(
                f"{inner} is a parameter of the estimator, which {what}; give one, such as "
                "estimator=default_estimator(X, classification=...), or search over estimator."
            )
        return super().set_params(**params)

    @property
    def _labels(self) -> NDArray[Any] | None:
        return self.classes_ if self._classification else None

    def _learn(self, rows: Rows, trainer: SourceTrainer) -> None:
        """Learn from the rows what `_weights` needs."""

    def _weights(self, X: Any) -> FloatArray:
        """Return the weight of each source at each row, shape (p, n)."""
        raise NotImplementedError

    def _log_masses(self, X: Any) -> FloatArray:
        return masses_of(self.sources_, X, self.router_)

    def source_weights(self, X: Any, *, frame: bool = False) -> Any:
        """Return the weight of each source at each row: shape (n, p), rows sum to 1.

        With frame=True a frame with a column for each source: of polars or pyarrow if X is, else
        of pandas with the index of X.
        """
        weights = self._row_weights(X)
        return labelled(weights, X, self.source_names_) if frame else weights

    def _row_weights(self, X: Any) -> FloatArray:
        check_is_fitted(self, "sources_")
        X = check_X(self, X)
        with names_checked(self):
            return self._weights(X).T

    def _combined(self, X: Any) -> FloatArray:
        """h(x) = Σ_k w_k(x) h_k(x), chunk by chunk."""
        check_is_fitted(self, "sources_")
        X = check_X(self, X)
        columns = len(self.sources_) * (len(self.classes_) if self._classification else 1)
        size = max(1, min(CHUNK_ROWS, CHUNK_NUMBERS // columns))
        with names_checked(self):
            if n_rows(X) <= size:
                return self._combined_chunk(X)
            cuts = [slice(start, start + size) for start in range(0, n_rows(X), size)]
            return np.concatenate([self._combined_chunk(_safe_indexing(X, cut)) for cut in cuts])

    def _combined_chunk(self, X: Any) -> FloatArray:
        """Weigh the sources, and ask each only about the rows where its weight can be seen."""
        if len(self.sources_) == 1:
            return self._ask(0, X)
        return mix(self._weights(X), self._asking(X), self.skip_below)

    def _asking(self, X: Any) -> Ask:
        """Return a function that asks source k about some of the rows, or about all."""
        return lambda k, rows: self._ask(k, X if rows is None else _safe_indexing(X, rows))

    def _ask(self, k: int, X: Any) -> FloatArray:
        if self._classification:
            return self.sources_[k].predict_proba(X, self.classes_)
        return self.sources_[k].predict(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels (n,) of a classification, numbers (n,) of a regression."""
        return self._decided(self._combined(X))

    def _decided(self, combined: FloatArray) -> NDArray[Any]:
        """Return the likeliest labels of a classification, and numbers as they are."""
        if not self._classification:
            return combined
        return np.asarray(self.classes_[combined.argmax(axis=1)])

    @available_if(lambda self: self._classification)
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities (n, c), in the order of `classes_`."""
        return self._combined(X)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of a classification, R² of a regression."""
        judge = accuracy_score if self._classification else r2_score
        return float(judge(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        usual = LogisticRegression() if self._classification else Ridge()
        inner = get_tags(next(iter(self._learners()), usual))
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.target_tags.multi_output = False
        tags.target_tags.required = True
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = False
        return tags
