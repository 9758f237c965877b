"""anymix export: the whole model as one ONNX file, to be run without anymix."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

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
    text = f"wrote {args.out}: {len(content) / 2**10:.0f} kB; input X, float64"
    console.result(text, {"out": args.out, "bytes": len(content)}, args.out)
    return 0
