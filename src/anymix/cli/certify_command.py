"""anymix certify: what is guaranteed, on new rows or on the rows of fit."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import add_measure, positive, share
from anymix.cli.console import Console
from anymix.cli.engine_option import add_engine
from anymix.cli.held_out import (
    ROWS_ENGINES,
    HeldOutInChunks,
    add_groups,
    add_held_out,
    held_out_sites,
    in_chunks,
)
from anymix.cli.outputs import saving
from anymix.exceptions import UsageError
from anymix.models import add_record, certify_sites, read_certificate, read_model

CONFIDENCE = 0.95


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    add_held_out(parser)
    add_groups(parser)
    parser.add_argument(
        "--confidence",
        type=share,
        help=f"confidence of the bounds on new rows (default: {CONFIDENCE})",
    )
    parser.add_argument(
        "--loss-bound",
        type=positive,
        help="a known upper bound M of the loss of new rows; it makes the confidence exact",
    )
    parser.add_argument(
        "--subpopulation",
        type=share,
        metavar="SHARE",
        help="also bound the loss on every subpopulation of at least this share of any mixture",
    )
    add_measure(parser, "certify another measure of new rows", means=True)
    add_engine(parser, ROWS_ENGINES)
    parser.add_argument("--save", action="store_true", help="save the result in the model folder")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    if not args.held_out and not args.from_sites:
        for option in ("confidence", "loss_bound", "measure", "save"):
            if getattr(args, option):
                option = f"--{option.replace('_', '-')}"
                raise UsageError(
                    f"{option} needs new rows; give them with --held-out or --from-sites, or leave "
                    f"{option} out to show the certificate of fit."
                )
        found = read_certificate(args.model, args.subpopulation)
        if found is None:
            raise ValueError(
                f"{args.model} has no certificate: it has one source, its training rows "
                "stayed at their sites, or z was adapted to "
                "traffic; give new rows with --held-out."
            )
        console.result(found.sentence, found)
        return 0
    confidence = CONFIDENCE if args.confidence is None else args.confidence
    with saving(args.model, args.save):
        saved = read_model(args.model)
        if large := in_chunks(args, saved.received):
            sites = HeldOutInChunks(args, saved.received, console).sampled()
        else:
            sites = held_out_sites(args, saved.received, console)
        with console.working("bounding the loss"):
            given = confidence, args.loss_bound, args.measure, args.subpopulation
            certificate, _ = certify_sites(saved, sites, *given)
        if args.save:
            add_record(args.model, "certificate", certificate, saved.sha256)
    note = f"\nEvaluated on {sum(site.n_rows for site in sites)} random rows." * large
    console.result(certificate.sentence + note, certificate)
    return 0
