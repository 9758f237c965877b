"""Site summaries and the common reference: JSON files from untrusted sites."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anymix.cli.argument_types import count, name, natural, source_name, table
from anymix.cli.chosen_columns import add_choice
from anymix.cli.console import Console
from anymix.cli.outputs import output
from anymix.cli.streams import caution
from anymix.cli.training_table import read_training_table
from anymix.densities import (
    Reference,
    SiteColumn,
    Summary,
    WordReference,
    WordSummary,
    likely_mistakes,
    site_columns,
)
from anymix.exceptions import AuditError, InputError, MissingError
from anymix.exchange import check_different, check_name, parse_json
from anymix.storage import read_file
from anymix.tables import FEWEST_ROWS

SUMMARY, REFERENCE = "anymix summary", "anymix reference"
WORD_SUMMARY, WORD_REFERENCE = "anymix word summary", "anymix word reference"
PARTS: dict[str, Any] = {
    SUMMARY: Summary,
    WORD_SUMMARY: WordSummary,
    REFERENCE: Reference,
    WORD_REFERENCE: WordReference,
}
SCHEMA = 1
GIVE_SUMMARY, GIVE_REFERENCE = (
    f"give an output of anymix reference {verb}" for verb in ("summary", "join")
)
# Bytes of a file: a summary of five thousand numeric columns takes about 4 MB.
LIMITS = {GIVE_SUMMARY: 2**24, GIVE_REFERENCE: 2**27}
MARKS = {GIVE_SUMMARY: 2_000_000, GIVE_REFERENCE: 20_000_000}
# Limits of `reference join` output: lines, categories in a line, characters of a name.
MOST_LINES, SHOWN, WIDEST = 120, 8, 24


def write_part(path: Path, part: Any) -> None:
    """Write a summary or a reference as one JSON object."""
    kind = next(kind for kind, each in PARTS.items() if type(part) is each)
    whole = {"kind": kind, "schema": SCHEMA, "content": part.to_dict()}
    path.write_text(json.dumps(whole, allow_nan=False) + "\n", encoding="utf-8")


def read_part(path: str | Path, *kinds: str) -> Any:
    """Read a summary or a reference, which may come from an untrusted site."""
    give = GIVE_REFERENCE if REFERENCE in kinds or WORD_REFERENCE in kinds else GIVE_SUMMARY
    try:
        data = parse_json(read_file(Path(path), LIMITS[give]), str(path), MARKS[give])
    except FileNotFoundError as error:
        raise MissingError(path, f"does not exist; {give}") from error
    except AuditError as error:
        raise AuditError(error.where, f"{error.cause}; {give}") from error
    due = " or ".join(kinds)
    if not isinstance(data, dict) or set(data) != {"kind", "schema", "content"}:
        raise AuditError(path, f"is not an {due}: kind, schema or content is missing; {give}")
    if data["kind"] not in kinds:
        stated = f"but states that it is {data['kind']!r:.60}"
        raise AuditError(path, f"is not an {due}, {stated}; {give}")
    if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
        raise AuditError(path, f"has schema {data['schema']!r:.20}; this version reads {SCHEMA}")
    try:
        return PARTS[data["kind"]].from_dict(data["content"])
    except ValueError as error:
        raise AuditError(path, f"is invalid: {str(error).rstrip('.')}") from error


def add_summary_arguments(parser: ArgumentParser) -> None:
    """Describe `reference summary`."""
    parser.add_argument("rows", type=table, metavar="TABLE", help="the site's training rows")
    parser.add_argument("--name", type=source_name, required=True, help="name of the site")
    parser.add_argument("--target", default="y", help="column with the label, which is left out")
    add_choice(parser, trains=True)
    parser.add_argument("--out", type=name, required=True, metavar="FILE", help="file to send")
    parser.add_argument(
        "--min-count",
        type=count,
        default=FEWEST_ROWS,
        help="leave out categories and numbers that occur in fewer rows than this",
    )
    parser.add_argument(
        "--kind",
        choices=("marginals", "both"),
        default="both",
        help="content: each column by itself, or also means of groups of rows, which "
        "describe columns that depend on each other",
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the centres")
    parser.add_argument("--force", action="store_true", help="replace an existing summary")


def run_summary(args: Namespace, console: Console) -> int:
    """Run `reference summary`."""
    check_name(args.name)
    with (
        output(args.out, [args.rows], args.force) as temporary,
        console.working("summarising the table"),
    ):
        rows = read_training_table(args, None, least=args.min_count)
        if len(rows.X) < args.min_count:
            raise InputError(
                args.rows,
                f"has {len(rows.X)} rows, fewer than --min-count {args.min_count}; a summary of "
                "so few would reveal single rows",
            )
        summary: Summary | WordSummary
        named: dict[str, Any] = {"name": args.name, "min_count": args.min_count}
        if args.text:
            summary = WordSummary.of(rows.X, **named)
        else:
            more = {"columns": rows.columns, "kind": args.kind, "random_state": args.seed}
            summary = Summary.of(rows.X, **named, **more)
        write_part(temporary, summary)
    lines = [f"wrote {args.out}", *(f"note: {note}" for note in rows.notes)]
    text = "\n".join([*lines, f"it reveals: {summary.reveals()}"])
    record = {"name": summary.name, "rows": summary.n_rows, "out": args.out}
    if isinstance(summary, Summary):
        record["columns"] = summary.columns.to_dict()
    console.result(text, record | {"tells": summary.reveals()}, args.out)
    return 0


def add_join_arguments(parser: ArgumentParser) -> None:
    """Describe `reference join`."""
    parser.add_argument("summaries", nargs="+", metavar="SUMMARY", help="files of all sites")
    parser.add_argument(
        "--out", type=name, required=True, metavar="FILE", help="reference to send to all sites"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing reference")


def run_join(args: Namespace, console: Console) -> int:
    """Run `reference join`."""
    with output(args.out, args.summaries, args.force) as temporary:
        summaries = [read_part(path, SUMMARY, WORD_SUMMARY) for path in args.summaries]
        names = [summary.name for summary in summaries]
        check_different(names, "summaries", "give one of each site")
        of_words = [isinstance(summary, WordSummary) for summary in summaries]
        if len(set(of_words)) > 1:
            raise InputError(
                args.summaries[of_words.index(True)],
                "is a vocabulary, but another file describes columns; make all summaries with "
                "--text, or all without",
            )
        kind: Any = WordReference if of_words[0] else Reference
        reference = kind.from_summaries(summaries)
        write_part(temporary, reference)
    if of_words[0]:
        text = f"wrote {args.out}: {len(reference.words)} words, from {len(names)} sites; send it "
        record = {"out": args.out, "sites": names, "words": len(reference.words)}
        console.result(f"{text}to all of them", record, args.out)
        return 0
    columns, every = reference.columns, site_columns(summaries)
    for mistake in likely_mistakes(summaries):
        caution(f"{mistake}.")
    n_categories = sum(len(column.categories or ()) for column in columns)
    text = (
        f"{_side_by_side(every)}\n\n"
        f"wrote {args.out}: {len(columns)} columns, {n_categories} categories, from {len(names)} "
        f"sites; send it to all of them (kind {reference.kind})"
    )
    record = {"out": args.out, "sites": names, "kind": reference.kind}
    record |= {"columns": columns.to_dict(), "by_site": [one._asdict() for one in every]}
    console.result(text, record, args.out)
    return 0


def _side_by_side(every: Sequence[SiteColumn]) -> str:
    """Return a line for each column and site; only the first if there are many columns."""
    lines = [("column", "site", "missing", "range (5 to 95 %) or categories")]
    for before, one in zip((None, *every), every, strict=False):
        shown = "no value"
        if one.categories is not None:
            some = ", ".join(one.categories[:SHOWN])
            shown = some + ", …" * (len(one.categories) > SHOWN)
        elif one.low is not None:
            shown = f"{one.low:.4g} to {one.high:.4g}"
        name = "" if before is not None and before.column == one.column else one.column
        lines.append((shortened(name), shortened(one.site), f"{100 * one.missing:.0f} %", shown))
    left, lines = len(lines) - MOST_LINES, lines[:MOST_LINES]
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    parts = [[cell.ljust(w) for cell, w in zip(line, widths, strict=False)] for line in lines]
    text = ["  ".join([*cells, line[3]]).rstrip() for cells, line in zip(parts, lines, strict=True)]
    return "\n".join([*text, f"… {left} more lines; --json lists all"] if left > 0 else text)


def shortened(name: str) -> str:
    """Shorten a long name."""
    return name if len(name) <= WIDEST else f"{name[: WIDEST - 1]}…"
