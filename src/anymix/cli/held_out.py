"""Held-out rows of each source, from tables that are here or from the files of the sites."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from anymix.cli.argument_types import source_name, table
from anymix.cli.chosen_columns import add_choice, columns_for
from anymix.cli.console import Console
from anymix.cli.engine_option import asked
from anymix.cli.table_reader import read_rows
from anymix.exceptions import InputError, UsageError
from anymix.exchange import ReceivedSource, SiteTable, evaluate_site, read_site


def add_held_out(parser: ArgumentParser) -> None:
    """Add the two ways of giving held-out rows."""
    parser.add_argument(
        "--held-out",
        nargs="+",
        action="extend",
        metavar="NAME=TABLE",
        help="held-out rows of each source, on which nothing was trained",
    )
    parser.add_argument("--target", default="y", help="column of the tables with the label")
    add_choice(parser)
    parser.add_argument(
        "--from-sites",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="files that `anymix site evaluate` wrote, in place of rows",
    )


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Read NAME=TABLE.

    Examples
    --------
    >>> pairs(["north=north.csv"])
    {'north': 'north.csv'}
    """
    found: dict[str, str] = {}
    for entry in given:
        named, equals, path = entry.partition("=")
        name = source_name(named)
        if not equals or not path:
            raise UsageError(
                f"--held-out takes NAME=TABLE, such as north=north.csv; got {entry!r}."
            )
        if name in found:
            raise UsageError(f"--held-out names {name!r} twice; join its tables.")
        for other, its in found.items():
            if its == table(path):
                raise UsageError(
                    f"--held-out gives {path} for both {other!r} and {name!r}; give each source "
                    "its own rows."
                )
        found[name] = table(path)
    return found


def tables_of(args: Namespace) -> list[str]:
    """Name the files that --held-out and --from-sites read."""
    return [*pairs(args.held_out or ()).values(), *(args.from_sites or ())]


def held_out_sites(
    args: Namespace, received: Sequence[ReceivedSource], console: Console
) -> list[SiteTable]:
    """Return what each site says, from rows that are here or from the files of the sites."""
    if bool(args.held_out) == bool(args.from_sites):
        raise UsageError(
            "give held-out rows with --held-out, or the sites' files with --from-sites, one of the "
            "two."
        )
    if args.from_sites:
        return [read_site(path) for path in args.from_sites]
    columns = columns_for(args, received)
    given = pairs(args.held_out)
    progress, sites = console.progress("asking the sources"), []
    tables = ((name, path, read_rows(path, columns)) for name, path in given.items())
    with asked(getattr(args, "engine", None), list(received)) as ask:
        for i, site in enumerate(ask(_ask_at_home, tables), 1):
            sites.append(site)
            progress.update(i / len(given))
    progress.done()
    return sites


def _ask_at_home(received: Sequence[ReceivedSource], table: tuple[str, str, Any]) -> SiteTable:
    return ask_sources(received, *table, min_rows=2)


def ask_sources(
    received: Sequence[ReceivedSource], name: str, path: str, rows: tuple[Any, Any], **options: Any
) -> SiteTable:
    """Evaluate a site's rows; what is wrong with them is said with the name of their table."""
    try:
        return evaluate_site(received, name, *rows, **options)
    except InputError as error:
        raise InputError(f"{path}: {error.where}", error.cause) from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
