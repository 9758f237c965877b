"""anymix fit: source folders and held-out rows, or the sites' files, become a model folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from anymix.cli.advice import advice
from anymix.cli.argument_types import share
from anymix.cli.console import Console
from anymix.cli.judging import add_held_out, compare_tables, held_out_sites, with_classes
from anymix.cli.model_folder import check_place, new_model, write_model
from anymix.exchange import ReceivedSource, join_sites, read_sources


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="source folders")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="model folder to write")
    add_held_out(parser)
    parser.add_argument(
        "--objective",
        choices=("regret", "robust", "gamma"),
        default="regret",
        help="what z is to make small: the loss beside each source's own model at home, the worst "
        "loss, or the paper's gap",
    )
    parser.add_argument("--eta", type=share, default=1e-3, help="part of the mean density")
    parser.add_argument("--confidence", type=share, default=0.95, help="of the certificate")
    parser.add_argument(
        "--no-calibration", action="store_true", help="use the densities as they come"
    )


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    replaced = check_place(args.out)
    audited = read_sources(args.sources)
    check_alike(audited)
    sites = held_out_sites(args, audited, console)
    tables = join_sites(sites, audited)
    model = new_model(
        audited,
        loss=sites[0].loss,
        objective=args.objective,
        eta=args.eta,
        confidence=args.confidence,
        calibrate=not args.no_calibration,
    )
    model.fit_tables(with_classes(tables, model))
    comparison = compare_tables(tables, model, args.confidence)
    densities = all(site.log_total is not None for site in sites)
    extra = {"comparison": comparison.to_dict(), "densities": densities}
    record = write_model(args.out, model, audited, tables, extra)
    weights = ", ".join(f"{n} {w:.3g}" for n, w in zip(model.source_names_, model.z_, strict=True))
    wrote = f"wrote {args.out}" + ", in place of the model that was there" * replaced
    parts = (
        f"{model.certificate_.sentence}\nz: {weights}",
        comparison.table(),
        advice(comparison, tables, model),
        wrote,
    )
    console.result("\n\n".join(filter(None, parts)), record)
    return 0


def check_alike(audited: Sequence[ReceivedSource]) -> None:
    """Sources must have different names, and take and give the same kind of thing."""
    names = [one.manifest.name for one in audited]
    if len(names) < 2:
        raise ValueError("one source needs no combination; give two source folders or more.")
    if len(set(names)) < len(names):
        raise ValueError(f"two of the sources have the same name ({', '.join(names)}); pack again.")
    first = audited[0].manifest
    for one in audited[1:]:
        if one.manifest.task != first.task:
            raise ValueError(
                f"{one.folder} is for {one.manifest.task}, the first for {first.task}."
            )
        if _kind_of_labels(one) != _kind_of_labels(audited[0]):
            raise ValueError(
                f"{one.folder} has labels that are {_kind_of_labels(one)}, the first source "
                f"{_kind_of_labels(audited[0])}; write them alike in all tables, and pack again."
            )
        given = [feature.name for feature in one.manifest.features]
        due = [feature.name for feature in first.features]
        if given != due:
            raise ValueError(
                f"{one.folder} takes the features {given}, the first source {due}; all sources "
                "must take the same, in the same order."
            )


def _kind_of_labels(one: ReceivedSource) -> str:
    classes = one.manifest.classes
    return "whole numbers" if classes is not None and isinstance(classes[0], int) else "words"
