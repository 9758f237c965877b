"""What a bound is, what the user states for it, and what was measured that it starts from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anymix.core.records import Record


@dataclass(frozen=True)
class Bound(Record):
    """One theorem as a number.

    Attributes
    ----------
    name : str
        What is bounded.
    value : float
    paper : str
        Where it stands.
    assumptions : str
        What must be true, in words.
    checked : bool
        Whether the tables themselves show that it is true; else it is taken on trust.
    contradicted : str
        Empty, or the sentence that says what was measured against it and which assumption must
        then be false: such a bound must not be relied on.
    """

    name: str
    value: float
    paper: str
    assumptions: str
    checked: bool
    contradicted: str = ""


@dataclass(frozen=True)
class Assumptions(Record):
    """What the tables cannot show and the user states; each number opens further bounds.

    Attributes
    ----------
    loss_bound : float
        M, a bound on the loss of every source everywhere.  Without it the largest loss seen is
        taken, which is a bound for the tables only.
    alpha : float
        α > 1 of the divergences, infinity allowed.  Hölder's bounds hold for every α at once, so
        take the one at which they are least: `anymix.core.best_hoelder`.
    target_divergence : float
        d_α(D_T ‖ mixtures of the sources) ≥ 1; see `anymix.core.nearest_mixture`.
    density_divergence : float or array (p,)
        d_α(D̂_k ‖ D_k) ≥ 1, how far the densities in use are from the true ones.
    conditional_divergence : float or array (p,)
        d_α(D_k,T ‖ D_k) ≥ 1, how far the target's labels are from those of source k.
    mass_floor : float
        μ with D_k(x, y) ≥ μ U(x, y): for the normalised rule, whose sources share one conditional.
    n_classes : int
        |Y|; the bound no longer needs it.
    """

    loss_bound: float | None = None
    alpha: float | None = None
    target_divergence: float | None = None
    density_divergence: ArrayLike | None = None
    conditional_divergence: ArrayLike | None = None
    mass_floor: float | None = None
    n_classes: int | None = None

    def check(self) -> None:
        """Raise a ValueError, in one sentence, for a number that no distribution can have."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        divergences = {k: v for k, v in given.items() if k.endswith("divergence") and v is not None}
        if divergences and self.alpha is None:
            raise ValueError(f"{next(iter(divergences))} needs alpha, its order; state both.")
        if self.alpha is not None and not self.alpha > 1:
            raise ValueError(f"alpha must be above 1; got {self.alpha}.")
        for name, value in divergences.items():
            if not np.all(np.asarray(value, dtype=float) >= 1 - 1e-9):
                raise ValueError(f"{name} is the exponential of a divergence, so ≥ 1; got {value}.")
        if self.n_classes is not None and self.mass_floor is None:
            raise ValueError("n_classes says nothing without mass_floor; state that, or neither.")
        for name in ("loss_bound", "mass_floor", "n_classes"):
            if given[name] is not None and not 0 < given[name] < np.inf:
                raise ValueError(f"{name} must be positive and finite; got {given[name]}.")


class Measured(NamedTuple):
    """What the points show, for bounds to be held against.

    loss and regret are max_k L_k(z) and max_k (L_k(z) − ε_k); loss_low and regret_low what these
    exceed with the stated confidence, None where the tables are the distributions themselves, or
    where nobody has computed it.
    """

    loss: float
    regret: float
    loss_low: float | None = None
    regret_low: float | None = None
    confidence: float | None = None


class Facts(NamedTuple):
    """What certify has measured and the theorems start from.

    slack is ηM and cross_slack what may stand in its place where it is known,
    η [(1/p) Σ_k L(U, h_k) − L(U, h_z)]; loss_bound bounds the loss of the rule that is judged;
    worst is max_k L_k(z), or its upper confidence bound; checked says that the tables are the
    distributions.  A normalised rule has a price, what log Σ_y h_z(x, y) may be on average.  floor
    is the least D_k/U on the tables, disagreement the largest |h_j − h_k| there where the h_k are
    the conditionals of the densities in use.
    """

    epsilon: float
    slack: float
    gamma: float
    own_gamma: float
    loss_bound: float
    worst: float
    eta: float
    checked: bool
    cross_entropy: bool
    cross_slack: float | None = None
    normalised: bool = False
    price: float = 0.0
    floor: float | None = None
    disagreement: float | None = None
    measured: Measured | None = None

    @property
    def least_slack(self) -> float:
        """The smaller of the two slacks."""
        return self.slack if self.cross_slack is None else min(self.slack, self.cross_slack)
