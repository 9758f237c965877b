"""anymix export: the whole model as one ONNX file, to be run without anymix."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from anymix._columns import Columns
from anymix.cli.argument_types import name
from anymix.cli.console import Console
from anymix.cli.outputs import add_force, is_graph, output
from anymix.exchange import export_onnx
from anymix.models import read_model


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("out", type=name, metavar="FILE", help="ONNX file to write")
    add_force(parser, "a graph")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    with output(args.out, [args.model], args.force, is_graph) as temporary:
        saved = read_model(args.model)
        content = export_onnx(saved.received, saved.model.combination_, saved.model.router_)
        temporary.write_bytes(content)
    columns = saved.received[0].manifest.columns
    text = f"wrote {args.out}: {len(content) / 2**10:.0f} kB; input X, float64{_coding(columns)}"
    record: dict[str, Any] = {"out": args.out, "bytes": len(content)}
    if columns is not None:
        record["columns"] = columns.to_dict()
    console.result(text, record, args.out)
    return 0


def _coding(columns: Columns | None) -> str:
    """Say how a table with words or gaps becomes numbers.

    Examples
    --------
    >>> from anymix._columns import Column
    >>> _coding(Columns((Column("age"), Column("sex", ("f", "m")))))
    ': a gap is NaN, a word the place of its category in the metadata "columns" (sex: f is 0)'
    """
    if columns is None:
        return ""
    worded = [column for column in columns if column.categories]
    if not worded:
        return ": a gap is NaN"
    first = worded[0]
    return (
        ': a gap is NaN, a word the place of its category in the metadata "columns" '
        f"({first.name}: {first.categories[0]} is 0)"
    )
