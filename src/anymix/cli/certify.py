"""anymix certify: what is guaranteed, on new rows or as it was found when z was learned."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.argument_types import positive, share
from anymix.cli.console import Console
from anymix.cli.judging import add_held_out, held_out_tables, weighed
from anymix.cli.model_folder import FittedFolder, read_model, read_record
from anymix.cli.saving import add_save, save
from anymix.cli.seen_rows import note_on, seen_sources
from anymix.core import Assumptions, Certificate, Problem, certify, n_rounded

CONFIDENCE = 0.95


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    add_held_out(parser)
    parser.add_argument(
        "--confidence", type=share, help=f"of the bounds on new rows (default: {CONFIDENCE})"
    )
    parser.add_argument(
        "--loss-bound",
        type=positive,
        help="a bound M on the loss of new rows; makes the confidence exact",
    )
    add_save(parser)


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    if not args.held_out and not args.from_sites:
        _check_no_wishes(args)
        found = read_record(args.model)["certificate"]
        console.result(str(found["sentence"]), found)
        return 0
    fitted = read_model(args.model)
    tables = held_out_tables(args, fitted.audited, console)
    seen = seen_sources(tables, fitted)
    problem = weighed(tables, fitted.model).problem(fitted.model.loss, fitted.model.eta)
    certificate = _certificate(args, problem, fitted, not seen)
    record = {**certificate.to_dict(), "sentence": certificate.sentence}
    save(args, "certificate.json", record)
    console.result(certificate.sentence + note_on(seen), record)
    return 0


def _check_no_wishes(args: Namespace) -> None:
    """What fit has certified stands as it is: options that only new rows can obey are refused."""
    wishes = {
        "--confidence": args.confidence is not None,
        "--loss-bound": args.loss_bound is not None,
        "--save": args.save,
    }
    for option, given in wishes.items():
        if given:
            raise ValueError(
                f"{option} needs new rows; give them with --held-out or --from-sites, or leave "
                f"{option} out to see what fit has certified."
            )


def _certificate(
    args: Namespace, problem: Problem, fitted: FittedFolder, new_rows: bool
) -> Certificate:
    """Certify z; on the rows it was learned from, share the error among all that fit could choose.

    That is each rounded z with each sharpness of the weighing, of which fit has kept the number.
    """
    n_candidates, p = fitted.record["certificate"]["n_candidates"], problem.n_sources
    return certify(
        problem,
        fitted.model.z_,
        confidence=CONFIDENCE if args.confidence is None else args.confidence,
        held_out=new_rows,
        choices=max(1.0, n_candidates / n_rounded(p)),
        assumptions=Assumptions(loss_bound=args.loss_bound),
    )
