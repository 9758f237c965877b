"""Where held-out rows are while z is learned: in memory, or in chunks on disk if they are many."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from anymix._errors import InputError
from anymix.cli.console import Console
from anymix.cli.held_out import ask_sources, pairs
from anymix.cli.table_reader import CHUNK_ROWS, Columns, count_rows, read_chunks
from anymix.engines import Deal, Store, TeachingInChunks, ThreadMap
from anymix.exchange import MOST_NUMBERS, ReceivedSource, SiteTable, all_classes
from anymix.models import rows_that_fit

ENGINES = ("auto", "memory", "chunks")
# Rows are drawn, so that there may be some more than were meant.
ROOM = 0.95


def add_engine(parser: ArgumentParser) -> None:
    """Add the choice of an engine."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="hold the rows in memory, or in chunks on disk; auto: in memory while a model folder "
        "can hold what the sources say of them",
    )


def in_chunks(args: Namespace, received: Sequence[ReceivedSource]) -> bool:
    """Whether rows are to be held on disk: as is asked for, or because they are many."""
    if args.engine != "auto" or not args.held_out:
        return bool(args.engine == "chunks" and args.held_out)
    n = sum(count_rows(path) for path in pairs(args.held_out).values())
    return n > rows_that_fit(len(received), _n_told(received))


def _n_told(received: Sequence[ReceivedSource]) -> int:
    classes = all_classes(received)
    return 1 if classes is None else classes.size


class HeldOutInChunks:
    """The tables of --held-out, read chunk by chunk; each source is asked once about each row."""

    def __init__(self, args: Namespace, received: Sequence[ReceivedSource], console: Console):
        self.received, self.console = received, console
        self.given = pairs(args.held_out)
        self.columns = Columns.of([one.manifest for one in received], args.target)
        self.names = [one.manifest.name for one in received]
        self.counts = {name: count_rows(path) for name, path in self.given.items()}

    def split(self, store: Store) -> tuple[list[SiteTable], TeachingInChunks]:
        """Return what the sources say of the rows that judge, and all others to learn from."""
        deal, classes = self._deal(), all_classes(self.received)
        judges: dict[str, list[SiteTable]] = {name: [] for name in self.given}
        teaching = TeachingInChunks(store, ThreadMap(progress=self._passes()))
        for name, first, site in self._asked():
            judging, choosing = deal.drawn(self.names.index(name), first, site.n_rows)
            judges[name].append(site.taken(np.flatnonzero(judging)))
            taught = np.flatnonzero(~judging)
            tables = replace(site.taken(taught).tables(), classes=classes)
            teaching.add(tables, choosing[taught])
        return [SiteTable.concatenate(chunks) for chunks in judges.values()], teaching

    def _deal(self) -> Deal:
        """Share the rows out to those that judge and those that teach."""
        most = ROOM * rows_that_fit(len(self.received), _n_told(self.received))
        for name in self.names:
            if name not in self.given:
                raise InputError(f"held-out rows of {name}", "are needed; give them by --held-out")
        return Deal.of([self.counts[name] for name in self.names], int(most))

    def _asked(self) -> Iterator[tuple[str, int, SiteTable]]:
        """Yield the site, how many rows came before, and what the sources say of some rows."""
        progress, done = self.console.progress("asking the sources"), 0
        size = max(1, min(CHUNK_ROWS, MOST_NUMBERS // len(self.names) // _n_told(self.received)))
        for name, path in self.given.items():
            first = 0
            for chunk in read_chunks(path, self.columns, size):
                where = f"{path}, rows after {first}" if first else path
                yield (
                    name,
                    first,
                    ask_sources(self.received, name, where, (chunk.X, chunk.y), min_rows=1),
                )
                first += len(chunk.X)
                progress.update(min(1.0, (done + first) / sum(self.counts.values())))
            done += first
        progress.done()

    def _passes(self) -> Callable[[int, float], None]:
        """Tell of every pass over the rows how long it will take."""
        progress, last = self.console.progress("learning z"), 0

        def tell(number: int, share: float) -> None:
            nonlocal last
            if number > last:
                progress.again(f"learning z, pass {number} over the rows")
                last = number
            progress.update(share)

        return tell
