"""anymix certify: what is guaranteed, on new rows or as it was found when z was learned."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from anymix.cli.console import Console
from anymix.cli.judging import add_held_out, held_out_tables, weighed
from anymix.cli.model_folder import FittedFolder, read_model, read_record
from anymix.cli.saving import add_save, save
from anymix.cli.seen_rows import note_on, seen_sources
from anymix.core.bounds import Assumptions
from anymix.core.certificate import Certificate, certify
from anymix.core.problem import Problem
from anymix.core.rounding import n_rounded


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
    tables = held_out_tables(args, fitted.audited, console)
    seen = seen_sources(tables, fitted)
    problem = weighed(tables, fitted.model).problem(fitted.model.loss, fitted.model.eta)
    certificate = _certificate(args, problem, fitted, not seen)
    record = {**certificate.to_dict(), "sentence": certificate.sentence}
    save(args, "certificate.json", record)
    console.result(certificate.sentence + note_on(seen), record)
    return 0


def _certificate(
    args: Namespace, problem: Problem, fitted: FittedFolder, new_rows: bool
) -> Certificate:
    """Certify z; on the rows it was learned from, share the error among all that fit could choose.

    That is each rounded z with each sharpness of the weighing, of which fit has kept the number.
    """
    candidates, p = fitted.record["certificate"]["n_candidates"], problem.n_sources
    choices = 1.0 if new_rows else max(1.0, candidates / n_rounded(p))
    found = certify(
        problem,
        fitted.model.z_,
        confidence=1.0 - (1.0 - args.confidence) / choices,
        held_out=new_rows,
        assumptions=Assumptions(loss_bound=args.loss_bound),
    )
    n = found.n_candidates * choices
    return replace(found, confidence=args.confidence, n_candidates=n)
