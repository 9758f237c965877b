"""Who sees what others must do without, also inside a pipeline or a search."""

from __future__ import annotations

import copy
from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline


def is_privileged(model: Any) -> bool:
    """Whether a model, or one that it is made of, uses privileged information.

    A model that states `privileged` is taken at its word; of a search the best counts, of any other
    estimator the estimators among its parameters.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from anymix.estimators import Joint
    >>> is_privileged(make_pipeline(StandardScaler(), Joint(Ridge())))
    True
    """
    if hasattr(model, "privileged"):
        return bool(model.privileged)
    if hasattr(model, "best_estimator_"):
        return is_privileged(model.best_estimator_)
    return any(is_privileged(part) for part in _parts(model))


def _parts(model: Any) -> list[Any]:
    """Return the estimators among the parameters, those of a pipeline's steps too."""
    given = model.get_params(deep=True).values() if hasattr(model, "get_params") else ()
    return [p for p in given if hasattr(p, "get_params") and not isinstance(p, type)]


def knows_mixture(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, has a version for each mixture."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return hasattr(last, "for_mixture")


def for_mixture(model: Any, mixture: ArrayLike) -> Any:
    """Return the version of a fitted model for a mixture; earlier steps stay as they are."""
    if not isinstance(model, Pipeline):
        return model.for_mixture(mixture)
    other = copy.copy(model)
    name, last = model.steps[-1]
    other.steps = [*model.steps[:-1], (name, last.for_mixture(mixture))]
    return other
