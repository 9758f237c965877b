"""The rows that DW is compared with on the reviews: K, D, B, E, their mean, KMM and λ-comb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from experiments.kmm_reviews import MeanMatcher, Mixture, quarter
from experiments.reviews import Floats, Regressor, Rows, View, predictions
from experiments.runner import Setup

DOMAINS = "KDBE"


class Method(NamedTuple):
    """A row: from the target's mixture to the MSE on each domain's test rows."""

    name: str
    protocol: Setup
    losses: Callable[[Mixture], Floats]
    privileged: bool = False


class Split(NamedTuple):
    """Rows of one split, one entry per domain, and the mixtures that it will be asked about."""

    train: Sequence[Rows]
    test: Sequence[Rows]
    mixtures: Sequence[Mixture]


def rivals(view: View, split: Split, h: Floats, protocol: Setup) -> list[Method]:
    """All of them; those that know the target's mixture are privileged."""

    def lambda_comb(lam: Mixture) -> Floats:
        return fixed(view, split.test, np.asarray(lam) @ h)(lam)

    return [
        *(Method(d, protocol, fixed(view, split.test, h[k])) for k, d in enumerate(DOMAINS)),
        Method("unif", protocol, fixed(view, split.test, h.mean(axis=0))),
        *matching_methods(view, split, protocol),
        Method("λ-comb", protocol, lambda_comb, privileged=True),
    ]


def matching_methods(view: View, split: Split, protocol: Setup) -> list[Method]:
    """KMM as the paper has it: the study's regressor on all training rows, weighted.

    Then the same with weights at which an iterative solver stops; and kernel ridge regression on a
    quarter of the rows, as many as each of the other regressors has.
    """
    few = split._replace(train=quarter(split.train))
    whole = cache(lambda: MeanMatcher(view, *split))
    return [
        Method("KMM", protocol, _matched(view, split, lambda m: whole().fit(m)), True),
        Method(
            "KMM, tolerance 1e-4",
            protocol,
            _matched(view, split, lambda m: whole().fit_early(m)),
            True,
        ),
        Method(
            "KMM, kernel ridge",
            protocol,
            _matched(view, split, MeanMatcher(view, *few).ridge),
            True,
        ),
    ]


def _matched(
    view: View, split: Split, fit: Callable[[Mixture], Regressor]
) -> Callable[[Mixture], Floats]:
    """Fit anew for each target."""
    rows = np.concatenate(split.test)

    def losses(lam: Mixture) -> Floats:
        return fixed(view, split.test, predictions(view, [fit(lam)], rows)[0])(lam)

    return cache(losses)


def fixed(view: View, test: Sequence[Rows], h: Floats) -> Callable[[Mixture], Floats]:
    """Return the domains' losses of predictions that do not depend on the target."""
    squares = (h - view.corpus.ratings[np.concatenate(test)]) ** 2
    bounds = np.cumsum([len(rows) for rows in test])[:-1]
    losses = np.array([part.mean() for part in np.split(squares, bounds)])
    return lambda lam: losses
