"""anymix export: write the whole model in formats that are served without anymix."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import Any

from anymix.cli.argument_types import name
from anymix.cli.console import Console
from anymix.cli.outputs import (
    EXISTS,
    check_apart,
    check_folder,
    check_suffix,
    output,
    tidying,
)
from anymix.exceptions import InputError, UsageError
from anymix.exchange import table_columns
from anymix.models import (
    Exported,
    card_facts,
    export_model,
    read_model,
    reserved,
    share,
    summarise_folder,
)
from anymix.report import CardFacts, render_card
from anymix.storage import write_folder
from anymix.tables import Columns as Coding
from anymix.tables import read_rows

FORMS = (("out", "an ONNX file", (".onnx",)), ("card", "a card in Markdown", (".md", ".markdown")))


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("out", type=name, nargs="?", metavar="FILE", help="ONNX file to write")
    parser.add_argument(
        "--float32",
        action="store_true",
        help="use float32 for inputs and outputs instead of float64; refused if a prediction "
        "changes by more than 0.001",
    )
    parser.add_argument(
        "--rows",
        metavar="TABLE",
        help="rows on which float32 is compared with float64; by default they are drawn from the "
        "densities",
    )
    parser.add_argument("--mlflow", type=name, metavar="FOLDER", help="write a folder for MLflow")
    parser.add_argument(
        "--card", type=name, metavar="CARD.md", help="write a model card in Markdown"
    )
    parser.add_argument(
        "--shareable",
        type=name,
        metavar="FOLDER",
        help="write a model folder with only the predictor and the certificate: no table, "
        "target or hash of a held-out row",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="recompute the folder's evidence from its tables, and refuse it if they disagree",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing output")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    outputs = (args.out, args.mlflow, args.card, args.shareable)
    if not any(place is not None for place in outputs):
        raise UsageError(
            "export needs the name of an ONNX FILE, or --mlflow, --card or --shareable."
        )
    if args.rows is not None and not args.float32:
        raise UsageError("--rows is only for --float32; leave it out, or add --float32.")
    for form, what, suffixes in FORMS:
        if (out := getattr(args, form)) is not None:
            check_apart(out, [args.model])
            check_suffix(out, what, suffixes)
    places = [os.path.realpath(place) for place in outputs if place is not None]
    for place in places:
        if places.count(place) > 1:
            raise UsageError(f"{place} is named for two outputs; give each its own name.")
    record: dict[str, Any] = {}
    lines: list[str] = []
    if args.card is not None:
        with output(args.card, [args.model], args.force) as temporary:
            facts = CardFacts(**card_facts(read_model(args.model).received))  # type: ignore[typeddict-item]
            text = render_card(summarise_folder(args.model, verify=args.verify), facts)
            temporary.write_text(text, encoding="utf-8", newline="\n")
        record["card"] = args.card
        lines.append(f"wrote {args.card}")
    if args.mlflow is not None:
        lines.append(_write_mlflow(args, record))
    if args.out is not None:
        lines.append(_write_graph(args, record))
    if args.shareable is not None:
        lines.append(_write_shareable(args, record))
    console.result("\n".join(lines), record, args.out or args.card)
    return 0


def _export(args: Namespace) -> Exported:
    rows = None
    if args.rows is not None:
        received = read_model(args.model).received
        rows, _ = read_rows(args.rows, table_columns([one.manifest for one in received]))
    return export_model(args.model, float32=args.float32, rows=rows, verify=args.verify)


def _write_graph(args: Namespace, record: dict[str, Any]) -> str:
    with output(args.out, [args.model], args.force) as temporary:
        found = _export(args)
        temporary.write_bytes(found.content)
    columns = found.received[0].manifest.columns
    record |= {"out": args.out, "bytes": len(found.content)}
    record |= {} if columns is None else {"columns": columns.to_dict()}
    dtype = "float32" if args.float32 else "float64"
    size = f"{len(found.content) / 2**10:.0f} kB"
    return f"wrote {args.out}: {size}; input X, {dtype}{_coding(columns)}{_apart(found, record)}"


def _write_mlflow(args: Namespace, record: dict[str, Any]) -> str:
    replaced = check_folder(args.mlflow, [args.model], args.force)
    found = _export(args)
    write_folder(args.mlflow, found.mlflow_files(), replace=replaced)
    record["mlflow"] = args.mlflow
    return f"wrote {args.mlflow}: open it with mlflow.pyfunc.load_model{_apart(found, record)}"


def _write_shareable(args: Namespace, record: dict[str, Any]) -> str:
    check_apart(args.shareable, [args.model])
    with tidying(args.shareable), reserved(args.shareable) as place:
        if place.record is not None and not args.force:
            raise InputError(args.shareable, EXISTS)
        share(args.model, place)
    record["shareable"] = args.shareable
    return f"wrote {args.shareable}: the predictor and the certificate, without held-out rows"


def _apart(found: Exported, record: dict[str, Any]) -> str:
    """State the largest difference between float32 and float64."""
    if found.difference is None:
        return ""
    record["difference"] = found.difference._asdict()
    return f"; {found.difference}"


def _coding(columns: Coding | None) -> str:
    """State how categories and missing values are encoded as numbers."""
    if columns is None:
        return ""
    worded = next((column for column in columns if column.categories), None)
    if worded is None or worded.categories is None:
        return ": a missing value is NaN"
    return (
        ': a missing value is NaN, a category its position in the metadata "columns" '
        f"({worded.name}: {worded.categories[0]} is 0)"
    )
