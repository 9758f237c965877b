"""Check a user's loss: slope, curvature, convexity and bound against its values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from anymix._arrays import FloatArray
from anymix.core.losses.base import Loss

# Points and sources that are drawn where none are given.
N_POINTS, N_DRAWN = 200, 3
# Steps of differences, relative to the predictions; and how far differences may be off.
STEP, NEAR = 1e-5, 1e-4
# Points at which a kink lies within a step are left out, at most so many of a hundred.
MOST_KINKS = 10
# How much larger ℓ′²/ℓ″ may be than stated, for rounding.
ROUNDING = 1 + 1e-6


def check_loss(
    loss: Loss,
    predictions: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    rng: np.random.Generator | int = 0,
) -> None:
    """Check slope, curvature, convexity and bound of a loss; a ValueError names a mistake.

    With e small, at predictions h between the sources':

        slope ≈ (ℓ(h + e) − ℓ(h − e)) / 2e,    curvature ≈ (ℓ'(h + e) − ℓ'(h − e)) / 2e ≥ 0,
        ℓ'² ≤ curvature_ratio · ℓ'',           or |ℓ'| ≤ lipschitz.

    Points within e of a kink are left out.

    Parameters
    ----------
    loss : Loss
    predictions : array of shape (p, m) or (p, m, c), optional
        Predictions as the loss takes them; by default some are drawn that its `check` accepts.
    targets : array of shape (m,) or (m, c), optional
        One-hot for a loss of vectors.
    rng : Generator or int

    Examples
    --------
    >>> import numpy as np
    >>> from anymix.core import Loss
    >>> class Fourth(Loss):
    ...     def value(self, h, y):
    ...         return (h - y) ** 4
    ...     def slope(self, h, y):
    ...         return 3 * (h - y) ** 3
    ...     def curvature(self, h, y):
    ...         return 12 * (h - y) ** 2
    ...     def curvature_ratio(self, predictions, targets):
    ...         return 4 / 3 * ((predictions - targets) ** 4).max(axis=0)
    >>> check_loss(Fourth())
    Traceback (most recent call last):
        ...
    ValueError: Fourth.slope is ... where ... values rise by ...
    >>> Fourth.slope = lambda self, h, y: 4 * (h - y) ** 3
    >>> check_loss(Fourth())

    Paper: Prop. 5, Prop. 6.
    """
    if (predictions is None) != (targets is None):
        raise ValueError("check_loss needs predictions and targets, or neither.")
    rng = np.random.default_rng(rng)
    if predictions is None:
        drawn, y = _accepted(loss, rng)
    else:
        drawn, y = np.asarray(predictions, dtype=float), np.asarray(targets, dtype=float)
        loss.check(drawn, y)
    share = rng.dirichlet(np.ones(len(drawn)), drawn.shape[1]).T
    h = np.einsum("km,km...->m...", share, drawn)
    _check_shapes(loss, h, y)
    _check_derivatives(loss, h, y, rng)
    _check_bound(loss, drawn, h, y)


def _accepted(loss: Loss, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw predictions (p, m[, c]) and targets that the loss takes."""
    shape, m, refused = (N_DRAWN, N_POINTS), N_POINTS, "none of them"
    numbers, counts = rng.normal(0.0, 2.0, shape), rng.poisson(1.5, m).astype(float)
    if loss.takes == "label":
        drawn = [(rng.uniform(0.02, 1.0, shape), np.zeros(m))]
    elif loss.takes == "vector":
        drawn = [(rng.dirichlet(np.ones(3), shape), np.eye(3)[rng.integers(3, size=m)])]
    else:
        signed = [rng.normal(size=m), rng.choice([-1.0, 1.0], m), counts]
        positive = [counts, rng.exponential(size=m)]
        drawn = [] if loss.positive else [(numbers, y) for y in signed]
        drawn += [(np.exp(numbers / 2), y) for y in positive]
    for given, y in drawn:
        try:
            loss.check(given, y)
        except ValueError as error:
            refused = str(error)
            continue
        return given, y
    raise ValueError(
        f"{type(loss).__name__}.check refused all points that were drawn ({refused}); pass "
        "predictions and targets that it takes."
    )


def _check_shapes(loss: Loss, h: FloatArray, y: FloatArray) -> None:
    """Values are (m,), derivatives have the shape of h; all are finite, and h is left alone."""
    name, before = type(loss).__name__, h.copy()
    shapes = {"value": h.shape[:1], "slope": h.shape, "curvature": h.shape}
    for method, shape in shapes.items():
        values = np.asarray(getattr(loss, method)(h, y))
        if values.shape != shape:
            raise ValueError(f"{name}.{method} has shape {values.shape}; {shape} is needed.")
        if not np.isfinite(values).all():
            raise ValueError(
                f"{name}.{method} is not finite at h = {h[~np.isfinite(values)][0]}; let `check` "
                "refuse such predictions."
            )
        if not np.array_equal(h, before):
            raise ValueError(f"{name}.{method} writes into h; let it work on a copy.")


def _check_derivatives(loss: Loss, h: FloatArray, y: FloatArray, rng: np.random.Generator) -> None:
    """Differences along one direction, which for a loss of numbers is h itself."""
    name = type(loss).__name__
    way: FloatArray = np.ones_like(h)
    if h.ndim == 2:
        way = np.eye(h.shape[1])[rng.integers(h.shape[1], size=len(h))]
    step = STEP * np.maximum(np.abs(h).max(), 1.0) * way
    size = step.reshape(len(h), -1).max(axis=1)

    def along(derivative: FloatArray) -> FloatArray:
        return np.asarray((derivative * way).reshape(len(h), -1).sum(axis=1))

    below, at, above = (loss.value(h + k * step, y) for k in (-1, 0, 1))
    left, here, right = (along(loss.slope(h + k * step, y)) for k in (-1, 0, 1))
    bend = along(loss.curvature(h, y))
    falls = right < left - NEAR * np.maximum(np.abs(left), 1.0) * STEP
    if falls.any():
        raise ValueError(
            f"{name}.slope falls as h rises at {falls.mean():.0%} of the points: the loss is not "
            "convex there, or the slope has the wrong sign."
        )
    scale = NEAR * max(float(np.abs(here).max()), 1.0)
    rise = (above - below) / (2 * size)
    # Where the two sides differ by more than curvature explains there is a kink.
    smooth = np.abs((above - at) - (at - below)) / size <= scale + 2 * np.abs(bend) * size
    smooth &= np.abs(right - left) <= scale + 4 * np.abs(bend) * size
    if np.mean(~smooth) > MOST_KINKS / 100:
        raise ValueError(
            f"{name}.curvature does not explain how the slope changes at "
            f"{np.mean(~smooth):.0%} of the points; a kink may lie at few of them only."
        )
    turn, steep = (right - left) / (2 * size), NEAR * max(float(np.abs(bend).max()), 1.0)
    for method, by, said, found, most in (
        ("slope", "values rise", here, rise, scale),
        ("curvature", "slopes rise", bend, turn, 10 * steep),
    ):
        off = np.where(smooth, np.abs(said - found), 0.0)
        i = int(off.argmax())
        if off[i] > most:
            raise ValueError(
                f"{name}.{method} is {said[i]:.6g} where the {by} by {found[i]:.6g}; mend one of "
                "them."
            )


def _check_bound(loss: Loss, drawn: FloatArray, h: FloatArray, y: FloatArray) -> None:
    """|ℓ'| ≤ G, if G is stated, and (ℓ + q)'² ≤ C (ℓ + q)'' between the predictions."""
    name = type(loss).__name__
    slope, bend = loss.slope(h, y), loss.curvature(h, y)
    most = float(np.abs(slope).max())
    if loss.lipschitz is not None and most > loss.lipschitz * ROUNDING:
        raise ValueError(
            f"{name}.lipschitz is {loss.lipschitz:.6g}, and the slope reaches {most:.6g}; state a "
            "bound that holds."
        )
    terms = loss.dc_terms(drawn, y)
    if np.shape(terms.C) != h.shape[:1]:
        raise ValueError(
            f"{name}.curvature_ratio has shape {np.shape(terms.C)}; {h.shape[:1]} is needed."
        )
    if np.any(terms.bend):
        slope, bend = slope + 2 * terms.bend * (h - terms.centre), bend + 2 * terms.bend
    # A vector moves along a line: by Cauchy and Schwarz the ratio is at most the sum over classes.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(slope == 0, 0.0, slope**2 / bend).reshape(len(h), -1).sum(axis=1)
    short = ratio > terms.C * ROUNDING + NEAR * NEAR
    if short.any():
        i = int(np.argmax(np.where(short, ratio - terms.C, -np.inf)))
        raise ValueError(
            f"{name}.curvature_ratio is {terms.C[i]:.6g} where ℓ′²/ℓ″ is {ratio[i]:.6g}; take its "
            "largest value between the least and the largest prediction, or state `lipschitz`."
        )
