"""A site: it keeps its rows, asks all sources about them once, and answers by sums alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np

from anymix._version import __version__
from anymix.engines.answering import part_of_site
from anymix.exceptions import InputError, MissingError
from anymix.exchange import MIN_ROWS, ReceivedSource, dump, evaluate_site, load, read_alike
from anymix.sources import Block, Tables
from anymix.storage import plain_json, replacing

# Reads the features and the target of a table, as the manifests of the sources describe them.
ReadRows = Callable[[str, Sequence[ReceivedSource], str], tuple[Any, Any]]
ARRAYS = ("log_masses", "predictions", "targets", "sample_domain")


@dataclass(frozen=True)
class Site:
    """Whose rows, where they are, and where this site keeps what it needs between messages.

    `expected` names all sources, in order, with the SHA-256 of their manifests; `sources` is the
    folder in which their folders lie.  min_rows is the site's own to say, and nobody else's.
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
        """Read the configuration of a node: site, rows, sources, and perhaps target, state, ...

        >>> Site.of({"site": "north"}, {"north": "1f", "south": "2e"})
        Traceback (most recent call last):
        ...
        anymix.exceptions.InputError: the node's configuration lacks 'rows'; start the SuperNode
        with --node-config 'site="north" rows="rows.csv" sources="folders"'.
        """
        for key in ("site", "rows", "sources"):
            if key not in config:
                example = """--node-config 'site="north" rows="rows.csv" sources="folders"'"""
                raise InputError(
                    "the node's configuration",
                    f"lacks {key!r}; start the SuperNode with {example}",
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

    @property
    def ledger(self) -> Path:
        """The file in which the site counts what has left it."""
        return Path(self.state) / "left.json"

    def part(self, read_rows: ReadRows) -> Block:
        """Return the part that the site's rows are; sources are asked of them once, never again."""
        return _part(self, self._key(), read_rows)

    def _key(self) -> str:
        """What the tables depend on: the rows themselves, the sources, and this version."""
        if not Path(self.rows).is_file():
            raise MissingError(self.rows, "does not exist; give the table of this site's rows")
        with open(self.rows, "rb") as file:
            rows = file_digest(file, "sha256").hexdigest()
        told = [rows, self.name, self.target, list(self.expected), __version__]
        return sha256(json.dumps(told).encode()).hexdigest()[:24]

    def _evaluate(self, read_rows: ReadRows) -> Tables:
        received = read_expected(self.sources, dict(self.expected))
        X, y = read_rows(self.rows, received, self.target)
        # The order of rows says nothing, and none of them leaves.
        found = evaluate_site(received, self.name, X, y, min_rows=1).whole
        assert found is not None
        return found


def read_expected(folder: str | Path, expected: Mapping[str, str]) -> list[ReceivedSource]:
    """Read the folders of all sources; they must be the very ones that everybody has."""
    there = {path.name: path for path in sorted(Path(folder).glob("*/"))}
    received = read_alike(_named(there, expected, str(folder)))
    for one, (name, digest) in zip(received, expected.items(), strict=True):
        if one.sha256 != digest:
            raise InputError(
                one.folder, f"is not the source {name!r} that the others have; ask for it again"
            )
    return received


def _named(there: Mapping[str, Path], expected: Mapping[str, str], where: str) -> list[Path]:
    """Find the folder of each source: by the name of the folder, or by its manifest."""
    found, by_hash = [], {}
    for path in there.values():
        manifest = path / "manifest.json"
        if manifest.is_file():
            by_hash[sha256(manifest.read_bytes()).hexdigest()] = path
    for name, digest in expected.items():
        if digest not in by_hash and name not in there:
            raise MissingError(where, f"has no folder of the source {name!r}; put it there")
        found.append(by_hash.get(digest) or there[name])
    return found


# A process serves one site, but for tests, which have several in one.
@lru_cache(maxsize=16)
def _part(site: Site, key: str, read_rows: ReadRows) -> Block:
    return part_of_site(_tables(site, key, read_rows))


def _tables(site: Site, key: str, read_rows: ReadRows) -> Tables:
    """Return the tables that are on disk, or ask the sources."""
    path = Path(site.state) / f"tables-{key}.safetensors"
    if path.is_file():
        return _check(_read(path), site)
    tables = _check(site._evaluate(read_rows), site)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    labels = None if tables.classes is None else tables.classes.tolist()
    head = json.dumps({"classes": labels, "has_densities": tables.has_densities})
    arrays = {name: np.asarray(getattr(tables, name)) for name in ARRAYS}
    with replacing(path) as temporary:
        temporary.write_bytes(dump({"head": np.frombuffer(head.encode(), np.uint8), **arrays}))
    return tables


def _read(path: Path) -> Tables:
    arrays = load(path.read_bytes(), str(path))
    head = plain_json(arrays["head"].tobytes())
    classes = None if head["classes"] is None else np.asarray(head["classes"])
    told: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    return Tables(**told, classes=classes, has_densities=head["has_densities"])


def _check(tables: Tables, site: Site) -> Tables:
    if tables.n_points < site.min_rows:
        raise InputError(
            f"{tables.n_points} rows at {site.name!r}",
            f"are too few: this site answers for at least {site.min_rows}",
        )
    return tables
