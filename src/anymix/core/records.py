"""Frozen records of solvers and certificates, written as JSON and read back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from types import UnionType
from typing import Any, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from anymix._arrays import FloatArray, Twins, digest, mixed, more_than_chance
from anymix._cards import record_card

Objective = Literal["regret", "robust", "gamma"]
# Digests of rows that are kept.
MOST_DIGESTS = 4096


class SolverWarning(UserWarning):
    """The result is usable, but does not reach the requested tolerance."""


class Step(NamedTuple):
    """One evaluation of a solver: passes over the data so far, γ and max_k (L_k − b_k)."""

    n_evaluations: float
    gamma: float
    worst: float


def plain(value: Any, exact: bool = False) -> Any:
    """Convert records and arrays to JSON types; NaN and infinity become None or their names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), exact) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item, exact) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain(item, exact) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item, exact) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item(), exact)
    if isinstance(value, float) and not np.isfinite(value):
        return str(value) if exact else None
    return value


def restored(kind: Any, value: Any) -> Any:
    """Convert JSON types back to the annotated type; the inverse of `plain`."""
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(origin, "__value__"):  # an alias, as which newer numpy declares `NDArray`
        origin = get_origin(origin.__value__)
    if origin in (Union, UnionType):
        options = [option for option in inner if option is not type(None)]
        if value is None:
            return None
        return restored(options[0], value) if len(options) == 1 else _floats(value)
    if origin is np.ndarray:
        return np.array(_floats(_listed(value)), dtype=float)
    if origin is tuple:
        items = _listed(value)
        # Thousands of digests at once are quicker than one by one.
        words = inner[0] is str and {*map(type, items)} <= {str}
        return tuple(items if words else (restored(inner[0], item) for item in items))
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, tuple)):
        return kind(**_fields(kind, value))
    if kind is float:
        if isinstance(value, list | dict):
            raise ValueError(f"{value!r:.60} is not a number, which is expected.")
        return _floats(value)
    if kind in (int, str, bool) and type(value) is not kind:
        raise ValueError(f"{value!r:.60} stands where a value of type {kind.__name__} is expected.")
    if origin is Literal and value not in inner:
        raise ValueError(f"{value!r:.60} is not one of {inner}, which are expected.")
    return value


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | np.ndarray):
        raise ValueError(f"{value!r:.60} stands where a list is expected.")
    return list(value)


def _floats(value: Any) -> Any:
    """Turn numbers, the words that `plain` writes for what is not finite, and lists of them."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_floats(item) for item in value]
    if value is None or value in ("nan", "inf", "-inf"):
        return np.nan if value is None else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{value!r:.60} is not a number, which is expected.")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{value!r:.60} is too large for a number.") from error


def _fields(kind: type, value: Any) -> dict[str, Any]:
    """Check that the names are those of the record, and restore each of them."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name[0] != "_"}
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r:.60} is not a {kind.__name__}, which is expected.")
    unknown = sorted(set(value) - set(hints))
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    made = {field.name for field in fields if not field.init}
    optional = {f.name for f in fields if (f.default, f.default_factory) != (MISSING, MISSING)}
    missing = sorted(set(hints) - set(value) - optional - made)
    if unknown or missing:
        what = f"has the unknown entry {unknown[0]!r:.60}" if unknown else f"lacks {missing[0]!r}"
        raise ValueError(f"a {kind.__name__} {what}.")
    kept = {name: item for name, item in value.items() if name not in made}
    return {name: restored(hints[name], item) for name, item in kept.items()}


# What is said of a record that was read from a folder and not recomputed from tables.
CLAIMED = "claimed by the folder, not verified"


# Equality of arrays is not one truth value: without eq=False, == and hash() would raise.
@dataclass(frozen=True, eq=False)
class Record:
    """A frozen record that can be written as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain numbers, strings, lists and dictionaries."""
        return dict(plain(self))

    def to_json(self) -> str:
        """Return the record as one JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def _repr_html_(self) -> str:
        return record_card(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that `to_dict` wrote; a ValueError says what is wrong with it."""
        try:
            record = cls(**_fields(cls, data))
        except TypeError as error:
            raise ValueError(f"a {cls.__name__} has an entry of the wrong kind.") from error
        record.check()
        return record

    def check(self) -> None:
        """Raise a ValueError, in one sentence, for numbers that no fit can produce."""


@dataclass(frozen=True, eq=False)
class SeenRows(Record):
    """Salted digests of rows: they recognise a row that was among them.

    Attributes
    ----------
    salt : str
    n_rows, n_different : int
        How many rows there were, and how many different ones.
    limit : int
        Rows with numbers up to it have a digest here: only a part of them if there are very many.
    digests : tuple of str
    twins : tuple of Twins
        How many of all rows, and then of those of each group, have a twin among all: as many new
        rows have one by chance.  Older records do not tell.
    bits : int
        How many bits of a digest were kept; see `faint`.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> known = SeenRows.of(rows)
    >>> known.have_seen(rows[::-1]), known.have_seen(rows + 1.0)
    (True, False)
    """

    salt: str
    n_rows: int
    n_different: int
    limit: int
    digests: tuple[str, ...]
    twins: tuple[Twins, ...] = ()
    bits: int = 64

    @classmethod
    def of(cls, rows: NDArray[Any], group: NDArray[np.intp] | None = None) -> SeenRows:
        """Remember rows (n, q) of numbers, each of a group (n,); the salt comes from them all."""
        sketch = SeenRowsSketch(most=None)
        sketch.add(rows, group)
        return sketch.seen_rows()

    def have_seen(self, rows: NDArray[Any], group: int | None = None) -> bool:
        """Whether more rows (of one group, if given) were seen before than chance explains."""
        looked = self._looked(rows)
        return self.beyond_chance(self.knows(rows)[looked], group, self.blur)

    def _looked(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows would have a digest here."""
        return np.asarray(mixed(np.ascontiguousarray(rows), int(self.salt, 16)) <= self.limit)

    @property
    def blur(self) -> float:
        """The false positive rate: the share of all possible rows that seem known."""
        return len(self.digests) / 2.0**self.bits

    def knows(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows (n, q) have a known digest."""
        known, looked = {*self.digests}, self._looked(rows)
        for i in np.flatnonzero(looked):
            looked[i] = _cut(digest(rows[i], self.salt), self.bits) in known
        return looked

    def beyond_chance(self, known: NDArray[np.bool_], group: int | None, blur: float) -> bool:
        """Whether more rows seem known than chance explains; `blur` of new rows seem so."""
        if not known.size:
            return False
        # What is known of a group, else of all rows; else the most that the repeats can mean.
        repeats = self.n_rows - self.n_different
        every = self.twins or (Twins(self.n_rows, min(2 * repeats, self.n_rows)),)
        own = every[0 if group is None else group + 1 :][:1]
        twins = own[0] if own and own[0].n_rows else every[0]
        return more_than_chance(float(known.mean()), known.size, twins, blur)

    def faint(self, share: float) -> SeenRows:
        """Truncate the digests so that about this share of all possible rows seems known.

        A single row that seems known may be new.  Of many rows that were there, more seem known
        than chance explains, which `have_seen` detects.

        >>> rows = np.random.default_rng(0).normal(size=(1000, 2))
        >>> known = SeenRows.of(rows[:100]).faint(0.25)
        >>> bool(0.1 < known.knows(rows[100:]).mean() < 0.3)
        True
        >>> known.have_seen(rows[:50]), known.have_seen(rows[100:150])
        (True, False)
        """
        bits = min(self.bits, round(float(np.log2(max(len(self.digests), 1) / share))))
        digests = tuple(sorted({_cut(one, bits) for one in self.digests}))
        return dataclasses.replace(self, digests=digests, bits=bits)


def _cut(word: str, bits: int) -> str:
    """Keep the first bits of a digest of 16 hexadecimal digits."""
    return f"{int(word, 16) >> (64 - bits) << (64 - bits):016x}"


class SeenRowsSketch:
    """Collect the `SeenRows` of rows that come in chunks.

    It keeps `most` different rows (None: all).  If there are more, their number is estimated: if
    the largest of k random shares is u, they come from about (k − 1)/u.
    """

    def __init__(self, salt: str = "", most: int | None = MOST_DIGESTS) -> None:
        self.salt, self.most, self.n_rows, self._grouped = salt, most, 0, False
        self._numbers: Any = None
        self._rows: Any = None
        # How often each row that is kept occurs in each group, (kept, groups): all of its kind are
        # counted, as what is kept only ever loses its largest numbers.
        self._counts: Any = None

    def add(self, rows: NDArray[Any], group: NDArray[np.intp] | None = None) -> None:
        """Remember rows (n, q) of numbers, each of a group (n,), such as its source.

        Without a salt it comes from the first ones.
        """
        if not len(rows):
            return
        self.n_rows += len(rows)
        self.salt = self.salt or f"{int(np.bitwise_xor.reduce(np.unique(mixed(rows)))):016x}"
        self._grouped = group is not None
        numbers = mixed(rows, int(self.salt, 16))
        if self._numbers is not None and self._numbers.size == self.most:
            # Most rows of later chunks are far above what is kept, and need not be sorted.
            few = numbers <= self._numbers[-1]
            numbers, rows, group = numbers[few], rows[few], None if group is None else group[few]
        kept, first, where = np.unique(numbers, return_index=True, return_inverse=True)
        column = np.zeros(len(where), dtype=np.intp) if group is None else np.asarray(group)
        counts = np.zeros((kept.size, int(column.max(initial=0)) + 1), dtype=np.intp)
        np.add.at(counts, (where, column), 1)
        self._keep(kept, rows[first], counts)

    def _keep(self, numbers: NDArray[Any], rows: NDArray[Any], counts: NDArray[np.intp]) -> None:
        """Add different rows, with their counts in each group, to what is kept."""
        if self._numbers is not None:
            wide = max(counts.shape[1], self._counts.shape[1])
            both = [np.pad(c, ((0, 0), (0, wide - c.shape[1]))) for c in (self._counts, counts)]
            numbers = np.concatenate([self._numbers, numbers])
            rows, counts = np.concatenate([self._rows, rows]), np.concatenate(both)
        kept, first, where = np.unique(numbers, return_index=True, return_inverse=True)
        total = np.zeros((kept.size, counts.shape[1]), dtype=np.intp)
        np.add.at(total, where, counts)
        self._numbers, self._rows = kept[: self.most], rows[first[: self.most]]
        self._counts = total[: self.most]

    def join(self, other: SeenRowsSketch) -> None:
        """Add the rows of another sketch with the same salt."""
        if other._rows is not None:
            self._keep(other._numbers, other._rows, other._counts)
            self.n_rows += other.n_rows
            self._grouped |= other._grouped

    def seen_rows(self) -> SeenRows:
        """Return the digests of all rows so far."""
        if self._numbers is None:
            raise ValueError("there are no rows to remember.")
        n_different = self._numbers.size
        limit = int(self._numbers[min(MOST_DIGESTS, n_different) - 1])
        if n_different == self.most:
            n_different = min(self.n_rows, round((n_different - 1) * 2.0**64 / max(limit, 1)))
        digests = tuple(sorted(digest(row, self.salt) for row in self._rows[:MOST_DIGESTS]))
        twice = self._counts[self._counts.sum(axis=1) > 1]
        twins = [Twins(int(self._counts.sum()), int(twice.sum()))]
        if self._grouped:
            sums = self._counts.sum(axis=0).tolist(), twice.sum(axis=0).tolist()
            twins += map(Twins, *sums)
        return SeenRows(self.salt, self.n_rows, int(n_different), limit, digests, tuple(twins))


@dataclass(frozen=True, eq=False)
class Solution(Record):
    """z and its losses, all recomputed from the problem, none from a decomposition.

    Attributes
    ----------
    z : array (p,)
        The answer, on the simplex.
    objective, method : str
        The objective and the solver.
    gamma, robust_loss, regret : float
        γ(z), max_k L_k(z) and max_k (L_k(z) − ε_k).
    source_losses, own_losses : array (p,)
        L_k(z) and ε_k.
    status : "converged", "stationary", "stalled", "out of evaluations" or "budget"
        "converged" has a proof: γ ≤ tol for "gamma".  "stationary": no small step helps; for
        "regret" and "robust" the best of several such z, which need not be the best of all.
        "budget": `solve` has spent all that it was given, and this is the best z it met.
    optimality : float
        The remaining error, relative to the losses: γ, or the predicted further decrease.
    n_evaluations, n_hessians : float
        Evaluations of the losses (with or without Jacobian) and of a Hessian, in passes over all
        points; a pass over a part of them counts as that part.
    n_rounds : int
        The number of rounds of evaluations, of one z or many: the cost where points are remote.
    shrinkage : float
        ρ, the amount of the penalty ρ KL(prior ‖ z).
    trace : tuple of Step
        One entry for each round: the best z so far.
    seen : Fingerprints or None
        Which points it was found on, for those who certify it.
    """

    z: FloatArray
    objective: str
    method: str
    gamma: float
    robust_loss: float
    regret: float
    source_losses: FloatArray
    own_losses: FloatArray
    status: str
    optimality: float
    n_evaluations: float
    n_hessians: float = 0.0
    shrinkage: float = 0.0
    # One entry a round, and thousands of digests: for those who ask, and not for `print`.
    trace: tuple[Step, ...] = dataclasses.field(default=(), repr=False)
    seen: SeenRows | None = dataclasses.field(default=None, repr=False)
    n_rounds: int = 0
