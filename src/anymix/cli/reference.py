"""anymix reference summary, join: what sites tell of their columns, to share one measure."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from anymix.cli.argument_types import count, name, natural, source_name, table
from anymix.cli.chosen_columns import Choice, add_choice
from anymix.cli.console import Console
from anymix.cli.outputs import add_force, output
from anymix.cli.reference_files import (
    REFERENCE,
    SUMMARY,
    read_summary,
    write_part,
)
from anymix.cli.table_kinds import LEAST_ROWS
from anymix.cli.training_table import read_training_table
from anymix.densities import Reference, Summary
from anymix.exceptions import InputError
from anymix.exchange import check_different, check_name

KINDS = ("marginals", "centres", "both")


def add_summary_arguments(parser: ArgumentParser) -> None:
    """Describe `reference summary`."""
    parser.add_argument("rows", type=table, metavar="TABLE", help="the site's training rows")
    parser.add_argument("--name", type=source_name, required=True, help="name of the site")
    parser.add_argument("--target", default="y", help="column with the label, which is left out")
    add_choice(parser, trains=True)
    parser.add_argument("--out", type=name, required=True, metavar="FILE", help="file to hand over")
    parser.add_argument(
        "--min-count",
        type=count,
        default=LEAST_ROWS,
        help="leave out words and numbers that fewer rows than this have",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="marginals",
        help="what to tell: each column by itself, which suits few columns of many kinds; centres "
        "of rows too, for many columns of numbers; or both",
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the centres")
    add_force(parser, "a summary")


def run_summary(args: Namespace, console: Console) -> int:
    """Run `reference summary`."""
    check_name(args.name)
    choice = Choice.of(args)
    with output(args.out, [args.rows], args.force) as temporary:
        rows = read_training_table(
            args.rows, args.target, None, least=args.min_count, choice=choice
        )
        if len(rows.X) < args.min_count:
            raise InputError(
                args.rows,
                f"has {len(rows.X)} rows, fewer than --min-count {args.min_count}; a summary of "
                "them would tell of single rows",
            )
        summary = Summary.of(
            rows.X,
            name=args.name,
            min_count=args.min_count,
            columns=rows.columns,
            kind=args.kind,
            random_state=args.seed,
        )
        write_part(temporary, SUMMARY, summary)
    lines = [f"wrote {args.out}", *(f"note: {note}" for note in rows.notes)]
    text = "\n".join([*lines, f"it tells: {summary.reveals()}"])
    console.result(text, _described(summary) | {"out": args.out}, args.out)
    return 0


def _described(summary: Summary) -> dict[str, Any]:
    return {
        "name": summary.name,
        "rows": summary.n_rows,
        "columns": summary.columns.to_dict(),
        "tells": summary.reveals(),
    }


def add_join_arguments(parser: ArgumentParser) -> None:
    """Describe `reference join`."""
    parser.add_argument("summaries", nargs="+", metavar="SUMMARY", help="files of all sites")
    parser.add_argument(
        "--out", type=name, required=True, metavar="FILE", help="reference to send to all sites"
    )
    add_force(parser, "a reference")


def run_join(args: Namespace, console: Console) -> int:
    """Run `reference join`."""
    with output(args.out, args.summaries, args.force) as temporary:
        summaries = [read_summary(path) for path in args.summaries]
        names = [summary.name for summary in summaries]
        check_different(names, "summaries", "give one of each site")
        reference = Reference.from_summaries(summaries)
        write_part(temporary, REFERENCE, reference)
    columns = reference.columns
    words = sum(len(column.categories or ()) for column in columns)
    text = (
        f"wrote {args.out}: {len(columns)} columns, {words} categories, from {len(names)} sites; "
        f"send it to all of them (kind {reference.kind})"
    )
    record = {"out": args.out, "sites": names, "kind": reference.kind}
    console.result(text, record | {"columns": columns.to_dict()}, args.out)
    return 0
