"""Consult on tables: each source learns, on its own rows, to pool the predictions of all models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from anymix._arrays import FloatArray, IntArray
from anymix.core import (
    GENERALIST,
    N_CANDIDATES,
    OWN,
    Consulting,
    Loss,
    Moments,
    Pool,
    PoolCandidates,
    PoolRows,
    Record,
    choose_candidates,
    get_loss,
    losses_at,
)
from anymix.sources.queries import form_of
from anymix.sources.tables import Tables


@dataclass(frozen=True, eq=False)
class ConsultingGain(Record):
    """The gain of consulting for each source, cross-fitted on its own rows.

    own_losses, gains and errors are (p,): the loss of the own model, how much less a pool of all
    loses, and the standard error of that; 0 where the own model was kept.
    """

    own_losses: FloatArray
    gains: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, moments: FloatArray) -> Self:
        """Compute it from moments (2, p, 7) of the own losses and of the gains on own rows."""
        own, gains = ([Moments(*row) for row in rows] for rows in moments.tolist())
        told = [(a.mean, b.mean, b.standard_error) for a, b in zip(own, gains, strict=True)]
        return cls(*np.array(told).T)

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Describe which sources consult other models, and the gains.

        Examples
        --------
        >>> gain = ConsultingGain(np.array([0.5, 0.2]), np.array([0.1, 0.0]), np.array([0.02, 0.0]))
        >>> gain.sentences(["north", "south"])
        ['north consults other models: loss 0.5 to 0.4 at home.', 'south keeps its own model.']
        """
        found = []
        for name, loss, gain in zip(names, self.own_losses, self.gains, strict=True):
            said = f"{name} consults other models: loss {loss:.3g} to {loss - gain:.3g} at home."
            found.append(said if gain != 0 else f"{name} keeps its own model.")
        return found


@dataclass(frozen=True)
class Consulted:
    """The consulting, the tables after it (cross-fitted), and the gains.

    `consulting` is None where no source consults another, and the tables are then as they were.
    """

    consulting: Consulting | None
    tables: Tables
    advice: ConsultingGain | None = None


def consult(tables: Tables, loss: str | Loss, set_aside: Sequence[int] = ()) -> Consulted:
    """Let each source learn a_k and b_k on its own rows, for all models; see `Consulting`.

    Source k's predictions for its own rows come from pools that were learned without them; the
    pools of other sources have not seen rows of k.  A source that is set aside keeps its own model.
    The folds do not depend on the order of the rows: the same tables give the same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, domain = rng.normal(size=4000), np.repeat([0, 1], 2000)
    >>> said = y + rng.normal(size=(2, 4000))
    >>> tables = Tables(np.zeros((2, 4000)), said).labelled(y, domain)
    >>> consult(tables, "squared").consulting.weights.round(1)
    array([[0.3, 0.3],
           [0.3, 0.3]])
    """
    known = get_loss(loss)
    candidates = learn_candidates(tables, known, set_aside)
    chosen = choose_candidates(*gains_of(candidates, tables))
    pools = learn_pools(tables, known, candidates, chosen)
    if not pools:
        return Consulted(None, replace(tables, generalist=None))
    consulting = consulting_of(tables, pools, known)
    own = tables.by_source(losses_at(tables.own_predictions(), np.asarray(tables.targets), known))
    gains, errors = np.zeros((2, tables.n_sources))
    for k, pool in pools.items():
        gains[k], errors[k] = pool.gain, pool.error
    advice = ConsultingGain(own, gains, errors)
    return Consulted(consulting, crossed(tables, consulting, pools), advice)


def learn_candidates(
    tables: Tables, loss: Loss, set_aside: Sequence[int] = ()
) -> dict[int, PoolCandidates]:
    """Learn the pool candidates of each source that has rows here and is not set aside.

    Labels need all probabilities, and errors a loss of errors.
    """
    labels = loss.takes != "number"
    whole = tables.predictions.ndim == 3 and tables.predictions.shape[2] > 1
    if not (whole if labels else not tables.at_label or loss.of_error):
        return {}
    found: dict[int, PoolCandidates] = {}
    for k in sorted({int(k) for k in np.unique(tables.domain)} - set(set_aside)):
        rows = rows_at_home(tables, k, loss)
        sizes = np.abs(rows.predictions[rows.predictions != 0])
        # Errors that a site rounds to powers of two: a model whose errors are all rounded to one
        # number would seem to be perfect but for an offset.
        if not labels and tables.at_label and (np.frexp(sizes)[0] == 0.5).all():
            continue
        candidates = rows.candidates()
        found |= {} if candidates is None else {k: candidates}
    return found


def rows_at_home(tables: Tables, k: int, loss: Loss) -> PoolRows:
    """Return the rows that source k learns its pools from."""
    part = tables.taken(tables.rows_of(k))
    weight = part.weights * part.n_points / part.weights.sum()
    given = part.all_predictions, np.asarray(part.targets), k, loss, weight
    return PoolRows(*given, tables.at_label, part.groups, part.generalist is not None)


def gains_of(
    candidates: dict[int, PoolCandidates], tables: Tables
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gains of the candidates (p, C), their errors, and numbers of rows (p,)."""
    p = tables.n_sources
    shape = p, N_CANDIDATES if tables.generalist is not None else GENERALIST
    gains, errors, n_rows = np.zeros(shape), np.zeros(shape), np.zeros(p)
    for k, one in candidates.items():
        gains[k], errors[k], n_rows[k] = one.doubted, one.errors, one.n_rows
    return gains, errors, n_rows


def learn_pools(
    tables: Tables, loss: Loss, candidates: dict[int, PoolCandidates], chosen: IntArray
) -> dict[int, Pool]:
    """Return the chosen pool of each source that does not keep its own model."""
    return {
        k: rows_at_home(tables, k, loss).pool(found, int(chosen[k]))
        for k, found in candidates.items()
        if chosen[k] != OWN
    }


def crossed(tables: Tables, consulting: Consulting, pools: dict[int, Pool]) -> Tables:
    """Apply the pools; on each source's own rows, those that were learned without them."""
    found, domain = tables.heard(consulting), tables.domain
    predictions = found.predictions.copy()
    for k, pool in pools.items():
        predictions[k, domain == k] = pool.crossed
    return replace(found, predictions=predictions)


def consulting_of(tables: Tables, pools: dict[int, Pool], loss: Loss) -> Consulting:
    """Combine the pools, and limit how far they move numbers to the range on own rows."""
    form, p, models = form_of(loss), tables.n_sources, tables.all_predictions
    offset = np.zeros((p, models.shape[-1]) if form == "labels" else p)
    choice = tuple(pools[k].choice if k in pools else OWN for k in range(p))
    found = Consulting(np.eye(p, len(models)), offset, np.zeros(p), form, choice)
    for k, pool in pools.items():
        found.weights[k], found.offset[k] = pool.weights, pool.offset
        if form != "labels":
            h = models[:, tables.domain == k]
            h = np.log(h) if form == "positive" else h
            moved = pool.weights @ h + pool.offset - h[found.centres[k]]
            found.reach[k] = np.abs(moved).max()
    return found
