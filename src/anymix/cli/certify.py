"""anymix certify: what is guaranteed, on new rows or as it was found when z was learned."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from anymix.cli.console import Console
from anymix.cli.judging import add_held_out, held_out_tables, weighed
from anymix.cli.model_folder import read_model, read_record
from anymix.cli.saving import add_save, save
from anymix.core.bounds import Assumptions
from anymix.core.certificate import certify


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    add_held_out(parser)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument(
        "--loss-bound", type=float, help="a bound M on the loss; makes the confidence exact"
    )
    add_save(parser)


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    if not args.held_out and not args.from_sites:
        found = read_record(args.model)["certificate"]
        console.result(str(found["sentence"]), found)
        return 0
    fitted = read_model(args.model)
    tables = weighed(held_out_tables(args, fitted.audited, console), fitted.model)
    problem = tables.problem(fitted.model.loss, fitted.model.eta)
    certificate = certify(
        problem,
        fitted.model.z_,
        confidence=args.confidence,
        held_out=True,
        assumptions=Assumptions(loss_bound=args.loss_bound),
    )
    record = {**certificate.to_dict(), "sentence": certificate.sentence}
    save(args, "certificate.json", record)
    console.result(certificate.sentence, record)
    return 0
