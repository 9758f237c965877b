"""The expected loss of the deployed model on traffic that is a mixture, without labels.

Σ_k λ̂_k L_k,   L_k the mean of the model's losses over held-out rows of source k
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray, source_numbers
from anymix.core import Record
from anymix.monitor.mixture import MixtureEstimate
from anymix.monitor.scores import shares
from anymix.monitor.uncertainty import (
    confusion_matrix,
    mean_moments,
    skewed_interval,
    spread,
)


@dataclass(frozen=True)
class ExpectedLoss(Record):
    """The loss on the traffic, without labels.

    Attributes
    ----------
    value, lower, upper : float
        Σ_k λ̂_k L_k and its interval, which covers the uncertainty of λ̂ and that of the L_k.
    confidence : float
        Of the interval.
    source_losses : array (p,)
        L_k: the deployed model's mean loss at held-out rows of source k.
    lowest, highest : float
        min_k L_k and max_k L_k: the range over all mixtures, whatever the traffic is.
    loss : str
        The loss in whose unit all this is; empty if it was not named.
    n, n_reference : int
        Rows of traffic, and held-out rows with a loss.
    trusted : bool
        Whether the traffic can be a mixture of the sources; if the alarm rings, nothing here holds.
    sentence : str
        The same for a reader.
    fresh : bool
        Whether z was learned without the rows whose losses these are; else they are a little low.
    covers : str
        Whose losses these are, if not those of the models in use.
    """

    value: float
    lower: float
    upper: float
    confidence: float
    source_losses: FloatArray
    lowest: float
    highest: float
    loss: str
    n: int
    n_reference: int
    trusted: bool
    sentence: str
    fresh: bool = True
    covers: str = ""


def expected_loss(
    estimate: MixtureEstimate,
    log_r_traffic: ArrayLike,
    log_r_reference: ArrayLike,
    sample_domain: ArrayLike,
    losses: ArrayLike,
    loss: str = "",
    trusted: bool = True,
) -> ExpectedLoss:
    """Estimate the loss of a model on unlabelled traffic.

    The value is Σ_k λ̂_k L_k.  The interval is for Σ_k λ_k L_k with the true λ and L_k: both
    samples are finite, and a held-out row enters both C and L_k, so that both errors are estimated
    jointly.  It never leaves the intervals of the L_k, and no loss below zero is stated
    where none was seen.

    Parameters
    ----------
    estimate : MixtureEstimate
        λ̂ of this traffic.
    log_r_traffic, log_r_reference, sample_domain : see `estimate_mixture`
    losses : array (m,)
        The deployed model's loss at each held-out row; the model has not learned from these rows.
    loss : str
        Its name, for the sentence.
    trusted : bool
        False if the alarm rings.

    Examples
    --------
    >>> from anymix.monitor import estimate_mixture
    >>> rng = np.random.default_rng(0)
    >>> def log_r(source):
    ...     score = rng.normal(2.0 * source - 1.0)
    ...     return -np.logaddexp(0.0, [2.0 * score, -2.0 * score])
    >>> domain = np.repeat([0, 1], 1000)
    >>> tables = log_r((rng.random(2000) < 0.3).astype(int)), log_r(domain), domain
    >>> losses = (1.0 + domain) * rng.exponential(size=2000)
    >>> found = expected_loss(estimate_mixture(*tables), *tables, losses)
    >>> found.lower < 0.7 * 1.0 + 0.3 * 2.0 < found.upper
    True
    """
    reference = shares(log_r_reference, "log_r_reference")
    p, m = reference.shape
    traffic = shares(log_r_traffic, "log_r_traffic", p)
    domain = source_numbers(sample_domain, p, m, least=2)
    values = checked_losses(losses, m)
    L = confusion_matrix(values[None], domain)[0]
    value = float(estimate.mixture @ L)
    mean = spread(traffic, reference, domain, estimate.mixture, values[None])
    low, high = skewed_interval(mean, estimate.confidence)
    # What the L_k can be: their ends hold more surely, as they only cut.
    sizes = np.bincount(domain)
    parts = [mean_moments(values[None, domain == k]) for k in range(sizes.size)]
    variance = np.array([float(part[0][0, 0]) for part in parts])
    third = np.array([float(part[1][0]) for part in parts])
    skewness = third / np.maximum(variance, np.finfo(float).tiny ** 0.5) ** 1.5
    at_home = L, np.sqrt(variance), sizes.astype(float) - 1.0, skewness, np.diag(variance)
    least, most = skewed_interval(at_home, (1.0 + estimate.confidence) / 2.0)
    # A mean of losses that cannot be negative is not.
    floor = 0.0 if values.min() >= 0.0 else -np.inf
    lower = max(float(low[0]), float(least.min()), floor)
    upper = min(float(high[0]), float(most.max()))
    found = ExpectedLoss(
        value=value,
        lower=min(lower, value),
        upper=max(upper, value),
        confidence=estimate.confidence,
        source_losses=L,
        lowest=float(L.min()),
        highest=float(L.max()),
        loss=loss,
        n=traffic.shape[1],
        n_reference=m,
        trusted=trusted,
        sentence="",
    )
    return with_sentence(found)


def for_refitted(found: ExpectedLoss, floor: float = -np.inf) -> ExpectedLoss:
    """Widen the interval by √2 where models were trained again, on all rows, after the folds.

    A learner that is trained again is another draw, whose loss differs from that of the folds'
    models.  Doubling the variance allows as much for that as for the held-out rows.  Of deep trees,
    which differ most, the interval then held where it failed before; stable learners need less.
    """
    lower = found.value - np.sqrt(2.0) * (found.value - found.lower)
    upper = found.value + np.sqrt(2.0) * (found.upper - found.value)
    return replace(found, lower=float(max(lower, floor)), upper=float(upper))


def checked_losses(losses: ArrayLike, m: int) -> FloatArray:
    """Return the losses of m rows, all of them finite."""
    values = np.asarray(losses, dtype=float)
    if values.shape != (m,) or not np.isfinite(values).all():
        what = f"shape {values.shape}" if values.shape != (m,) else "NaN or infinite entries"
        raise ValueError(
            f"losses must hold {m} finite numbers, the deployed model's loss at each held-out "
            f"row; got {what}."
        )
    return values


def with_sentence(found: ExpectedLoss) -> ExpectedLoss:
    """Describe the expected loss in one sentence, or say that it cannot be estimated.

    Examples
    --------
    >>> found = ExpectedLoss(
    ...     value=1.3, lower=1.2, upper=1.45, confidence=0.95, source_losses=np.array([1.0, 2.0]),
    ...     lowest=1.0, highest=2.0, loss="squared", n=200, n_reference=80, trusted=True,
    ...     sentence="")
    >>> print(with_sentence(found).sentence)
    Without labels: the squared loss on these 200 rows is about 1.3 (1.2 to 1.45 with 95 %
    confidence); over all mixtures of the sources it ranges from 1 to 2.
    """
    of = f"the {found.loss} loss" if found.loss else "the loss"
    about = (
        f"about {found.value:.3g} ({found.lower:.3g} to {found.upper:.3g} with "
        f"{100 * found.confidence:g} % confidence)"
    )
    if not found.trusted:
        said = (
            f"Do not trust an expected loss here: {of} would be {about} if these {found.n} rows "
            "were a mixture of the sources, and they are not."
        )
        return replace(found, sentence=said)
    seen = "" if found.fresh else "; z was learned from the rows that tell this: it may be more"
    if found.covers:
        seen += (
            f"; it is of {found.covers}, those in use are trained on all rows, and the interval is "
            "wider for it"
        )
    said = (
        f"Without labels: {of} on these {found.n} rows is {about}; over all mixtures of the "
        f"sources it ranges from {found.lowest:.3g} to {found.highest:.3g}{seen}."
    )
    return replace(found, sentence=said)
