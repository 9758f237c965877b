"""anymix fit: make a model folder of source folders and held-out rows or site files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from anymix.cli.argument_types import folder, share, share_range, source_name
from anymix.cli.console import Console
from anymix.cli.engine_option import add_engine
from anymix.cli.held_out import (
    ROWS_ENGINES,
    HeldOutInChunks,
    add_groups,
    add_held_out,
    held_out_sites,
    in_chunks,
    pairs,
)
from anymix.cli.outputs import check_apart, tidying
from anymix.core import plain
from anymix.engines import Store
from anymix.exceptions import InputError
from anymix.exchange import read_alike
from anymix.models import fit_folder, reserved
from anymix.sources import MOST_SOURCES


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders")
    parser.add_argument(
        "--out", type=folder, required=True, metavar="FOLDER", help="model folder to write"
    )
    add_held_out(parser)
    add_groups(parser)
    _add_learning_arguments(parser)
    add_engine(parser, ROWS_ENGINES)
    parser.add_argument("--force", action="store_true", help="replace an existing model folder")


def _add_learning_arguments(parser: ArgumentParser) -> None:
    """Describe the options of the learner."""
    parser.add_argument(
        "--objective",
        choices=("regret", "robust", "gamma"),
        default="regret",
        help="what z minimises: regret, the loss above that of each source's own model; robust, "
        "the worst loss; gamma, the duality gap of the paper",
    )
    parser.add_argument(
        "--eta", type=share, default=1e-3, help="share of the mean density in the weights"
    )
    parser.add_argument(
        "--confidence", type=share, default=0.95, help="confidence of the certificate"
    )
    parser.add_argument(
        "--set-aside",
        type=source_name,
        action="append",
        metavar="NAME",
        help="a source whose rows do not influence z (may be repeated); 'worst': the source "
        "whose rows harm another, if there is one",
    )
    parser.add_argument(
        "--mixture",
        type=share_range,
        action="append",
        metavar="NAME=LEAST:MOST",
        help="known share of a source in future rows, such as north=0.4:0.7 (may be "
        "repeated): z and the certificate are for these mixtures only",
    )
    parser.add_argument(
        "--no-calibration", action="store_true", help="use the densities without calibration"
    )
    parser.add_argument(
        "--no-consulting",
        action="store_true",
        help="do not let sources consult the models of the others",
    )


def settings_of(args: Namespace) -> dict[str, Any]:
    """Return the settings of the estimator."""
    return {
        "objective": args.objective,
        "eta": args.eta,
        "confidence": args.confidence,
        "calibrate": not args.no_calibration,
        "consult": not args.no_consulting,
        "set_aside": "worst" if args.set_aside == ["worst"] else args.set_aside,
        "mixtures": dict(args.mixture) if args.mixture else None,
    }


def run(args: Namespace, console: Console) -> int:
    """Run the command; the output folder is reserved before the long work."""
    check_apart(
        args.out, [*args.sources, *pairs(args.held_out or ()).values(), *(args.from_sites or ())]
    )
    with tidying(args.out), reserved(args.out) as place:
        replaced = place.record is not None
        if replaced and not args.force:
            raise InputError(
                args.out, "holds a model; choose another name, or replace it with --force"
            )
        received, settings = read_alike(args.sources), settings_of(args)
        if in_chunks(args, received):
            with Store() as store:
                sites, teaching = HeldOutInChunks(args, received, console).split(store)
                model, record = fit_folder(place, received, sites, teaching=teaching, **settings)
        else:
            sites = held_out_sites(args, received, console)
            with console.working("learning z"):
                model, record = fit_folder(place, received, sites, **settings)
    wrote = f"wrote {args.out}" + ", replacing the previous model" * replaced
    if model.taught_:
        judged = model.tables_.n_points
        wrote = f"learned from {model.taught_} rows; evaluated on {judged} random rows\n{wrote}"

    def whole() -> dict[str, Any]:
        """Add the influence of each source: it takes as long as fit, so only --json computes it."""
        if not 1 < len(model.source_names_) <= MOST_SOURCES:
            return record
        found = model.influence_
        return record | {"influence": {**plain(found), "sentences": found.sentences()}}

    console.result(lambda: f"{model.describe()}\n\n{wrote}", whole)
    return 0
