"""A site: it keeps its rows, evaluates all sources on them once, and responds with sums only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np

from anymix._version import __version__
from anymix.core import Sums
from anymix.engines.account import (
    add_counts,
    check_refusals,
    record_left,
    record_refusal,
    total,
)
from anymix.engines.generalist import (
    GENERAL,
    LINEAR,
    PREDICT,
    check_linear,
    columns_of,
    held_out_predictions_of,
    linear_rows,
    number_of,
)
from anymix.engines.site_queries import check_query
from anymix.engines.wire import (
    LOG,
    Refusal,
    dump_refusal,
    dump_reply,
    load_queries,
    refusing,
)
from anymix.exceptions import InputError, MissingError
from anymix.exchange import (
    MIN_ROWS,
    ReceivedSource,
    dump_arrays,
    evaluate_site,
    load_arrays,
    read_alike,
    read_site_rows,
)
from anymix.sources import Arrays, Block, LinearRows, Query, Tables
from anymix.storage import plain_json, replacing

# Reads the features and the target of a table, as the manifests of the sources describe them.
ReadRows = Callable[[str, Sequence[ReceivedSource], str], tuple[Any, Any]]
ARRAYS = ("log_masses", "predictions", "targets", "sample_domain")


@dataclass(frozen=True)
class Site:
    """The name of a site, its rows, and where it keeps its state between messages.

    `expected`: names of all sources, in order, with the SHA-256 of their manifests.
    """

    name: str
    rows: str
    sources: str
    expected: tuple[tuple[str, str], ...]
    state: str
    target: str = "y"
    min_rows: int = MIN_ROWS

    @classmethod
    def of(cls, config: Mapping[str, Any], expected: Mapping[str, str]) -> Site:
        """Read a site's configuration: site, rows, sources, and perhaps target, state, min-rows."""
        for key in ("site", "rows", "sources"):
            if key not in config:
                raise InputError(
                    "this site's configuration", f"lacks {key!r}; it needs site, rows and sources"
                )
        name, rows = str(config["site"]), str(config["rows"])
        if name not in expected:
            raise InputError(f"site {name!r}", f"is unknown; the sources are {', '.join(expected)}")
        return cls(
            name,
            rows,
            str(config["sources"]),
            tuple(expected.items()),
            str(config.get("state", f"{rows}.anymix")),
            str(config.get("target", "y")),
            int(config.get("min-rows", MIN_ROWS)),
        )

    def generalist_file(self, number: int) -> Path:
        """Where the site keeps the predictions of a generalist for its rows."""
        return Path(self.state) / f"generalist-{self.key()}-{number:012x}.safetensors"

    @property
    def ledger(self) -> Path:
        """The file in which the site counts the numbers that it has sent."""
        return Path(self.state) / "left.json"

    def part(self, read_rows: ReadRows) -> Block:
        """Return the block of the site's rows; all sources are evaluated on them once."""
        key = self.key()
        with refusing("table"):
            return _part(self, key, read_rows)

    def linear(self, read_rows: ReadRows) -> LinearRows | None:
        """Return the rows that respond for the generalist; None where it has no columns."""
        return _linear(self, self.key(), read_rows)

    def consulting_part(self, query: Query, read_rows: ReadRows) -> Block:
        """Return the block with predictions of the generalist that a query is about, if any."""
        if GENERAL not in query.arrays:
            return self.part(read_rows)
        with refusing("query"):
            number = int(query.arrays[GENERAL])
        key = self.key()
        with refusing("table"):
            return _consulting_part(self, key, number, read_rows)

    def key(self) -> str:
        """What tables of the site depend on, as a digest."""
        with refusing("table"):
            if not Path(self.rows).is_file():
                raise MissingError(self.rows, "does not exist; give the table of this site's rows")
            with open(self.rows, "rb") as file:
                rows = file_digest(file, "sha256").hexdigest()
            # What the tables depend on: the rows themselves, the sources, and this version.
            told = [rows, self.name, self.target, list(self.expected), __version__]
            return sha256(json.dumps(told).encode()).hexdigest()[:24]


def read_expected(folder: str | Path, expected: Mapping[str, str]) -> list[ReceivedSource]:
    """Read the folders of all sources, which must be the same at all sites."""
    there = {path.name: path for path in sorted(Path(folder).glob("*/"))}
    manifests = [path / "manifest.json" for path in there.values()]
    by_hash = {sha256(m.read_bytes()).hexdigest(): m.parent for m in manifests if m.is_file()}
    for name, digest in expected.items():
        if digest not in by_hash and name not in there:
            raise MissingError(str(folder), f"has no folder of the source {name!r}; put it there")
    received = read_alike([by_hash.get(digest) or there[name] for name, digest in expected.items()])
    for one, (name, digest) in zip(received, expected.items(), strict=True):
        if one.sha256 != digest:
            raise InputError(
                one.folder, f"is not the source {name!r} that the others have; ask for it again"
            )
    return received


# A process serves one site, but for tests, which have several in one.
@lru_cache(maxsize=16)
def _part(site: Site, key: str, read_rows: ReadRows) -> Block:
    """Read the tables from the site's disk, or evaluate the sources and keep the tables there."""
    path = Path(site.state) / f"tables-{key}.safetensors"
    known = path.is_file()
    if known:
        arrays = load_arrays(path.read_bytes(), str(path))
        head = plain_json(arrays["head"].tobytes())
        classes = None if head["classes"] is None else np.asarray(head["classes"])
        told: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
        tables = Tables(**told, classes=classes, has_densities=head["has_densities"])
    else:
        with refusing("setup"):
            received = read_expected(site.sources, dict(site.expected))
        X, y = read_rows(site.rows, received, site.target)
        # The order of rows says nothing, and none of them leaves.
        evaluated = evaluate_site(received, site.name, X, y, min_rows=1).whole
        assert evaluated is not None
        tables = evaluated
    if tables.n_points < site.min_rows:
        raise InputError(
            f"{tables.n_points} rows at {site.name!r}",
            f"are too few: this site answers for at least {site.min_rows}",
        )
    if not known:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        labels = None if tables.classes is None else tables.classes.tolist()
        text = json.dumps({"classes": labels, "has_densities": tables.has_densities})
        arrays = {"head": np.frombuffer(text.encode(), np.uint8)}
        arrays |= {name: np.asarray(getattr(tables, name)) for name in ARRAYS}
        with replacing(path) as temporary:
            temporary.write_bytes(dump_arrays(arrays))
    return part_of_site(tables)


@lru_cache(maxsize=16)
def _linear(site: Site, key: str, read_rows: ReadRows) -> LinearRows | None:
    """The site's rows as columns that all sites can make; see `engines.generalist`."""
    received = read_expected(site.sources, dict(site.expected))
    columns = columns_of(received)
    if columns is None:
        return None
    X, _ = read_rows(site.rows, received, site.target)
    return linear_rows(columns, X, _part(site, key, read_rows))


@lru_cache(maxsize=16)
def _consulting_part(site: Site, key: str, number: int, read_rows: ReadRows) -> Block:
    """The block of a site's rows with the predictions of a generalist, which it has kept."""
    tables, path = _part(site, key, read_rows).tables, site.generalist_file(number)
    with refusing("query"):
        known = load_arrays(path.read_bytes(), str(path))["predictions"]
    return Block(replace(tables, generalist=known), shares_rows=False)


def part_of_site(tables: Tables) -> Block:
    """Return a block for a site; the densities of its rows are not sent."""
    return Block(replace(tables, has_densities=False), shares_rows=False)


def respond(
    message: bytes,
    run: str,
    config: Callable[[], Mapping[str, Any]],
    expected: Mapping[str, str],
    read_rows: ReadRows = read_site_rows,
) -> bytes:
    """Respond to the queries of one round of a run, both as `wire` writes them; never raise.

    config() reads the site's own configuration; what leaves is recorded and logged before it does.
    """
    try:
        with refusing("fault"):
            return _respond(message, run, config, expected, read_rows)
    except Refusal as refusal:
        # Of its configuration and its sources a site may log what is wrong, and of rows nothing.
        cause = f": {refusal.cause}" if refusal.kind in ("setup", "budget") else ""
        LOG.warning("refused (%s)%s", refusal.kind, cause)
        return dump_refusal(refusal.kind)


def _respond(
    message: bytes,
    run: str,
    config: Callable[[], Mapping[str, Any]],
    expected: Mapping[str, str],
    read_rows: ReadRows,
) -> bytes:
    with refusing("setup"):
        site = Site.of(config(), expected)
    check_refusals(site.ledger)
    try:
        part = site.part(read_rows)
        with refusing("query"):
            queries = load_queries(message)
        responses = [_response(query, site, read_rows) for query in queries]
        n, in_run, ever = record_left(site.ledger, run, queries, responses)
    except Refusal as refusal:
        record_refusal(site.ledger, run, refusal)
        raise
    left = add_counts({}, queries, responses)
    what = ", ".join(f"{numbers} of {verb}" for verb, (_, numbers) in left.items())
    LOG.info(
        "site %s, round %d: %d numbers leave (%s), of %d rows; %d in this run, %d ever",
        *(site.name, n, total(left), what, part.tables.n_points, in_run, ever),
    )
    return dump_reply(site.name, responses)


def _response(query: Query, site: Site, read_rows: ReadRows) -> Arrays:
    """Respond to a query about the generalist, or about what is learned by its predictions."""
    if query.name not in (*LINEAR, PREDICT):
        return answer(query, site.consulting_part(query, read_rows))
    part = site.part(read_rows)
    with refusing("setup"):
        rows = site.linear(read_rows)
    with refusing("query"):
        if rows is None:
            raise InputError("the query", "needs columns that the models of all sources share")
        check_linear(query, rows)
    with refusing("rows"):
        if query.name in LINEAR:
            return rows.answer(query.name, query.options, query.arrays)
        known = held_out_predictions_of(query, rows, part.tables.classes)
        path = site.generalist_file(number_of(query))
        with replacing(path) as temporary:
            temporary.write_bytes(dump_arrays({"predictions": known}))
        return {}


def answer(question: Query, part: Block) -> Arrays:
    """Respond to a query, or refuse and send only the kind of the refusal."""
    with refusing("query"):
        check_query(question, part.tables)
    with refusing("rows"):
        found = part.answer(question.name, question.options, question.arrays)
        # All rows of a site are of one source.
        own = int(part.tables.domain[0])
        return own_sums(found, own) if question.name == "evaluate" else found


def own_sums(found: Arrays, k: int) -> Arrays:
    """Take the sums of source k: a site has no rows of others, and zeros need not be sent."""
    own = {"losses": found["losses"][:, k], "slopes": found["jacobians"][:, k]}
    return own | ({"hessians": found["hessians"]} if "hessians" in found else {})


def spread(own: Arrays, k: int) -> Arrays:
    """Put the sums of source k at their place among those of all."""
    s, p = own["slopes"].shape
    sums = Sums(np.zeros((s, p)), np.zeros((s, p, p)), own.get("hessians"))
    sums.losses[:, k], sums.jacobians[:, k] = own["losses"], own["slopes"]
    return {name: array for name, array in sums._asdict().items() if array is not None}
