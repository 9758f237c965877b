"""The certificate: what is guaranteed for a combination, in numbers and in one plain sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from anymix._arrays import FloatArray
from anymix.core.guarantees.premises import Assumptions, Bound
from anymix.core.losses import unit_of
from anymix.core.records import Record

# What a certificate of a version that did not say it may claim, by its method.
EXACT_METHODS = ("betting", "bernstein", "hoeffding")
FOLD_MODELS = "the fold models"
# Below it an asymptotic bound is rough, and says so.
FEW_ROWS = 200
# Ways that look at no row.
BLIND = ("chance", "a constant")


class ReferenceLoss(NamedTuple):
    """What another way loses on its worst source, on the same rows; `clipped` as the bound is."""

    name: str
    loss: float
    clipped: float


@dataclass(frozen=True, eq=False)
class Certificate(Record):
    """What is guaranteed for h_z.

    Attributes
    ----------
    z : array (p,)
        The z that is certified, of several parts their mean.  It differs from the z handed in only
        if that was fitted on the same points: see `certify`.
    epsilon, own_losses : float, array (p,)
        ε = max_k ε_k and ε_k = L(D_k, h_k).
    source_losses, robust_loss, regret, gamma : array (p,), float, float, float
        L_k(z), max_k L_k, max_k (L_k − ε_k) and γ(z), as measured.
    eta, loss_bound : float
        η and M.
    bounds : tuple of Bound
        The theorems whose inputs are known.
    confidence, method : float or None, str or None
        With what probability the next two hold, both together, and by which bound; None when
        nothing is claimed, or the tables are taken as the distributions themselves.
    loss_upper, regret_upper : float or None
        Upper confidence bounds on max_k L_k and on max_k (L_k − ε_k); None where no confidence was
        earned.
    n_candidates : float
        How many choices the confidence is spread over: 1; if z was fitted here all rounded z; or
        the ways to learn that all rows together have chosen from.
    assumptions : Assumptions
        What the user stated.
    loss : str
        Name of the loss, or of the measure.
    loss_ground, regret_ground : "exact", "asymptotic", "measured" or "tables"
        What each upper bound stands on.  Exact holds at every number of rows; asymptotic as rows
        become many; of what is only measured no confidence is claimed; "tables" takes them as the
        distributions themselves.
    clip : float or None
        c: both upper bounds count no row for more.  None: losses count as they are.
    n_rows : float
        Of the source that has the fewest; 0 where it was not told.
    n_parts : int
        How many combinations are averaged, each certified by the rows that it was learned without.
    covers : str
        What was judged, where that is not quite what is deployed.
    seen : tuple of str
        Sources whose rows here have taught the model: then no confidence is claimed.
    beside : tuple of Beside
        What chance, the plain average and each source alone lose where they are worst.
    sentence : str
        What is guaranteed, in one plain sentence; made from the numbers, never read.
    """

    z: FloatArray
    epsilon: float
    own_losses: FloatArray
    source_losses: FloatArray
    robust_loss: float
    regret: float
    gamma: float
    eta: float
    loss_bound: float
    bounds: tuple[Bound, ...]
    confidence: float | None
    method: str | None
    loss_upper: float | None
    regret_upper: float | None
    n_candidates: float
    assumptions: Assumptions
    loss: str
    loss_ground: str = ""
    regret_ground: str = ""
    clip: float | None = None
    n_rows: float = 0.0
    n_parts: int = 1
    covers: str = ""
    seen: tuple[str, ...] = ()
    beside: tuple[ReferenceLoss, ...] = ()
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        # Versions that did not tell grounds claimed more than some of them had earned.
        exact = self.method in EXACT_METHODS and self.n_candidates == 1
        old = "tables" if self.confidence is None else "exact" if exact else "measured"
        for name in ("loss_ground", "regret_ground"):
            object.__setattr__(self, name, getattr(self, name) or old)
        object.__setattr__(self, "sentence", self._sentence())

    def __str__(self) -> str:
        return self.sentence

    @property
    def vacuous(self) -> bool:
        """Whether chance, or a constant, is certain to do as well."""
        bound = self.loss_upper
        blind = [one.loss if bound is None else one.clipped for one in self._blind]
        return any((self.robust_loss if bound is None else bound) >= loss for loss in blind)

    @property
    def _blind(self) -> list[ReferenceLoss]:
        return [one for one in self.beside if one.name in BLIND]

    def _sentence(self) -> str:
        """Say in one plain sentence what is guaranteed; further ones only where they are needed."""
        p = self.z.size
        where = "On the source" if p == 1 else f"On any mixture of the {p} sources"
        halves = (f"the model loses {self._excess}", f"at most {self._loss}")
        first, second = self._how(self.regret_ground), self._how(self.loss_ground)
        if first == second:
            said = f"{where} {halves[0]}, and {halves[1]}, {first}"
        else:
            said = f"{where} {halves[0]}, {first}, and {halves[1]}, {second}"
        shared = self.n_candidates > 1 and self.n_parts == 1
        fitted = ", though z was fitted on the same points" if shared else ""
        return " ".join([f"{said}{fitted}.", *self._notes()])

    @property
    def _excess(self) -> str:
        regret = self.regret if self.regret_upper is None else self.regret_upper
        by = f"at most {regret:.4g} more" if regret >= 0 else f"at least {-regret:.4g} less"
        return f"{by} than each source's own model at home"

    @property
    def _loss(self) -> str:
        loss = self.robust_loss if self.loss_upper is None else self.loss_upper
        clipped = self.clip is not None and self.loss_upper is not None
        cut = f", no row counted above {self.clip:.4g}" if clipped else ""
        return f"{loss:.4g} in all ({unit_of(self.loss).head}{cut})"

    def _how(self, ground: str) -> str:
        """Name the ground that a half stands on."""
        if ground == "tables":
            return "taking the tables as the truth"
        if ground == "measured" or self.confidence is None:
            return "as measured, with no confidence claimed"
        # Weights of n equal rows need not multiply out to n in the last digit.
        few = ground == "asymptotic" and 0 < self.n_rows < FEW_ROWS - 0.5
        rough = f", though a source has {self.n_rows:.0f} rows" if few else ""
        return f"with {100 * self.confidence:g} % confidence ({ground}{rough})"

    def _notes(self) -> list[str]:
        """What a reader must know besides: what was judged, and whether it says anything."""
        notes = []
        if self.seen:
            notes.append(
                f"The rows of {', '.join(self.seen)} have taught the model: give rows that it has "
                "not seen."
            )
        if self.covers:
            notes.append(f"It is of {self.covers}; those in use are trained on all rows.")
        if self.vacuous:
            notes.append(f"That is vacuous: {self._blind[0].name} does as well.")
        return notes
