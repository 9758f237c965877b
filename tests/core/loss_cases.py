"""Every exported loss, with data it accepts, for all tests that must hold for each of them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from anymix.core import Loss, Problem, losses
from anymix.core.losses import (
    Absolute,
    Brier,
    CrossEntropy,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    Poisson,
    PoissonLog,
    Squared,
)

Draw = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]


class LossCase(NamedTuple):
    """A loss, predictions (p, m[, c]) and targets to draw, its kinks and the perfect h given y."""

    loss: Loss
    draw: Draw
    kinks: Callable[[np.ndarray], tuple[np.ndarray, ...]] = lambda y: ()
    perfect: Callable[[np.ndarray], np.ndarray] | None = lambda y: y


def real(rng, p, m):
    return 2 * rng.standard_normal((p, m)), rng.standard_normal(m)


def margins(rng, p, m):
    return 2 * rng.standard_normal((p, m)), rng.choice([-1.0, 1.0], size=m)


def probabilities(rng, p, m):
    return rng.uniform(0.02, 1.0, size=(p, m)), np.zeros(m)


def vectors(rng, p, m):
    return rng.dirichlet(np.ones(3), size=(p, m)), np.eye(3)[rng.integers(3, size=m)]


def means(rng, p, m):
    return rng.uniform(0.2, 5.0, size=(p, m)), rng.poisson(1.5, size=m).astype(float)


def log_means(rng, p, m):
    h, y = means(rng, p, m)
    return np.log(h), y


# What a loss takes, and the draws that may suit it; its own `check` decides.
DRAWS: dict[str, tuple[Draw, ...]] = {
    "number": (real, means, margins, log_means),
    "label": (probabilities,),
    "vector": (vectors,),
}


def target(y):
    return (y,)


LISTED = [
    LossCase(Squared(), real),
    LossCase(CrossEntropy(), probabilities, perfect=np.ones_like),
    LossCase(Brier(), vectors),
    LossCase(Logistic(), margins, perfect=None),
    LossCase(Poisson(), means, perfect=lambda y: np.maximum(y, 1e-300)),
    LossCase(PoissonLog(), log_means, perfect=lambda y: np.log(np.maximum(y, 1e-300))),
    LossCase(Absolute(), real, kinks=target),
    LossCase(Pinball(0.3), real, kinks=target),
    LossCase(Pinball(0.9), real, kinks=target),
    LossCase(Huber(0.7), real, kinks=lambda y: (y - 0.7, y + 0.7)),
    LossCase(Hinge(), margins, kinks=lambda y: (y,)),
]


def exported() -> list[type[Loss]]:
    """Return every loss class that the room's door names."""
    things = [getattr(losses, name) for name in losses.__all__]
    return [t for t in things if isinstance(t, type) and issubclass(t, Loss) and t is not Loss]


def found_case(loss: Loss) -> LossCase:
    """Make the case of a loss from what it takes: the first draw that its `check` accepts."""
    for draw in DRAWS[loss.takes]:
        h, y = draw(np.random.default_rng(0), 4, 300)
        try:
            loss.check(h, y)
        except ValueError:
            continue
        return LossCase(loss, draw, perfect=None)
    raise AssertionError(f"{loss} accepts no draw: name its case in {__name__}.LISTED.")


# A loss is tested because it is exported; the list says more of those that it names.
CASES = LISTED + [
    found_case(kind()) for kind in exported() if kind not in {type(case.loss) for case in LISTED}
]
SMOOTH = [case for case in CASES if case.loss.lipschitz is None]

every_loss = pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.loss))
smooth_loss = pytest.mark.parametrize("case", SMOOTH, ids=lambda case: repr(case.loss))


def make_problem(case: LossCase, seed: int, own: bool = False, p: int = 3, m: int = 18) -> Problem:
    """A random problem of that loss on the pooled or the own measure."""
    rng = np.random.default_rng(seed)
    h, y = case.draw(rng, p, m)
    log_d = 2 * rng.standard_normal((p, m))
    domain = rng.permutation(np.arange(m) % p) if own else None
    return Problem.from_log_densities(log_d, h, y, loss=case.loss, eta=0.05, sample_domain=domain)


def central_difference(f, z, step=1e-6):
    """Derivative of f along each entry of z, on a new last axis."""
    moves = step * np.eye(len(z))
    return np.stack([(f(z + d) - f(z - d)) / (2 * step) for d in moves], axis=-1)
