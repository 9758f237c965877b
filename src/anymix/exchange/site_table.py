"""The site file: a small table that a site sends instead of its rows, from which z is learned.

For each held-out row, in random order: which source it looks like, and how each source's predictor
does there.

    cross-entropy     outcome_k = h_k(x, ·), the probability of the label that occurred first, and
                      then those of the other classes, in an order drawn anew for each row
    squared loss      outcome_k = h_k(x) − y; since Σ_k w_k = 1, h_z − y = Σ_k w_k (h_k − y)

No order is needed to pool what several sources say, or to judge it, and none tells the label.
Features and labels are not in it, but exact numbers would let anyone who has the sources solve for
them.  What is written is therefore rounded to a grid that tells little of a row, and enough of all
rows together; docs/security.md says what is left to infer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from anymix._arrays import FloatArray, content_of, positions
from anymix.core import TASK_LOSSES
from anymix.exceptions import AuditError, InputError, MissingError, quoted
from anymix.exchange.home_table import HomeTable
from anymix.exchange.manifest import parse_json
from anymix.exchange.read import ReceivedSource, all_classes, check_known, judge_at
from anymix.exchange.rounding import round_outcomes
from anymix.exchange.source_names import is_name
from anymix.exchange.tensors import dump_arrays, load_arrays
from anymix.sources import (
    MOST_QUANTILES,
    Tables,
    coarse_quantiles,
    evaluate,
    histogram_of,
    is_histogram,
    log_reference,
    round_responsibilities,
)
from anymix.storage import read_file, replacing

FEWEST_ROWS = 2  # one row gives no standard error
MOST_SITES = 1000
HEADER_BYTES, HEADER_MARKS = 2**20, 10_000
# Sources give every class 1e-6 or more, and rounding a loss to a power of two can halve it twice.
LEAST_PROBABILITY = 1e-7
LARGEST_ERROR = 1e15  # its square is the largest loss that can be averaged
BOUNDS = {
    "cross_entropy": (LEAST_PROBABILITY, 1 + 1e-9),
    "squared": (-LARGEST_ERROR, LARGEST_ERROR),
}
LARGEST_LOG = 1e100
MOST_TOLD, SUM_TOLERANCE = 50, 1e-3  # of probabilities of all classes
FINGERPRINT = re.compile("[0-9a-f]{64}")
Head = tuple[str, str, tuple[str, ...], tuple[str, ...], int]
# Of a file, and of one whose own source was evaluated by fold models, which older versions refuse.
FRESH, CROSS_FITTED, MEANS = 1, 2, 3


def site_head(content: NDArray[Any], path: Path) -> Head:
    """Return site, loss, sources, fingerprints and schema of an untrusted header."""
    text = content.dtype == np.uint8 and content.ndim == 1 and content.size <= HEADER_BYTES
    head = parse_json(content.tobytes(), str(path), HEADER_MARKS) if text else None
    schema = head.get("schema") if isinstance(head, dict) else None
    if not isinstance(head, dict) or type(schema) is not int or not 0 < schema < 4:
        raise AuditError(path, "has no sound header")
    if head.get("loss") not in TASK_LOSSES.values():
        raise AuditError(path, f"has a header with the loss {quoted(head.get('loss'))}")
    names: Any = head.get("sources")
    prints: Any = head.get("fingerprints")
    for texts, sound in ((names, is_name), (prints, FINGERPRINT.fullmatch)):
        listed = isinstance(texts, list) and 0 < len(texts) <= MOST_SITES
        if not listed or not all(isinstance(one, str) and sound(one) for one in texts):
            raise AuditError(path, "has no sound header: its sources or fingerprints are none")
    if len(set(names)) < len(names) or len(prints) != len(names):
        raise AuditError(path, "has a header that does not name each source once")
    if head.get("site") not in names:
        raise AuditError(path, "is from a site that is not one of its sources")
    return head["site"], head["loss"], tuple(names), tuple(prints), schema


def check_site(arrays: dict[str, NDArray[Any]], p: int, loss: str, path: Path) -> None:
    """Refuse arrays of other shapes, and numbers that no honest site can have measured."""
    log_r, outcomes = arrays["log_responsibilities"], arrays["outcomes"]
    m = log_r.shape[-1] if log_r.ndim == 2 else 0
    total = arrays.get("log_total", np.zeros(m))
    if any(one.dtype != np.float64 for one in (log_r, outcomes, total)):
        raise AuditError(path, "has arrays that are not numbers")
    of_classes = loss == "cross_entropy" and outcomes.ndim == 3
    classes = outcomes.shape[2:] if of_classes and 1 < outcomes.shape[2] <= MOST_TOLD else ()
    if (log_r.shape, outcomes.shape, total.shape) != ((p, m), (p, m, *classes), (m,)):
        raise AuditError(path, "has arrays of wrong shapes")
    if m < FEWEST_ROWS:
        raise AuditError(path, f"has {m} row(s), where {FEWEST_ROWS} or more are needed")
    # NaN fails every comparison, so each line asks for what is right.
    if not (log_r.max() <= 1e-6 and np.abs(logsumexp(log_r, axis=0)).max() < 1e-6):
        raise AuditError(path, "has numbers that cannot be responsibilities or outcomes")
    if not (np.abs(total[total != -np.inf]) <= LARGEST_LOG).all():
        raise AuditError(path, "has a log_total that cannot be the logarithm of a density")
    _check_coarse(arrays, m, path)
    low, high = BOUNDS[loss]
    wrong = ~((outcomes >= low) & (outcomes <= high))
    if wrong.any():
        k, i = np.argwhere(wrong)[0, :2]
        found = f"the outcome {float(outcomes[wrong][0]):.3g} of source {k} at row {i}"
        raise AuditError(path, f"has {found}, where {low:g} to {high:g} are possible")
    if outcomes.ndim == 3 and np.abs(outcomes.sum(axis=2) - 1).max() > SUM_TOLERANCE:
        raise AuditError(path, "has probabilities of classes that do not sum to 1")


def _check_coarse(arrays: dict[str, NDArray[Any]], m: int, path: Path) -> None:
    """Refuse quantiles and histograms of m rows that no site can have made."""
    own, both = arrays.get("own_quantiles"), arrays.get("total_histogram")
    if (own is None) != (both is None):
        raise AuditError(path, "has quantiles without a histogram, or the reverse")
    if own is None or both is None:
        return
    sound = own.dtype == both.dtype == np.float64 and own.ndim == 1
    sound &= 1 < own.size <= min(m, MOST_QUANTILES)
    if not sound or not (np.abs(own) <= LARGEST_LOG).all() or (np.diff(own) < 0).any():
        raise AuditError(path, "has quantiles that do not rise, or are none")
    if not is_histogram(both, m):
        raise AuditError(path, "has a histogram that cannot be of its rows")


MIN_ROWS = 20
LIMIT = 2**28  # bytes: reading takes four times as much
ARRAYS = {"site", "log_responsibilities", "outcomes"}
COARSE = "own_quantiles", "total_histogram"
OPTIONAL = "log_total", *COARSE
GIVE = "give what anymix site evaluate wrote, by its path alone"
# Of more numbers, or of more than MOST_TOLD classes, only the label's probability is kept.
MOST_NUMBERS = 4 * 10**6


@dataclass(frozen=True)
class SiteTable:
    """The predictions and responsibilities of all sources at the held-out rows of one site.

    `sources` and `fingerprints` name the p sources and the SHA-256 of their manifests;
    log_responsibilities are (p, m); outcomes are (p, m) or, of labels, (p, m, c) with that of the
    label first; log_total (m,) is log Σ_k D_k(x), which only novelty and monitoring need, or None.
    In its place a rounded file has a histogram of it, and quantiles of the own log-density.
    With `cross_fitted` the site's own source was trained on these rows, and its numbers are those
    of fold models; with `means` each row is a mean of several, and cannot certify.
    `whole` is what the sources say where the rows are at hand, `content` what
    identifies the rows, and rows of one of the `groups` (m,) are one draw; none of them is ever
    written.
    """

    site: str
    loss: str
    sources: tuple[str, ...]
    fingerprints: tuple[str, ...]
    log_responsibilities: FloatArray
    outcomes: FloatArray
    log_total: FloatArray | None = None
    whole: Tables | None = None
    content: NDArray[Any] | None = None
    groups: NDArray[np.intp] | None = None
    cross_fitted: bool = False
    means: bool = False
    own_quantiles: FloatArray | None = None
    total_histogram: FloatArray | None = None

    @property
    def n_told(self) -> int:
        """The number of classes with a stated probability; 1 for numbers."""
        return int(self.outcomes.shape[2]) if self.outcomes.ndim == 3 else 1

    @property
    def n_rows(self) -> int:
        """m."""
        return int(self.log_responsibilities.shape[1])

    def at_label(self) -> SiteTable:
        """Leave only the probability of the true label, as older files do."""
        return replace(self, outcomes=self.outcomes[:, :, 0]) if self.n_told > 1 else self

    def tables(self) -> Tables:
        """Return the rows as tables, of the loss's own kind."""
        log_masses, known = self.log_responsibilities, self.log_total is not None
        if self.log_total is not None:
            log_masses = log_masses + self.log_total
        domain = np.full(self.n_rows, self.sources.index(self.site), dtype=np.intp)
        targets: NDArray[Any] = np.zeros(self.n_rows)
        outcomes = self.outcomes
        if self.loss != "squared":
            # The label that occurred stands first, whichever it is.
            targets = targets.astype(np.intp)
            outcomes = outcomes.reshape(*log_masses.shape, -1)
        return Tables(log_masses, outcomes, targets, domain, None, None, known, True, self.groups)

    def grouped(self, groups: NDArray[np.intp]) -> SiteTable:
        """Return the table with groups (m,) of its rows, each of which is one draw."""
        known = np.unique(groups, return_inverse=True)[1]
        whole = None if self.whole is None else replace(self.whole, groups=known)
        return replace(self, whole=whole, groups=known)

    def taken(self, rows: NDArray[np.intp]) -> SiteTable:
        """Return some of the rows."""
        total, whole, content = self.log_total, self.whole, self.content
        return replace(
            self,
            log_responsibilities=self.log_responsibilities[:, rows],
            outcomes=self.outcomes[:, rows],
            log_total=None if total is None else total[rows],
            whole=None if whole is None else whole.taken(rows),
            content=None if content is None else content[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    @staticmethod
    def concatenate(chunks: Sequence[SiteTable]) -> SiteTable:
        """Join rows of one site that were evaluated in the same way."""
        totals = [one.log_total for one in chunks if one.log_total is not None]
        wholes = [one.whole for one in chunks if one.whole is not None]
        contents = [one.content for one in chunks if one.content is not None]
        return replace(
            chunks[0],
            log_responsibilities=np.concatenate([c.log_responsibilities for c in chunks], axis=1),
            outcomes=np.concatenate([c.outcomes for c in chunks], axis=1),
            log_total=np.concatenate(totals) if totals else None,
            whole=Tables.concatenate(wholes) if wholes else None,
            content=np.concatenate(contents) if contents else None,
        )

    def rounded(self) -> SiteTable:
        """Return the rounded table that may be sent: each number on a coarse grid, and no total.

        Examples
        --------
        >>> half = np.log([[0.6], [0.4]])
        >>> table = SiteTable("a", "squared", ("a", "b"), ("", ""), half, np.array([[0.9], [-3.3]]))
        >>> table.rounded().outcomes.tolist()
        [[1.0], [-4.0]]
        """
        kept: dict[str, Any] = {}
        if self.log_total is not None:
            own = self.log_responsibilities[self.sources.index(self.site)] + self.log_total
            quantiles = coarse_quantiles(own)
            if quantiles.size > 1:
                kept = dict(zip(COARSE, (quantiles, histogram_of(self.log_total)), strict=True))
        return replace(
            self,
            **kept,
            log_responsibilities=round_responsibilities(self.log_responsibilities),
            outcomes=round_outcomes(self.outcomes, self.loss),
            log_total=None,
            whole=None,
            content=None,
        )

    def write(self, path: str | Path, exact: bool = False) -> None:
        """Write one file atomically; rounded unless `exact`."""
        if not exact:
            return self.rounded().write(path, exact=True)
        head = {
            "schema": MEANS if self.means else CROSS_FITTED if self.cross_fitted else FRESH,
            "site": self.site,
            "loss": self.loss,
            "sources": list(self.sources),
            "fingerprints": list(self.fingerprints),
        }
        arrays: dict[str, NDArray[Any]] = {
            "site": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
            "log_responsibilities": self.log_responsibilities,
            "outcomes": self.outcomes,
        }
        optional = {name: getattr(self, name) for name in OPTIONAL}
        arrays |= {name: array for name, array in optional.items() if array is not None}
        with replacing(path) as temporary:
            temporary.write_bytes(dump_arrays(arrays))


def evaluate_site(
    received: Sequence[ReceivedSource],
    site: str,
    X: Any,
    y: ArrayLike,
    rng: np.random.Generator | None = None,
    min_rows: int = MIN_ROWS,
    home: HomeTable | None = None,
) -> SiteTable:
    """Evaluate all sources on the held-out rows of one site; `rng` shuffles rows and classes.

    The site's own source may have been trained on these rows where `home` has what its fold models
    predict.
    """
    names = tuple(one.manifest.name for one in received)
    if site not in names:
        raise InputError(f"site {site!r}", f"is unknown; the sources are {', '.join(names)}")
    target = np.asarray(y)
    if target.size < min_rows:
        raise InputError(
            f"{target.size} held-out rows of {site!r}",
            f"are too few: give at least {min_rows}, so that no single row can be made out",
        )
    classes = all_classes(received)
    judge_at(received, X)
    sources, k = [one.source for one in received], names.index(site)
    found = evaluate(sources, X, classes, reference=False)
    if home is not None:
        found = home.in_place_of(received, found, k, (X, target))
    found = replace(found, log_masses=found.log_masses + log_reference(sources, X))
    outcomes = _outcomes(found, target, classes, rng)
    log_total = logsumexp(found.log_masses, axis=0)
    impossible = np.isneginf(log_total)
    log_r = found.log_masses - np.where(impossible, 0.0, log_total)
    log_r[:, impossible] = -np.log(len(names))
    order = np.arange(target.size) if rng is None else rng.permutation(target.size)
    table = SiteTable(
        site,
        TASK_LOSSES[received[0].manifest.task],
        names,
        tuple(one.sha256 for one in received),
        log_r[:, order],
        outcomes[:, order],
        log_total[order],
        cross_fitted=home is not None,
    )
    known = found.labelled(target, k).taken(order)
    whole = replace(known, log_masses=table.tables().log_masses)
    return replace(table, whole=whole, content=content_of(X))


def _outcomes(
    found: Tables,
    y: NDArray[Any],
    classes: NDArray[Any] | None,
    rng: np.random.Generator | None,
) -> FloatArray:
    if classes is None:
        return np.asarray(found.predictions - y.astype(float))
    check_known(y, classes)
    label = positions(y, classes)[:, None]
    if classes.size > MOST_TOLD or found.predictions.size > MOST_NUMBERS:
        return np.asarray(np.take_along_axis(found.predictions, label[None], axis=2)[:, :, 0])
    # By numbers drawn for each class, of which the label's is made the smallest.
    drawn = np.tile(np.arange(float(classes.size)), (y.size, 1))
    if rng is not None:
        drawn = rng.random((y.size, classes.size))
    np.put_along_axis(drawn, label, -1, axis=1)
    columns = np.argsort(drawn, axis=1)
    return np.asarray(np.take_along_axis(found.predictions, columns[None], axis=2))


def read_site(path: str | Path) -> SiteTable:
    """Read and check a site's file; like a source folder it is untrusted."""
    path = Path(path)
    try:
        arrays = load_arrays(read_file(path, LIMIT), str(path))
    except FileNotFoundError as error:
        raise MissingError(path, f"does not exist; {GIVE}") from error
    except AuditError as error:
        raise AuditError(path, f"is not a site's file: it {error.cause}; {GIVE}") from error
    if not ARRAYS <= set(arrays) <= ARRAYS | {*OPTIONAL}:
        raise AuditError(path, f"is not a site's file: it must hold {sorted(ARRAYS)}; {GIVE}")
    site, loss, names, fingerprints, schema = site_head(arrays["site"], path)
    check_site(arrays, len(names), loss, path)
    tables = arrays["log_responsibilities"], arrays["outcomes"]
    given: dict[str, Any] = {name: arrays.get(name) for name in OPTIONAL}
    given |= {"cross_fitted": schema == CROSS_FITTED, "means": schema == MEANS}
    return SiteTable(site, loss, names, fingerprints, *tables, **given)


def join_sites(
    sites: Sequence[SiteTable], received: Sequence[ReceivedSource], whole: bool = False
) -> Tables:
    """Join the tables of all sites; every site must have seen these sources, in any order.

    `whole` asks for all that the sources say, where the rows of all sites are at hand.
    """
    given = {one.manifest.name: one.sha256 for one in received}
    names = tuple(given)
    for site in sites:
        found = dict(zip(site.sources, site.fingerprints, strict=True))
        if found != given:
            which = f"{', '.join(found)}, not {', '.join(given)}"
            if set(found) == set(given):
                anew = [name for name, one in given.items() if found[name] != one]
                which = f"{', '.join(anew)} as packed another time"
            raise InputError(
                f"the site {site.site!r}",
                f"evaluated other sources than the given ones: {which}; ask it to evaluate these",
            )
    homes = [site.site for site in sites]
    if sorted(homes) != sorted(names):
        raise InputError(
            f"held-out rows of {', '.join(names)}",
            f"are needed, once each; got {', '.join(homes)}",
        )
    ordered = sorted(sites, key=lambda site: names.index(site.site))
    at_hand = [site.whole for site in ordered if site.whole is not None and site.sources == names]
    if whole and len(at_hand) == len(sites):
        return Tables.concatenate(at_hand)
    classes = all_classes(received)
    told = {site.n_told for site in sites}
    if any(n > 1 and (classes is None or n != classes.size) for n in told):
        raise InputError("a site", "has other classes than the sources; evaluate anew")
    some_lack_total = any(site.log_total is None for site in sites)
    joined = []
    for site in ordered if len(told) == 1 else [site.at_label() for site in ordered]:
        places = [site.sources.index(name) for name in names]
        arranged = replace(
            site,
            sources=names,
            log_responsibilities=site.log_responsibilities[places],
            outcomes=site.outcomes[places],
            log_total=None if some_lack_total else site.log_total,
        )
        joined.append(arranged.tables())
    return replace(Tables.concatenate(joined), classes=classes)
