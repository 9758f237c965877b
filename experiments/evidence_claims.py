"""What the records of the evidence say: paired differences between methods, and who is below whom.

A difference is the mean over splits.  Its standard error is the larger of two: the mean over splits
of the standard error that the test rows of a split give, and the deviation of the splits'
differences over √(number of splits).  The first knows nothing of other training rows, the second
little, as splits share rows; neither is divided further.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

from experiments.claims import Paired
from experiments.runner import Result


def by_split(results: Sequence[Result], table: str, method: str, target: str) -> dict[int, float]:
    """Return the values of a cell by seed; none if the method has none there."""
    return {
        r.seed: r.value for r in results if (r.table, r.method, r.target) == (table, method, target)
    }


def sets(results: Sequence[Result]) -> list[str]:
    """Return the names of the sets, in the order of the records."""
    return list(dict.fromkeys(r.target for r in results if r.table == "Mean loss"))


def domains(results: Sequence[Result], name: str) -> list[str]:
    """Return the domains of a set, in the order of the records."""
    found = (r.target for r in results if r.table == "Loss in a domain")
    return list(dict.fromkeys(t.split(": ", 1)[1] for t in found if t.startswith(f"{name}: ")))


def shown(results: Sequence[Result], name: str) -> dict[str, bool]:
    """Return the methods that have a loss on a set, and whether each is privileged."""
    return {r.method: r.privileged for r in results if (r.table, r.target) == ("Mean loss", name)}


def paired(results: Sequence[Result], name: str, method: str, other: str) -> Paired:
    """Compare the mean losses of a method and of "own" or "joint" on a set.

    Examples
    --------
    >>> def cell(table, method, seed, value):
    ...     return Result("evidence", table, "clean", method, "heart", "loss", seed, value)
    >>> cells = [cell("Mean loss", "DW", s, 0.5 + 0.1 * s) for s in (0, 1)]
    >>> cells += [cell("Mean loss", "joint", s, 0.6) for s in (0, 1)]
    >>> cells += [cell("Standard error against joint", "DW", s, 0.02) for s in (0, 1)]
    >>> difference, error = paired(cells, "heart", "DW", "joint")
    >>> round(difference, 3), round(error, 3)
    (-0.05, 0.05)
    """
    table, errors = "Mean loss", f"Standard error against {other}"
    ours, theirs = (by_split(results, table, m, name) for m in (method, other))
    return _paired(ours, theirs, by_split(results, errors, method, name))


def regret(results: Sequence[Result], name: str, method: str) -> tuple[str, Paired]:
    """Return the domain where a method is furthest above that domain's own model, and by what."""
    found = {}
    for domain in domains(results, name):
        target = f"{name}: {domain}"
        ours, own = (by_split(results, "Loss in a domain", m, target) for m in (method, "own"))
        errors = by_split(results, "Standard error against own in a domain", method, target)
        found[domain] = _paired(ours, own, errors)
    worst = max(found, key=lambda domain: found[domain].difference)
    return worst, found[worst]


def _paired(ours: dict[int, float], theirs: dict[int, float], errors: dict[int, float]) -> Paired:
    if not ours or ours.keys() != theirs.keys() or ours.keys() != errors.keys():
        raise ValueError("There are no records of both methods on the same splits; run the study.")
    gaps = [ours[seed] - theirs[seed] for seed in ours]
    among = stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
    return Paired(mean(gaps), max(mean(errors.values()), among))
