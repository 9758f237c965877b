"""anymix fit: source folders and held-out rows, or the sites' files, become a model folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from anymix._errors import InputError
from anymix.cli.argument_types import name, share
from anymix.cli.console import Console
from anymix.cli.held_out import add_held_out, held_out_sites, tables_of
from anymix.cli.outputs import add_force, check_apart, tidying
from anymix.core import plain
from anymix.exchange import read_alike
from anymix.models import fit_folder, reserved
from anymix.sources import MOST_SOURCES


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders")
    parser.add_argument(
        "--out", type=name, required=True, metavar="FOLDER", help="model folder to write"
    )
    add_held_out(parser)
    parser.add_argument(
        "--objective",
        choices=("regret", "robust", "gamma"),
        default="regret",
        help="what z minimises: the loss beyond that of each source's own model at home, the worst "
        "loss, or the paper's gap",
    )
    parser.add_argument(
        "--eta", type=share, default=1e-3, help="share of the mean density in the weights"
    )
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the certificate"
    )
    parser.add_argument(
        "--set-aside",
        action="append",
        metavar="NAME",
        help="a source whose rows are not to choose z (may be repeated); 'worst': the one whose "
        "rows harm another, if there is one",
    )
    parser.add_argument(
        "--no-calibration", action="store_true", help="use the densities as they come"
    )
    parser.add_argument(
        "--no-consulting", action="store_true", help="let no source hear the models of the others"
    )
    add_force(parser, "a model folder")


def influence_of(model: Any) -> dict[str, Any]:
    """What is said of influence, beside what the folder holds: it can be found there again."""
    if not 1 < len(model.source_names_) <= MOST_SOURCES:
        return {}
    return {"influence": {**plain(model.influence_), "sentences": model.influence_.sentences()}}


def run(args: Namespace, console: Console) -> int:
    """Run the command; the place for the model is taken before the long work."""
    check_apart(args.out, [*args.sources, *tables_of(args)])
    with tidying(args.out), reserved(args.out) as place:
        if place.record is not None and not args.force:
            raise InputError(
                args.out, "holds a model; choose another name, or replace it by --force"
            )
        received = read_alike(args.sources)
        sites = held_out_sites(args, received, console)
        with console.working("learning z"):
            model, record = fit_folder(
                place,
                received,
                sites,
                objective=args.objective,
                eta=args.eta,
                confidence=args.confidence,
                calibrate=not args.no_calibration,
                consult=not args.no_consulting,
                set_aside="worst" if args.set_aside == ["worst"] else args.set_aside,
            )
    replaced = place.record is not None
    wrote = f"wrote {args.out}" + ", in place of the model that was there" * replaced
    console.result(f"{model.describe()}\n\n{wrote}", record | influence_of(model))
    return 0
