"""anymix federate: write a Flower app or an NVFlare job for sites that keep their rows."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from anymix.cli.argument_types import folder
from anymix.cli.console import Console
from anymix.cli.outputs import check_apart
from anymix.engines import ADDRESSES, prepare_kit, write_app
from anymix.exceptions import UsageError
from anymix.exchange import MIN_ROWS, ReceivedSource, read_alike

KINDS = {"flower": "a Flower app", "nvflare": "an NVFlare job"}


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders")
    parser.add_argument(
        "--engine", choices=KINDS, default="flower", help="framework that carries the messages"
    )
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--out", type=folder, metavar="APP", help="folder of the app or job to write"
    )
    place.add_argument(
        "--kit",
        metavar="KIT",
        help="NVFlare start-up kit of this machine, which receives its settings",
    )
    parser.add_argument(
        "--address",
        "--superlink",
        metavar="ADDRESS",
        help="address of the server, as host:port; by default "
        + ", ".join(f"{ADDRESSES[name]} ({name})" for name in KINDS),
    )
    parser.add_argument("--force", action="store_true", help="replace an existing app or job")
    own = parser.add_argument_group("for this machine, with --kit")
    own.add_argument("--rows", metavar="TABLE", help="table of the site's rows")
    own.add_argument("--target", default="y", metavar="COL", help="column of the target")
    own.add_argument(
        "--min-rows",
        type=int,
        default=MIN_ROWS,
        metavar="N",
        help="refuse to evaluate fewer rows than this",
    )
    own.add_argument("--model", type=folder, metavar="MODEL", help="at the server: model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    received = read_alike(args.sources)
    if args.kit is not None:
        return _prepare(args, received, console)
    check_apart(args.out, args.sources)
    write_app(received, args.out, args.address or "", args.engine, force=args.force)
    names = [one.manifest.name for one in received]
    text = (
        f"wrote {args.out}: {KINDS[args.engine]} for the sites {', '.join(names)}; its README.md "
        "has the commands to run it"
    )
    console.result(text, {"out": args.out, "sites": names}, args.out)
    return 0


def _prepare(args: Namespace, received: list[ReceivedSource], console: Console) -> int:
    """Write the settings of a site or of the server into its start-up kit."""
    if args.engine != "nvflare":
        raise UsageError("--kit is a start-up kit of NVFlare; add --engine nvflare.")
    if (args.rows is None) == (args.model is None):
        raise UsageError("--kit needs --rows at a site, or --model at the server.")
    parents = {Path(one.folder).resolve().parent for one in received}
    if len(parents) > 1:
        raise UsageError("--kit needs the source folders in one folder; move them there.")
    own: dict[str, Any] = {"sources": str(*parents)}
    if args.model is not None:
        own["out"] = str(Path(args.model).resolve())
    else:
        rows = {"rows": str(Path(args.rows).resolve()), "target": args.target}
        own |= rows | {"min-rows": args.min_rows}
    path = prepare_kit(args.kit, own)
    console.result(f"wrote {path}", {"file": str(path), **own}, str(path))
    return 0
