"""Tables: the predictions and densities of p sources at m points, evaluated once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anymix._arrays import FloatArray, positions
from anymix.core import (
    Calibration,
    Consulting,
    EvaluatedPoints,
    Loss,
    NormalisedRule,
    Problem,
    get_loss,
    joint_log_densities,
    log_responsibilities,
    losses_at,
)


@dataclass(frozen=True)
class Tables:
    """log_masses (p, m) and predictions (p, m[, c]), with what is known of the m points.

    targets are numbers, or positions in `classes`; sample_domain (m,) says which source each point
    was drawn from.  Without `has_densities` the log-masses are responsibilities alone, which say
    nothing of how likely a point is.  With `at_label` the predictions are those of site files: the
    probability of the label that occurred, or the error h − y of a number.  Points of one of the
    `groups` (m,) are one draw: they stay in one fold, and count once in a certificate.
    `generalist` (m[, c]) are the predictions of one more predictor, learned from the rows of all
    sources, that each may consult.  Nothing in here is a feature: tables may travel where rows may
    not.

    Examples
    --------
    >>> import numpy as np
    >>> from anymix import Tables
    >>> tables = Tables(np.zeros((2, 3)), np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    >>> tables.labelled([0.0, 1.0, 1.0], [0, 1, 1]).point_losses("squared")
    array([[0., 1., 1.],
           [1., 0., 0.]])
    """

    log_masses: FloatArray
    predictions: FloatArray
    targets: NDArray[Any] | None = None
    sample_domain: NDArray[np.intp] | None = None
    sample_weight: FloatArray | None = None
    classes: NDArray[Any] | None = None
    has_densities: bool = True
    at_label: bool = False
    groups: NDArray[np.intp] | None = None
    generalist: FloatArray | None = None

    @property
    def n_points(self) -> int:
        """m."""
        return int(self.log_masses.shape[1])

    @property
    def n_sources(self) -> int:
        """p."""
        return len(self.log_masses)

    @property
    def n_classes(self) -> int | None:
        """The number of classes, or None for numbers."""
        return None if self.classes is None else len(self.classes)

    @property
    def domain(self) -> NDArray[np.intp]:
        """The source of each point, (m,), where it is known."""
        return np.asarray(self.sample_domain)

    @property
    def weights(self) -> FloatArray:
        """The weight of each point, (m,): ones where none were given."""
        if self.sample_weight is None:
            return np.ones(self.n_points)
        return np.asarray(self.sample_weight, dtype=float)

    @property
    def all_predictions(self) -> FloatArray:
        """The predictions of the sources and, last, those of the generalist if there is one.

        >>> Tables(np.zeros((2, 1)), np.zeros((2, 1)), generalist=np.ones(1)).all_predictions
        array([[0.],
               [0.],
               [1.]])
        """
        if self.generalist is None:
            return self.predictions
        return np.concatenate([self.predictions, self.generalist[None]])

    def own_predictions(self) -> FloatArray:
        """The prediction of each point's own model, (m,) or (m, c)."""
        return np.asarray(self.predictions[self.domain, np.arange(self.n_points)])

    def rows_of(self, k: int) -> NDArray[np.intp]:
        """The points that were drawn from source k."""
        return np.flatnonzero(self.sample_domain == k)

    def by_source(self, values: FloatArray) -> FloatArray:
        """Average values (m,) over the rows of each source, (p,)."""
        domain, weight, p = self.domain, self.weights, self.n_sources
        return np.bincount(domain, weight * values, p) / np.bincount(domain, weight, p)

    def labelled(
        self,
        y: ArrayLike,
        sample_domain: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Tables:
        """Add targets or labels, the source of each point, weights and groups.

        sample_domain is 0..p−1 for each point, or one number for all of them.
        """
        target, n = np.asarray(y), self.n_points
        domain = np.broadcast_to(np.asarray(sample_domain), (n,)).astype(np.intp)
        if target.shape != (n,):
            raise ValueError(f"y has shape {target.shape} where {(n,)} is expected.")
        if self.classes is not None:
            target = positions(target, self.classes)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        known = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        return replace(
            self, targets=target, sample_domain=domain, sample_weight=weight, groups=known
        )

    def without(self, sources: Sequence[int]) -> Tables:
        """Leave some sources out, with the points that were drawn from them.

        >>> tables = Tables(np.zeros((3, 3)), np.zeros((3, 3))).labelled(np.zeros(3), [0, 1, 2])
        >>> tables.without([1]).sample_domain
        array([0, 1])
        """
        if not sources:
            return self
        kept, domain = np.setdiff1d(np.arange(self.n_sources), sources), self.sample_domain
        if domain is None:
            raise ValueError("tables need sample_domain to leave a source out.")
        points = np.flatnonzero(np.isin(domain, kept))
        part = self.taken(points)
        return replace(
            part,
            log_masses=part.log_masses[kept],
            predictions=part.predictions[kept],
            sample_domain=np.searchsorted(kept, domain[points]),
        )

    def taken(self, points: NDArray[np.intp]) -> Tables:
        """Return some of the points."""
        y, domain, weight = self.targets, self.sample_domain, self.sample_weight
        return replace(
            self,
            log_masses=self.log_masses[:, points],
            predictions=self.predictions[:, points],
            targets=None if y is None else y[points],
            sample_domain=None if domain is None else domain[points],
            sample_weight=None if weight is None else weight[points],
            groups=None if self.groups is None else self.groups[points],
            generalist=None if self.generalist is None else self.generalist[points],
        )

    def log_responsibilities(self) -> FloatArray:
        """log r_k = log D_k − logsumexp_j log D_j, shape (p, m)."""
        return log_responsibilities(self.log_masses)

    def weighed(self, calibration: Calibration | None) -> Tables:
        """Replace the log-masses with (calibrated) log-responsibilities."""
        return replace(self, log_masses=log_responsibilities(self.log_masses, calibration))

    def heard(self, consulting: Consulting | None) -> Tables:
        """Replace the models' predictions with those after consulting."""
        if consulting is None:
            return replace(self, generalist=None)
        if consulting.has_generalist and self.generalist is None:
            raise ValueError(
                "sources that consult a generalist need its predictions, but these tables do not "
                "hold them; evaluate the rows with the model."
            )
        if consulting.form == "labels" and self.predictions.shape[2:] == (1,):
            raise ValueError(
                "sources that consult each other need the probabilities of all classes, but these "
                "tables hold that of the label alone; evaluate the rows anew."
            )
        if self.at_label and not consulting.takes_errors:
            raise ValueError(
                "sources that consult each other by pools learned from whole rows need all that "
                "the models say, but these tables hold errors, or classes in no order; evaluate "
                "rows in Python with model.certify or anymix.compare."
            )
        models = self.all_predictions if consulting.has_generalist else self.predictions
        return replace(self, predictions=consulting.heard(models), generalist=None)

    def problem(
        self,
        loss: str | Loss,
        eta: float,
        rule: str = "marginal",
        totals: FloatArray | None = None,
    ) -> Problem:
        """Build the problem of learning z from these points, under the own measure.

        Rule "normalised" weighs by D_k(x, y) = D_k(x) h_k(x, y) at the label that occurred.
        totals (p,) are the weights of each source in all parts, of which these points are one.
        """
        if self.targets is None or self.sample_domain is None:
            raise ValueError("tables need targets and sample_domain to learn z from them.")
        log_d = self.log_masses
        if rule == "normalised":
            if not get_loss(loss).logarithmic:
                raise ValueError("rule 'normalised' is learned with loss='cross_entropy' alone.")
            log_joint = joint_log_densities(log_d, self.predictions)
            log_d = log_joint[:, np.arange(self.n_points), self.targets]
        given = log_d, self.predictions, self.targets, loss, eta, self.domain, self.sample_weight
        return Problem.from_log_densities(*given, totals=totals)

    def judgement(
        self,
        loss: str | Loss,
        eta: float,
        rule: str = "marginal",
        totals: FloatArray | None = None,
    ) -> EvaluatedPoints:
        """Build the problem of the rule's predictions at these points (or the normalised rule)."""
        self.check_loss(loss, rule)
        if rule != "normalised":
            return self.problem(loss, eta, rule, totals)
        given = self.log_masses, self.predictions, np.asarray(self.targets), loss, eta
        return NormalisedRule.of(*given, self.domain, self.sample_weight, totals=totals)

    def check_loss(self, loss: str | Loss, rule: str = "marginal") -> None:
        """Refuse a loss for another task, and a loss or rule that needs missing tables."""
        if rule not in ("marginal", "normalised"):
            raise ValueError(f"rule must be 'marginal' or 'normalised'; got {rule!r}.")
        known, classification = get_loss(loss), self.classes is not None
        if (known.takes != "number") != classification:
            kind = "'cross_entropy' or 'brier'" if classification else "a loss of numbers"
            task = "a classification" if classification else "a regression"
            raise ValueError(f"{task} needs {kind}; got loss={loss!r}.")
        enough = rule == "marginal" and (known.takes == "label" or known.of_error)
        # All classes, in whatever order, with the label first.
        enough |= self.predictions.ndim == 3 and self.predictions.shape[2] > 1
        if self.at_label and not enough:
            what = f"the loss {loss!r}" if rule == "marginal" else f"the rule {rule!r}"
            raise ValueError(
                f"{what} needs all predictions and targets, but these tables hold what was said at "
                "the label, or its error, alone; judge rows in Python with model.certify or "
                "anymix.compare."
            )

    def point_losses(self, loss: str | Loss) -> FloatArray:
        """ℓ(h_k(x_i), y_i), shape (p, m)."""
        if self.targets is None:
            raise ValueError("tables need targets to evaluate the sources.")
        y = np.asarray(self.targets)
        return np.stack([losses_at(h, y, loss) for h in self.predictions])

    def outcomes(self) -> FloatArray:
        """What each source gives the label that occurred, or how wrong its number is: (p, m).

        Sites send these, and whole tables hold them, too.
        """
        h, y = self.predictions, np.asarray(self.targets)
        return np.asarray(h[:, np.arange(y.size), y] if h.ndim == 3 else h - y)

    @staticmethod
    def concatenate(parts: Sequence[Tables]) -> Tables:
        """Join the tables of several sites, in order; they must agree in sources and classes."""
        if not parts:
            raise ValueError("there are no tables to join.")
        first = parts[0]
        if not all(_are_alike(part, first) for part in parts[1:]):
            raise ValueError("tables of different sites must have the same sources and classes.")
        axes = {"log_masses": 1, "predictions": 1}
        axes |= dict.fromkeys(("targets", "sample_domain", "sample_weight", "generalist"), 0)
        return replace(
            first,
            groups=_joined_groups(parts),
            has_densities=all(part.has_densities for part in parts),
            at_label=any(part.at_label for part in parts),
            **{name: _joined_array(parts, name, axis) for name, axis in axes.items()},
        )


def _are_alike(part: Tables, first: Tables) -> bool:
    """Whether both are of the same number of sources, and of the same classes."""
    if part.predictions.shape[::2] != first.predictions.shape[::2]:
        return False
    one, other = part.classes, first.classes
    return one is other if one is None or other is None else np.array_equal(one, other)


def _joined_array(parts: Sequence[Tables], name: str, axis: int) -> Any:
    """Join what all of the parts have, or none."""
    arrays = [getattr(part, name) for part in parts]
    if all(array is None for array in arrays):
        return None
    if any(array is None for array in arrays):
        raise ValueError(f"some of the tables have no {name}; give it to all or to none.")
    return np.concatenate(arrays, axis=axis)


def _joined_groups(parts: Sequence[Tables]) -> NDArray[np.intp] | None:
    """Number the groups of several sites one after the other; where there are none rows are."""
    if all(part.groups is None for part in parts):
        return None
    found, n = [], 0
    for part in parts:
        own = np.arange(part.n_points) if part.groups is None else part.groups
        found.append(own + n)
        n += int(own.max(initial=-1)) + 1
    return np.concatenate(found)


def tail_probabilities(scores: FloatArray, own: FloatArray) -> FloatArray:
    """The probability that a source's own row scores as low; `own` (n_k,) are held-out scores.

    p(s) = (1 + #{own ≤ s}) / (n_k + 1), and below the lowest own score the exponential tail
    p(s) = exp((s − min own) / b) / (n_k + 1), with b the mean distance of the lower half from the
    median: it orders the points that lie beyond all rows.

    Examples
    --------
    >>> tail_probabilities(np.array([-9.0, 1.0, 9.0]), np.array([0.0, 1.0, 2.0])).round(3)
    array([0.  , 0.75, 1.  ])
    """
    own = np.sort(own)
    n = len(own)
    p = (1.0 + np.searchsorted(own, scores, side="right")) / (n + 1.0)
    lowest, below = own[0], scores < own[0]
    if np.isfinite(lowest):
        spread = float(np.mean(np.median(own) - own[: (n + 1) // 2]))
        with np.errstate(divide="ignore"):
            depth = np.divide(lowest - scores[below], spread)
        p[below] = np.exp(-depth) / (n + 1.0)
    return np.asarray(p)


@dataclass(frozen=True)
class Novelty:
    """The log-densities of each source at its own held-out points, sorted.

    Where sites send rounded numbers, `own` are quantiles of these, and `totals` are histograms
    (2, e) of log Σ_k D_k(x) at the rows of each site.
    """

    own: tuple[FloatArray, ...]
    totals: tuple[FloatArray, ...] = ()

    @classmethod
    def from_tables(cls, tables: Tables) -> Self:
        """Collect the log-densities of each source at its own rows."""
        rows = enumerate(tables.log_masses)
        return cls(tuple(np.sort(row[tables.rows_of(k)]) for k, row in rows))

    @staticmethod
    def of_each(log_masses: FloatArray, domain: NDArray[np.intp]) -> FloatArray:
        """Return the novelty of held-out points themselves, each ranked among the others: (m,).

        Of the n_k points of source k the r-th lowest has p = r / n_k, as a new one has among the
        other n_k − 1.

        >>> Novelty.of_each(np.array([[0.0, 2.0, 1.0, 3.0]]), np.zeros(4, dtype=int))
        array([0.96..., 0.25      , 0.5       , 0.        ])
        """
        best = np.zeros(domain.size)
        for k, row in enumerate(log_masses):
            own = domain == k
            ordered = np.sort(row[own])
            p = np.empty(domain.size)
            p[~own] = tail_probabilities(row[~own], ordered)
            p[own] = np.searchsorted(ordered, row[own], side="right") / ordered.size
            lowest = own & (row == ordered[0])
            if ordered.size > 2 and ordered[0] < ordered[1]:
                p[lowest] = tail_probabilities(row[lowest], ordered[1:])
            np.maximum(best, p, out=best)
        return 1.0 - best

    def is_of(self, tables: Tables) -> bool:
        """Whether it comes from these tables, and not from other densities.

        >>> tables = Tables(np.array([[2.0, 1.0]]), np.zeros((1, 2))).labelled(np.zeros(2), 0)
        >>> Novelty.from_tables(tables).is_of(tables)
        True
        """
        if not tables.has_densities:
            return False
        known = zip(self.own, Novelty.from_tables(tables).own, strict=True)
        return all(np.array_equal(one, other) for one, other in known)

    def score(self, log_masses: FloatArray) -> FloatArray:
        """1 − max_k p_k(x), p_k the share of source k's own rows that are no likelier than x."""
        best = np.zeros(log_masses.shape[1])
        for own, row in zip(self.own, log_masses, strict=True):
            np.maximum(best, tail_probabilities(row, own), out=best)
        return 1.0 - best
