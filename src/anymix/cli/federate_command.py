"""anymix federate: a Flower app that learns one model from sites which keep their rows."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import folder
from anymix.cli.console import Console
from anymix.cli.outputs import check_apart
from anymix.engines import ADDRESS, write_app
from anymix.exchange import read_alike


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders")
    parser.add_argument(
        "--out", type=folder, required=True, metavar="APP", help="folder of the app to write"
    )
    parser.add_argument(
        "--superlink",
        default=ADDRESS,
        metavar="ADDRESS",
        help="where the server will be, as host:port",
    )


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    check_apart(args.out, args.sources)
    received = read_alike(args.sources)
    write_app(received, args.out, args.superlink)
    names = [one.manifest.name for one in received]
    text = (
        f"wrote {args.out}: a Flower app for the sites {', '.join(names)}; its README.md has the "
        "four commands that run it"
    )
    console.result(text, {"out": args.out, "sites": names}, args.out)
    return 0
