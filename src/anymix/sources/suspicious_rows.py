"""Detect held-out rows that a source's own model was trained on, copies, and seen rows.

No digest of training rows is sent with a source, as it would reveal membership.  But its owner may
have stated the model's loss on rows that it was not trained on.  If the loss here is far lower,
these are training rows.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from anymix._arrays import FloatArray, IntArray, as_bits, content_of, mixed
from anymix.core import Record, SeenRows, SeenRowsSketch
from anymix.sources.error_measures import measure_of, own_values
from anymix.sources.model_source import Source
from anymix.sources.tables import Tables

# By so many standard errors a loss must be below the stated one: once in 700 by chance.
FAR = 3.0
# The share of rows that are likelier elsewhere from which on a table seems to be of another site.
MIXED_UP, EXCHANGED = 0.9, 0.5


def far_below(losses: FloatArray, stated: float, n_stated: int | None = None) -> bool:
    """Whether the mean of losses (n,) is significantly below the stated mean of n_stated others.

    If both are of one kind, spreads grow as means do: that of these is scaled to the mean of all.
    Where the number of rows of a stated loss is unknown, they are taken to be as many as these.

    Examples
    --------
    >>> losses = np.random.default_rng(0).exponential(0.27, 200)
    >>> far_below(losses, 0.415, 200), far_below(losses, 0.3, 200), far_below(losses, 0.2, 200)
    (True, False, False)
    """
    n, mean = losses.size, float(losses.mean())
    if n < 2 or mean >= stated:
        return False
    others = n if n_stated is None else n_stated
    both = (n * mean + others * stated) / (n + others)
    spread = float(losses.std(ddof=1)) * both / mean if mean > 0 else both
    return stated - mean > FAR * spread * float(np.sqrt(1.0 / n + 1.0 / others))


def training_rows(tables: Tables, sources: Sequence[Source]) -> list[str]:
    """Return a sentence for each source whose rows look like training rows.

    Own losses are stated in the cross-entropy of labels, and in the squared error of numbers.
    """
    c, domain = tables.n_classes, tables.domain
    judge = measure_of(None, "squared" if c is None else "cross_entropy", c)
    if all(source.own_loss is None for source in sources):
        return []
    own, said = own_values(tables, judge), []
    for k, source in enumerate(sources):
        losses, stated = own[domain == k], source.own_loss
        if stated is None or not losses.size or not far_below(losses, stated, source.own_rows):
            continue
        said.append(
            f"the rows of {source.name} look like rows that its model was trained on: it loses "
            f"{losses.mean():.3g} on them, and {stated:.3g} on held-out rows, as its owner states "
            f"({judge.name}); use rows no model was trained on, or all results are too optimistic."
        )
    return said


def rows_of_others(tables: Tables, sources: Sequence[Source]) -> list[str]:
    """Name sources whose rows nearly all resemble those of another, whose model is better on them.

    Either alone can occur with correct rows: densities are not calibrated here, and models differ.
    Of
    two sources of which this is true both ways, half of the rows are enough.
    """
    outcomes, masses = tables.outcomes(), tables.log_masses
    losses = outcomes**2 if tables.n_classes is None else -np.log(np.maximum(outcomes, 1e-300))
    p = tables.n_sources
    # The share of rows of k that are likelier at j, and whether the model of j is better there.
    shares, better = np.zeros((p, p)), np.zeros((p, p), dtype=bool)
    for k in np.unique(tables.domain):
        home = tables.domain == k
        shares[k] = (masses[:, home] > masses[k, home]).mean(axis=1)
        mean = losses[:, home].mean(axis=1)
        better[k] = mean < mean[k]
    both = better & (shares > EXCHANGED)
    found = (better & (shares > MIXED_UP)) | (both & both.T)
    counts, said = np.bincount(tables.domain, minlength=p), []
    for k in np.flatnonzero(found.any(axis=1)).tolist():
        j = int(np.where(found[k], shares[k], -1.0).argmax())
        said.append(
            f"{round(shares[k, j] * counts[k])} of the {counts[k]} rows of {sources[k].name} look "
            f"more like those of {sources[j].name}, whose model does better on them, too; look "
            "whether two tables, or two names, were mixed up."
        )
    return said


# Nats by which a density must be above others to be told of: their sources weigh nothing then.
FAR_ABOVE = 230.0


def densities_far_above(tables: Tables, sources: Sequence[Source]) -> list[str]:
    """Name the sources whose density leaves the others no weight at any row."""
    masses = tables.log_masses
    outshone = np.flatnonzero((masses.max(axis=0) - masses > FAR_ABOVE).all(axis=1))
    if not outshone.size:
        return []
    j = int(np.bincount(masses.argmax(axis=0), minlength=len(sources)).argmax())
    below = float(np.median(masses[j] - masses[outshone]))
    others = ", ".join(sources[k].name for k in outshone.tolist())
    return [
        f"the density of {sources[j].name} is so far above that of {others} at every row "
        f"({below:.3g} nats in the median) that these have no weight without calibration; look "
        f"whether the density of {sources[j].name} is of these columns, and leave that source out "
        "if it is not."
    ]


def warn_of_training_rows(tables: Tables, sources: Sequence[Source], stacklevel: int = 2) -> None:
    """Warn of rows that look like training rows, or of another source; of densities far above."""
    checks = (training_rows, rows_of_others, densities_far_above)
    for sentence in (sentence for check in checks for sentence in check(tables, sources)):
        warnings.warn(sentence, UserWarning, stacklevel=stacklevel + 1)


# Numbers of one column are near if they differ by less than this part of its standard deviation.
NEAR_NUMBERS = 1e-3
# Rows are taken to be copies where fewer than this of another row's twins are there by chance.
CHANCE_TWINS = 0.01
# Where a smaller share of a source's rows differ there are few values: rows are alike by chance.
FEWEST_DISTINCT = 0.1
# Near rows are copies if there are more such pairs, and that many times as many as by chance.
FEWEST_PAIRS, MANY_TIMES = 2, 10
# Rows of numbers have more neighbours by chance from here to so many times as far than up to here.
AROUND = 4
# So many rows and columns tell which columns go with others.  A column of which less than the
# last part is left is equal where the others are.
RANKED_ROWS, RANKED_COLUMNS, LEAST_LEFT, SMOOTH = 2000, 64, 1e-9, 0.2
# Directions in which near rows are looked for: more tell more rows apart, and take longer.
DIRECTIONS = 6


def copies(X: Any, y: NDArray[Any], domain: IntArray) -> IntArray | None:
    """Number the draws of rows: copies of a row, even with nearly equal numbers, share one number.

    Copies are rows of one source that are equal in all columns and in y.  New rows of few values
    are alike as well, so copies count only where a row has fewer than `CHANCE_TWINS` by chance, and
    where few rows are almost alike: chance puts more of them further apart.  None: no copies.

    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> draws = copies(np.r_[X, X[:10] + 1e-9], np.zeros(50), np.zeros(50, dtype=np.intp))
    >>> np.unique(draws).size, copies(X, np.zeros(40), np.zeros(40, dtype=np.intp))
    (40, None)
    """
    numbers = as_numbers(X)
    content = content_of(X) if numbers is None else as_bits(numbers)
    target = np.unique(y, return_inverse=True)[1] if y.dtype.kind not in "fiub" else y
    both = np.column_stack([content, as_bits(np.asarray(target, dtype=float)[:, None])])
    _, first, draw = np.unique(mixed(np.column_stack([both, domain])), True, True)
    n_equal, home = domain.size - first.size, domain[first]
    if n_equal:
        values = _values(X, first) if numbers is None else np.nan_to_num(numbers[first], nan=1e300)
        alone = np.column_stack([values, target[first]])
        n_each, n_rows = np.bincount(home), np.bincount(domain)
        few = bool((n_each < FEWEST_DISTINCT * n_rows).any())
        if few or _chance_twins(alone, home, 0.0) > CHANCE_TWINS:
            return None
        if n_equal <= 2 * _one_apart(alone, home):
            return None
    if numbers is not None:
        alone = np.column_stack([numbers, target])[first]
        spread = _spread(alone)
        # Missing values are alike, and far from every number.
        scaled = np.nan_to_num(alone / np.where(spread > 0, spread, 1.0), nan=1e6)
        chance = _chance_twins(scaled, home, NEAR_NUMBERS)
        if chance <= CHANCE_TWINS:
            pairs, n_around = _near_pairs(np.column_stack([scaled, home]))
            due = FEWEST_PAIRS + MANY_TIMES * chance * first.size / 2
            if len(pairs) > max(due, 2 * n_around):
                ones = np.ones(len(pairs))
                links = coo_array((ones, pairs.T), shape=(first.size, first.size))
                draw = connected_components(links, directed=False)[1][draw]
            elif n_equal <= 2 * (len(pairs) + n_around):
                return None
    return None if draw.max() + 1 == domain.size else np.asarray(draw, dtype=np.intp)


def _spread(numbers: FloatArray) -> FloatArray:
    """The standard deviation of each column (d,), 0 where it is empty."""
    empty = np.isnan(numbers).all(axis=0)
    return np.asarray(np.nanstd(np.where(empty, 0.0, numbers), axis=0))


def as_numbers(X: Any) -> FloatArray | None:
    """The rows as numbers (n, d), NaN where missing; None if they are not numbers."""
    if hasattr(X, "tocsr") or not (hasattr(X, "columns") or isinstance(X, np.ndarray)):
        return None
    try:
        return np.asarray(X, dtype=float).reshape(len(X), -1)
    except (TypeError, ValueError):
        return None


def _values(X: Any, chosen: IntArray) -> FloatArray:
    """Numbers (n, q) for the cells of rows, or for the words of texts, by their place."""
    if hasattr(X, "tocsr"):
        return content_of(X)[chosen].astype(float)
    rows = list(X.itertuples(index=False, name=None)) if hasattr(X, "itertuples") else list(X)
    cells = []
    for i in chosen.tolist():
        row = rows[i].tolist() if isinstance(rows[i], np.ndarray) else rows[i]
        row = row.split() if isinstance(row, str) else row
        row = row if isinstance(row, (list, tuple)) else [row]
        cells.append([*map(repr, row[:RANKED_COLUMNS]), repr(row[RANKED_COLUMNS:])])
    rng, columns = np.random.default_rng(0), zip_longest(*cells, fillvalue="")
    codes = [np.unique(np.array(column), return_inverse=True)[1] for column in columns]
    return np.column_stack([rng.random(int(code.max()) + 1)[code] for code in codes])


def _one_apart(rows: FloatArray, home: IntArray) -> int:
    """How many rows differ from another one of their source in one column alone, y being the last.

    Chance makes more of these than equal rows.  Rows that differ in y alone do not look like it.
    """
    digests = [mixed(as_bits(column[:, None]), salt=j) for j, column in enumerate(rows.T)]
    with np.errstate(over="ignore"):
        total = np.sum(digests, axis=0, dtype=np.uint64) + mixed(home[:, None].astype(np.uint64))
        return sum(len(rows) - np.unique(total - one).size for one in digests[:-1])


def _chance_twins(rows: FloatArray, home: IntArray, near: float) -> float:
    """The largest expected number of chance twins per row of a source."""
    return max(_chance_within(rows[home == k], near) for k in np.unique(home))


def _chance_within(rows: FloatArray, near: float) -> float:
    """n Π_j P_j over rows that all differ, P_j the share of pairs that are alike in column j.

    Columns that go with others tell fewer rows apart: P_j / √(1 − R_j²), as of normal numbers, with
    R_j² the share of the ranks' variance that the columns before explain together as a linear
    function, or one of them as any smooth one.  To leave columns out errs upwards.
    """
    n, alike = len(rows), np.ones(rows.shape[1])
    for j, column in enumerate(rows.T):
        values = np.sort(column.astype(float))
        shares = [_share_within(values, near)]
        if near == 0:
            # Where rows differ, one column may hold no value twice; then its next values tell.
            steps = np.diff(values)
            step = 1.5 * steps[steps > 0].min(initial=np.inf)
            if np.isfinite(step):
                # One pair is the nearest in any case.
                one = 2.0 / max(n * (n - 1), 1)
                shares.append((_share_within(values, step) - shares[0] - one) / 2)
        alike[j] = max(shares)
    some = np.argsort(alike, kind="stable")[: min(RANKED_COLUMNS, n)]
    ranks = rankdata(rows[:RANKED_ROWS, some], axis=0)
    ranks -= ranks.mean(axis=0)
    size = np.sqrt((ranks**2).sum(axis=0))
    ranks /= np.where(size > 0, size, 1.0)
    left = np.abs(np.diag(np.linalg.qr(ranks, mode="r")))
    for j, order in enumerate(np.argsort(ranks, axis=0, kind="stable").T):
        steps = np.sqrt((np.diff(ranks[order, j + 1 :], axis=0) ** 2).sum(axis=0) / 2)
        left[j + 1 :] = np.minimum(left[j + 1 :], steps[: left[j + 1 :].size])
    if near == 0:
        left[left < SMOOTH] = 0.0
    return n * float(np.minimum(alike[some] / np.maximum(left, LEAST_LEFT), 1.0).prod())


def _share_within(values: FloatArray, near: float) -> float:
    """The share of pairs of sorted values that differ by `near` at most."""
    n = values.size
    to = np.searchsorted(values, values + near, side="right")
    return float((to - np.arange(n) - 1).sum()) / max(n * (n - 1) / 2, 1)


def _near_pairs(rows: FloatArray) -> tuple[IntArray, int]:
    """Pairs of rows (pairs, 2) that are near in every column; how many are within `AROUND` times.

    Then they are near in every direction of which the coefficients' sizes have the sum 1.
    """
    turned = np.random.default_rng(0).normal(size=(rows.shape[1], min(DIRECTIONS, rows.shape[1])))
    tree = cKDTree(rows @ (turned / np.abs(turned).sum(axis=0)))
    pairs = tree.query_pairs(AROUND * NEAR_NUMBERS, p=np.inf, output_type="ndarray")
    apart = np.abs(rows[pairs[:, 0]] - rows[pairs[:, 1]]).max(axis=1)
    near = apart <= NEAR_NUMBERS
    around = int((apart <= AROUND * NEAR_NUMBERS).sum() - near.sum())
    return np.asarray(pairs[near], dtype=np.intp), around


def joined_groups(groups: IntArray, draws: IntArray | None) -> IntArray:
    """Join groups that have copies of one row.

    >>> joined_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    array([0, 0, 0, 1])
    """
    if draws is None:
        return groups
    n = int(groups.max()) + 1
    links = coo_array(
        (np.ones(groups.size), (groups, n + draws)), shape=(n + int(draws.max()) + 1,) * 2
    )
    return np.unique(connected_components(links, directed=False)[1][groups], return_inverse=True)[1]


# The step of a grid on which rows are known again, as a part of a column's standard deviation.
GRID = 0.01
# Digits after the point: more than chance can match, fewer than two machines differ in.
DIGITS = 6
# The share of all possible rows that seem known in a folder.
KNOWN_BY_CHANCE = 0.125


@dataclass(frozen=True, eq=False)
class Seen(Record):
    """Digests of the rows, if available, and of the sources' predictions for them.

    Models that are trained on folds predict differently once they are trained on all rows, so rows
    are recognised by their values; if only tables are sent, by the predictions.  Rows of numbers
    are also known on two coarse grids, by steps (d,): rounding moves few of them on both.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    >>> tables = Tables(np.zeros((2, 40)), rng.normal(size=(2, 40))).labelled(y, np.arange(40) % 2)
    >>> Seen.of(tables, X).sources(tables.taken(np.arange(0, 40, 2)))
    [0]
    """

    rows: SeenRows | None
    said: SeenRows
    grids: tuple[SeenRows, ...] = ()
    steps: FloatArray | None = None

    @classmethod
    def of(cls, tables: Tables, X: Any = None) -> Self:
        """Digest rows by the sources' predictions and, if available, by their values."""
        domain = tables.domain
        steps: FloatArray | None = None
        rows = None if X is None else SeenRows.of(content_of(X), domain)
        numbers = None if X is None else as_numbers(X)
        if numbers is not None:
            spread = _spread(numbers)
            powers = np.round(np.log2(np.where(spread > 0, spread, 1.0)))
            steps = np.asarray(GRID * 2.0**powers, dtype=float)
        grids = tuple(SeenRows.of(some, domain) for some in _on_grids(numbers, steps))
        return cls(rows, SeenRows.of(_said(tables), domain), grids, steps)

    def faint(self) -> Self:
        """Return truncated digests for a folder, from which no row can be identified.

        About every eighth possible row seems known, though not one of all was there.  Rows of
        numbers are known on both grids alone, which together leave as many.
        """
        alone = self.rows is not None and not self.grids
        rows = self.rows.faint(KNOWN_BY_CHANCE) if self.rows is not None and alone else None
        grids = tuple(grid.faint(KNOWN_BY_CHANCE**0.5) for grid in self.grids)
        said = self.said.faint(KNOWN_BY_CHANCE)
        return dataclasses.replace(self, rows=rows, said=said, grids=grids)

    @property
    def knows_rows(self) -> bool:
        """Whether rows are recognised by their values, not only by predictions."""
        return self.rows is not None or bool(self.grids)

    def sources(self, tables: Tables, X: Any = None) -> list[int]:
        """Return the sources, by number, whose rows here have been seen.

        Many new rows may be predicted alike, so predictions tell only where rows are not at hand.
        """
        known = self._contents(X) or [(self.said, _said(tables))]
        return [
            k
            for k in np.unique(tables.domain).tolist()
            if _any_seen([(one, content[tables.rows_of(k)]) for one, content in known], k)
        ]

    def have_seen(self, X: Any, source: int | None = None) -> bool:
        """Whether rows (of one source, if given) were seen before, by their values."""
        return _any_seen(self._contents(X), source)

    def _contents(self, X: Any) -> list[tuple[SeenRows, NDArray[Any]]]:
        """What is known of rows by themselves, with the same of these rows."""
        if X is None:
            return []
        steps, numbers = self.steps, as_numbers(X)
        alike = steps is not None and numbers is not None and numbers.shape[1] == steps.size
        grids = zip(self.grids, _on_grids(numbers if alike else None, steps), strict=False)
        return [*([] if self.rows is None else [(self.rows, content_of(X))]), *grids]


def _any_seen(known: list[tuple[SeenRows, NDArray[Any]]], source: int | None) -> bool:
    """Whether rows were seen in one way or, where digests are faint, in two ways at once."""
    if any(one.have_seen(content, source) for one, content in known):
        return True
    faint = [pair for pair in known if pair[0].bits < 64][-2:]
    if len(faint) < 2:
        return False
    both = np.all([one.knows(content) for one, content in faint], axis=0)
    blur = float(np.prod([one.blur for one, _ in faint]))
    return faint[0][0].beyond_chance(both, source, blur)


def _on_grids(numbers: FloatArray | None, steps: FloatArray | None) -> list[FloatArray]:
    """Rows on two grids, of which one is half a step from the other."""
    if numbers is None or steps is None:
        return []
    return [np.ascontiguousarray(np.floor(numbers / steps + half)) for half in (0.0, 0.5)]


def add_to_sketch(sketch: SeenRowsSketch, tables: Tables) -> None:
    """Add rows that come in chunks, by the sources' predictions for them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tables = Tables(np.zeros((2, 40)), rng.normal(size=(2, 40))).labelled(np.ones(40), 0)
    >>> sketch = SeenRowsSketch()
    >>> for rows in (np.arange(30), np.arange(30, 40)):
    ...     add_to_sketch(sketch, tables.taken(rows))
    >>> Seen(None, sketch.seen_rows()).sources(tables.taken(np.arange(20, 40)))
    [0]
    """
    sketch.add(_said(tables), tables.domain)


def _said(tables: Tables) -> FloatArray:
    """What is said at the label, or by how much it is wrong, (m, p)."""
    return np.ascontiguousarray(np.round(tables.outcomes().T, DIGITS))
