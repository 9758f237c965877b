"""What a site hands over in place of its rows: one small table that z can be learned from.

For each held-out row, in random order: which source it looks like, and how each source's predictor
does there.

    cross-entropy     outcome_k = h_k(x, y), the probability of the label that occurred
    squared loss      outcome_k = h_k(x) − y; since Σ_k w_k = 1, h_z − y = Σ_k w_k (h_k − y)

Features and labels are not in it, but exact numbers would let anyone who has the sources solve for
them.  What is written is therefore rounded to a grid that tells little of a row, and enough of all
rows together; docs/security.md says what is left to infer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from anymix._arrays import FloatArray, positions
from anymix._errors import AuditError, InputError, MissingError
from anymix._files import read_file, replacing
from anymix.exchange.manifest import MOST_CLASSES
from anymix.exchange.read import ReceivedSource, judge_at
from anymix.exchange.rounding import round_outcomes, round_responsibilities
from anymix.exchange.site_checks import LOSSES, check_site, site_head
from anymix.exchange.tensors import dump, load
from anymix.sources import Tables, evaluate, log_reference

MIN_ROWS = 20
LIMIT = 2**28  # bytes: reading takes four times as much
ARRAYS = {"site", "log_responsibilities", "outcomes"}


@dataclass(frozen=True)
class SiteTable:
    """All sources at the held-out rows of one of them.

    `sources` and `fingerprints` name the p sources and the SHA-256 of their manifests;
    log_responsibilities and outcomes are (p, m); log_total (m,) is log Σ_k D_k(x), which only
    novelty and monitoring need, or None.
    """

    site: str
    loss: str
    sources: tuple[str, ...]
    fingerprints: tuple[str, ...]
    log_responsibilities: FloatArray
    outcomes: FloatArray
    log_total: FloatArray | None = None

    def tables(self) -> Tables:
        """Return the rows as tables, of the loss's own kind."""
        log_masses = self.log_responsibilities
        known = self.log_total is not None
        if self.log_total is not None:
            log_masses = log_masses + self.log_total
        m, k = log_masses.shape[1], self.sources.index(self.site)
        domain = np.full(m, k, dtype=np.intp)
        if self.loss == "squared":
            return Tables(log_masses, self.outcomes, np.zeros(m), domain, None, None, known, True)
        # The label that occurred is the one class of which anything is known.
        outcomes, labels = self.outcomes[:, :, None], np.zeros(m, dtype=np.intp)
        return Tables(log_masses, outcomes, labels, domain, None, None, known, True)

    def rounded(self) -> SiteTable:
        """Return what may be handed over: each number on a coarse grid, and no total.

        Examples
        --------
        >>> half = np.log([[0.6], [0.4]])
        >>> table = SiteTable("a", "squared", ("a", "b"), ("", ""), half, np.array([[0.9], [-3.3]]))
        >>> table.rounded().outcomes.tolist()
        [[1.0], [-4.0]]
        """
        return replace(
            self,
            log_responsibilities=round_responsibilities(self.log_responsibilities),
            outcomes=round_outcomes(self.outcomes, self.loss),
            log_total=None,
        )

    def write(self, path: str | Path, exact: bool = False) -> None:
        """Write one file, whole or not at all; rounded unless the exact numbers are asked for."""
        if not exact:
            return self.rounded().write(path, exact=True)
        head = {
            "schema": 1,
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
        if self.log_total is not None:
            arrays["log_total"] = self.log_total
        with replacing(path) as temporary:
            temporary.write_bytes(dump(arrays))


def evaluate_site(
    received: Sequence[ReceivedSource],
    site: str,
    X: Any,
    y: ArrayLike,
    rng: np.random.Generator | None = None,
    min_rows: int = MIN_ROWS,
) -> SiteTable:
    """Ask all sources about the held-out rows of one of them; `rng` shuffles the rows."""
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
    sources = [one.source for one in received]
    found = evaluate(sources, X, classes)
    outcomes = _outcomes(found, target, classes)
    log_total = logsumexp(found.log_masses, axis=0)
    impossible = np.isneginf(log_total)
    log_r = found.log_masses - np.where(impossible, 0.0, log_total)
    log_r[:, impossible] = -np.log(len(names))
    order = np.arange(target.size) if rng is None else rng.permutation(target.size)
    return SiteTable(
        site,
        LOSSES[received[0].manifest.task],
        names,
        tuple(one.sha256 for one in received),
        log_r[:, order],
        outcomes[:, order],
        # Scores against a reference become densities again, of which novelty speaks.
        (log_total + log_reference(sources, X))[order],
    )


def all_classes(received: Sequence[ReceivedSource]) -> NDArray[Any] | None:
    """Return the labels that any source knows, sorted; None for a regression."""
    if received[0].manifest.classes is None:
        return None
    found = np.unique(np.concatenate([np.asarray(one.manifest.classes) for one in received]))
    if found.size > MOST_CLASSES:
        raise InputError(
            f"sources of {found.size} classes together",
            f"cannot be combined, but of {MOST_CLASSES} at most; leave the one out that has most",
        )
    return found


def _outcomes(found: Tables, y: NDArray[Any], classes: NDArray[Any] | None) -> FloatArray:
    if classes is None:
        return np.asarray(found.predictions - y.astype(float))
    unknown = np.flatnonzero(~np.isin(y, classes))
    if unknown.size:
        some = [*map(str, classes[:20].tolist()), *["others"] * (classes.size > 20)]
        label, known = y[unknown].tolist()[0], ", ".join(some)
        raise InputError(
            f"row {unknown[0] + 1}",
            f"has the label {label!r}, which no source knows (they know {known}); leave such rows "
            "out, or let a source be trained on the label",
        )
    return np.asarray(found.predictions[:, np.arange(y.size), positions(y, classes)])


def read_site(path: str | Path) -> SiteTable:
    """Read and check a site's file; like a source folder it may come from a stranger."""
    path = Path(path)
    try:
        arrays = load(read_file(path, LIMIT), str(path))
    except FileNotFoundError as error:
        raise MissingError(path, "does not exist") from error
    if not ARRAYS <= set(arrays) <= ARRAYS | {"log_total"}:
        raise AuditError(path, f"is not a site's file: it must hold {sorted(ARRAYS)}")
    site, loss, names, fingerprints = site_head(arrays["site"], path)
    check_site(arrays, len(names), loss, path)
    tables = arrays["log_responsibilities"], arrays["outcomes"], arrays.get("log_total")
    return SiteTable(site, loss, names, fingerprints, *tables)


def join_sites(sites: Sequence[SiteTable], received: Sequence[ReceivedSource]) -> Tables:
    """Join the tables of all sites; every site must have seen exactly these sources."""
    names = tuple(one.manifest.name for one in received)
    fingerprints = tuple(one.sha256 for one in received)
    for site in sites:
        if (site.sources, site.fingerprints) != (names, fingerprints):
            raise InputError(
                f"the site {site.site!r}",
                "evaluated other sources, or in another order, than the given ones "
                f"({', '.join(names)}); ask it to evaluate these",
            )
    given = [site.site for site in sites]
    if sorted(given) != sorted(names):
        raise InputError(
            f"held-out rows of {', '.join(names)}",
            f"are needed, once each; got {', '.join(given)}",
        )
    if len({site.log_total is None for site in sites}) > 1:
        sites = [SiteTable(**{**vars(site), "log_total": None}) for site in sites]
    ordered = sorted(sites, key=lambda site: names.index(site.site))
    joined = Tables.concatenate([site.tables() for site in ordered])
    return replace(joined, classes=all_classes(received))
