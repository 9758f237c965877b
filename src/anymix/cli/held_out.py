"""Held-out rows of each source, from local tables or from site files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from anymix.cli.argument_types import source_name, table
from anymix.cli.chosen_columns import add_choice, columns_for
from anymix.cli.console import Console, Progress
from anymix.cli.engine_option import DASK, map_by
from anymix.cli.streams import caution
from anymix.engines import ChunkedTrainingRows, RowSplit, Store, ThreadMap
from anymix.exceptions import InputError, UsageError, quoted
from anymix.exchange import (
    MOST_NUMBERS,
    ReceivedSource,
    SiteTable,
    all_classes,
    evaluate_site,
    read_site,
)
from anymix.models import rows_that_fit
from anymix.sources import copies, joined_groups
from anymix.tables import CHUNK_ROWS, TableColumns, count_rows, read_chunks, read_rows


def add_held_out(parser: ArgumentParser) -> None:
    """Add the two ways to give held-out rows."""
    parser.add_argument(
        "--held-out",
        nargs="+",
        action="extend",
        metavar="NAME=TABLE",
        help="held-out rows of each source, not used for training",
    )
    parser.add_argument("--target", default="y", help="column of the tables with the label")
    add_choice(parser)
    parser.add_argument(
        "--from-sites",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="files written by `anymix site evaluate`, instead of rows",
    )


def add_groups(parser: ArgumentParser) -> None:
    """Add the option that names the groups of rows."""
    parser.add_argument(
        "--groups",
        metavar="COL",
        help="column that groups dependent rows, such as the patient: rows of one group are "
        "never in two folds and count as one draw, as copies of a row always do",
    )


def pairs(given: Sequence[str], option: str = "--held-out") -> dict[str, str]:
    """Read NAME=TABLE."""
    found: dict[str, str] = {}
    for entry in given:
        named, equals, path = entry.partition("=")
        name = source_name(named)
        if not equals or not path:
            raise UsageError(f"{option} takes NAME=TABLE, such as north=north.csv; got {entry!r}.")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice; join its tables.")
        for other, its in found.items():
            if its == table(path):
                raise UsageError(
                    f"{option} gives {path} for both {other!r} and {name!r}; give each source "
                    "its own rows."
                )
        found[name] = table(path)
    return found


def held_out_sites(
    args: Namespace, received: Sequence[ReceivedSource], console: Console
) -> list[SiteTable]:
    """Return the evaluated held-out rows of each site, from tables or from site files."""
    if bool(args.held_out) == bool(args.from_sites):
        raise UsageError(
            "give held-out rows with --held-out, or the sites' files with --from-sites, one of the "
            "two."
        )
    named = getattr(args, "groups", None)
    if named and args.from_sites:
        raise UsageError("--groups names a column of rows; add --held-out.")
    if args.from_sites:
        return [read_site(path) for path in args.from_sites]
    columns = columns_for(args, received)
    given = pairs(args.held_out)
    progress, sites = Progress("evaluating the sources", console.quiet), []
    tables = ((name, path, _with_groups(path, columns, named), 2) for name, path in given.items())
    with map_by(getattr(args, "engine", "memory"), list(received)) as ask:
        for i, (*_, site) in enumerate(ask(_ask_chunk, tables), 1):
            sites.append(site)
            progress.update(i / len(given))
    progress.done()
    return sites


def _with_groups(path: str, columns: TableColumns, named: str | None) -> tuple[Any, ...]:
    """Read rows, labels and groups; without groups, copies of a row form one."""
    X, y = read_rows(path, columns)
    if y is not None and np.asarray(y).dtype.kind != "f" and np.unique(y).size == 1:
        caution(
            f"{path}: all rows have the label {str(y[0])!r:.60}; what is learned or certified on "
            "them says nothing about rows of other labels."
        )
    draws = None if y is None else copies(X, np.asarray(y), np.zeros(len(y), dtype=np.intp))
    if draws is not None and not named:
        caution(
            f"{path}: {len(draws) - np.unique(draws).size} of {len(draws)} rows are copies of "
            "another row; they count as one row."
        )
        kept = np.unique(draws, return_index=True)[1]
        return _safe_indexing(X, kept), np.asarray(y)[kept]
    if named:
        if named in columns.features:
            raise UsageError(f"--groups names {quoted(named)}, which is a feature of the sources.")
        told = replace(columns, target=named, numeric_target=False, whole_target=False)
        groups = np.unique(np.asarray(read_rows(path, told)[1]), return_inverse=True)[1]
        draws = joined_groups(groups, draws)
    return X, y, draws if named else None


def ask_sources(
    received: Sequence[ReceivedSource], name: str, path: str, rows: tuple[Any, ...], **options: Any
) -> SiteTable:
    """Evaluate a site's rows; errors name their table."""
    try:
        X, y, *groups = rows
        table = evaluate_site(received, name, X, y, **options)
    except InputError as error:
        raise InputError(f"{path}: {error.where}", error.cause) from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return table.grouped(groups[0]) if groups and groups[0] is not None else table


ROWS_ENGINES = {
    "auto": "hold rows in memory if their predictions and densities fit into a model folder, else "
    "in chunks on disk",
    "memory": "hold all rows in memory",
    "chunks": "on disk",
    "dask": f"as auto, with the sources evaluated {DASK}",
}
Drawn = Callable[[int, int, int], NDArray[np.bool_]]
# Rows are drawn at random, so there may be a few more than planned.
ROOM = 0.95


def in_chunks(args: Namespace, received: Sequence[ReceivedSource]) -> bool:
    """Whether rows are kept on disk: if requested, or if there are many."""
    name = args.engine.partition("=")[0]
    if name in ("memory", "chunks") or not args.held_out:
        return bool(name == "chunks" and args.held_out)
    n = sum(count_rows(path) for path in pairs(args.held_out).values())
    return n > rows_that_fit(len(received), _n_told(received))


def _n_told(received: Sequence[ReceivedSource]) -> int:
    classes = all_classes(received)
    return 1 if classes is None else classes.size


class HeldOutInChunks:
    """Tables of --held-out, read in chunks; each source is evaluated once on each row."""

    def __init__(self, args: Namespace, received: Sequence[ReceivedSource], console: Console):
        self.received, self.console = received, console
        self.engine = args.engine
        if args.groups:
            raise UsageError("--groups needs all rows in memory; leave out --engine=chunks.")
        self.given = pairs(args.held_out)
        self.columns = columns_for(args, received)
        self.names = [one.manifest.name for one in received]
        self.counts = {name: count_rows(path) for name, path in self.given.items()}

    def split(self, store: Store) -> tuple[list[SiteTable], ChunkedTrainingRows]:
        """Return the responses on the evaluation rows, and the training rows on disk."""
        deal = self._deal()
        judges: dict[str, list[SiteTable]] = {name: [] for name in self.given}
        teaching = ChunkedTrainingRows(store, ThreadMap(progress=self._passes()))
        for name, first, given in self._asked():
            # Learning needs half of what certificates need.
            site = replace(given, whole=None, content=None)
            judging, choosing = deal.drawn(self.names.index(name), first, site.n_rows)
            judges[name].append(site.taken(np.flatnonzero(judging)))
            taught = np.flatnonzero(~judging)
            tables = replace(site.taken(taught).tables(), classes=all_classes(self.received))
            teaching.add(tables, choosing[taught])
        return [SiteTable.concatenate(chunks) for chunks in judges.values()], teaching

    def sampled(self) -> list[SiteTable]:
        """Return the responses on randomly drawn rows, as many as evaluation rows."""
        deal = self._deal()
        some: dict[str, list[SiteTable]] = {name: [] for name in self.given}
        for name, _, site in self._asked(lambda k, first, n: deal.drawn(k, first, n)[0]):
            some[name].append(site)
        return [SiteTable.concatenate(chunks) for chunks in some.values()]

    def _deal(self) -> RowSplit:
        """Split the rows into evaluation and training rows."""
        most = ROOM * rows_that_fit(len(self.received), _n_told(self.received))
        if sorted(self.names) != sorted(self.given):
            names, given = ", ".join(self.names), ", ".join(self.given)
            raise InputError(f"held-out rows of {names}", f"are needed, each once; got {given}")
        return RowSplit.of([self.counts[name] for name in self.names], int(most))

    def _asked(self, drawn: Drawn | None = None) -> Iterator[tuple[str, int, SiteTable]]:
        """Yield the site, the number of earlier rows, and the responses on some rows.

        These are all rows, or only the drawn ones.
        """
        progress = Progress("evaluating the sources", self.console.quiet)
        total = sum(self.counts.values())
        with map_by(self.engine, list(self.received)) as ask:
            for name, first, done, site in ask(_ask_chunk, self._chunks(drawn)):
                yield name, first, site
                progress.update(min(1.0, done / total))
        progress.done()

    def _chunks(self, drawn: Drawn | None) -> Iterator[tuple[Any, ...]]:
        """Yield the site, its table, rows, minimum, number of earlier rows, and finished share."""
        done = 0
        size = max(1, min(CHUNK_ROWS, MOST_NUMBERS // len(self.names) // _n_told(self.received)))
        for name, path in self.given.items():
            k, first = self.names.index(name), 0
            for chunk in read_chunks(path, self.columns, size):
                X, y, n = chunk.X, chunk.y, len(chunk.X)
                if drawn is not None:
                    some = np.flatnonzero(drawn(k, first, n))
                    X, y = _safe_indexing(X, some), None if y is None else y[some]
                where = f"{path}, rows after {first}" if first else path
                if len(X):
                    yield name, where, (X, y), 1, first, done + first + n
                first += n
            done += first

    def _passes(self) -> Callable[[int, float], None]:
        """Report the remaining time of every pass over the rows."""
        progress, last = Progress("learning z", self.console.quiet), 0

        def tell(number: int, share: float) -> None:
            nonlocal last
            if number > last:
                progress.again(f"learning z, pass {number} over the rows")
                last = number
            progress.update(share)

        return tell


def _ask_chunk(received: Sequence[ReceivedSource], chunk: tuple[Any, ...]) -> tuple[Any, ...]:
    """Evaluate rows of a site, at least `min_rows`, and summarise them."""
    name, where, rows, min_rows, *rest = chunk
    return name, *rest, ask_sources(received, name, where, rows, min_rows=min_rows)
