"""anymix predict: predict the rows of a table, chunk by chunk."""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from anymix.cli.argument_types import count, name, share, table
from anymix.cli.chosen_columns import add_choice, columns_for
from anymix.cli.console import Console, Progress
from anymix.cli.engine_option import DASK, add_engine, map_by
from anymix.cli.outputs import output
from anymix.cli.streams import caution
from anymix.exceptions import InputError, PredictorError, UsageError
from anymix.models import read_model
from anymix.tables import CHUNK_ROWS, NO_ROWS, Chunk, TableWriter, kind_of, read_chunks

PACE_SECONDS = 5


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument(
        "table",
        type=table,
        help="rows to predict: .csv, .tsv (or .gz of these), .parquet, .npz, .xlsx, a folder of "
        ".parquet, "
        "or - for standard input",
    )
    parser.add_argument(
        "--out",
        type=name,
        required=True,
        help="table to write: .csv, .tsv (or .gz of these), .parquet or .npz, or - for CSV on "
        "standard output",
    )
    add_choice(parser)
    parser.add_argument(
        "--domain",
        metavar="COL",
        help="column with the source of each row, empty where it is not known: rows of a known "
        "source are predicted by its own model, which consults the others",
    )
    _add_columns(parser)
    parser.add_argument(
        "--chunk-rows", type=count, default=CHUNK_ROWS, help="rows held in memory at a time"
    )
    parser.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="if a source's predictor fails at a row: stop and name the row, or leave its "
        f"prediction empty, for at most {MOST_SKIPPED} rows",
    )
    add_engine(parser, {"chunks": "in this process, chunk by chunk", "dask": DASK})
    parser.add_argument("--force", action="store_true", help="replace an existing table")


def _add_columns(parser: ArgumentParser) -> None:
    """Add the options for further columns of the output."""
    parser.add_argument("--weights", action="store_true", help="add the weight of each source")
    parser.add_argument(
        "--novelty", action="store_true", help="add how unlike all sources a row is"
    )
    parser.add_argument(
        "--interval",
        type=share,
        metavar="SHARE",
        help="regression: add lower and upper, which cover this share of every mixture's rows",
    )
    parser.add_argument(
        "--set",
        type=share,
        metavar="SHARE",
        help="classification: add a set of labels, a|b, that covers this share of every mixture",
    )


def run(args: Namespace, console: Console) -> int:
    """Run the command; the output is checked first."""
    kind = kind_of(args.out, to_write=True)
    if args.domain is not None and args.on_error == "skip":
        raise UsageError("--on-error skip does not work with --domain; leave one of them out.")
    with (
        output(args.out, [args.model, args.table], args.force, suffix=".csv") as temporary,
        closing(TableWriter(temporary, kind)) as out,
    ):
        saved = read_model(args.model, members=True)
        if args.novelty or args.interval or args.set:
            check_columns(args, saved.model, saved.model.result_.members)
        columns = replace(columns_for(args, saved.received), id=args.id, domain=args.domain)
        if args.domain in columns.features:
            raise InputError(
                f"column {args.domain!r:.60} of --domain", "is a feature; leave --domain out"
            )
        progress, n, skipped = Progress("predicting", console.quiet), 0, 0
        chunks = read_chunks(args.table, columns, args.chunk_rows)
        with warnings.catch_warnings(), map_by(args.engine, saved.model) as ask:
            for columns_to_write, size, share in ask(partial(_answered, args=args), chunks):
                failed = columns_to_write.pop(FAILED, [])
                skipped += len(failed)
                if failed and (args.on_error == "stop" or skipped > MOST_SKIPPED):
                    raise failed[0].moved(n + 1)
                for error in failed:  # the first row after the header is row 1
                    caution(f"{error.moved(n + 1)} Its prediction is left empty.")
                out.write(columns_to_write)
                # A warning of the first chunk would be repeated by all others.
                warnings.filterwarnings("ignore", "with alpha=")
                n += size
                progress.update(share)
        if n == 0:
            raise InputError(args.table, NO_ROWS)
        seconds = progress.done()
    speed = n / max(seconds, 1e-9)
    # Shorter times consist mostly of the start.
    pace = f" ({speed:.0f} per second)" if seconds > PACE_SECONDS else ""
    left = f", {skipped} of them left empty" * bool(skipped)
    text = f"predicted {n} row{'s' * (n != 1)}{pace}{left}; wrote {args.out}"
    console.result(
        text, {"rows": n, "skipped": skipped, "rows_per_second": speed, "out": args.out}, args.out
    )
    return 0


def check_columns(args: Namespace, model: Any, members: Sequence[Any] = ()) -> None:
    """Refuse sets for numbers, intervals for labels, and what the model cannot predict."""
    labels = getattr(model, "classes_", None)
    if args.novelty and len(model.sources_) == 1:
        raise InputError(args.model, "has one source, so it has no novelty; leave --novelty out")
    if args.novelty and getattr((*members, model)[0], "novelty_", None) is None:
        raise ValueError(
            f"{args.model} was fitted without densities, so it has no novelty; leave --novelty out."
        )
    if (args.interval or args.set) and len(model.sources_) == 1:
        option = "--interval" if args.interval else "--set"
        raise InputError(
            args.model, f"has one source, so there are no mixtures to cover; leave {option} out"
        )
    if args.interval and labels is not None:
        raise InputError(args.model, "predicts labels, which have no interval; use --set")
    if args.set and labels is None:
        raise InputError(args.model, "predicts numbers, which have no set; use --interval")
    parted = [str(label) for label in ([] if labels is None else labels) if "|" in str(label)]
    if args.set and parted:
        raise InputError(
            args.model,
            f"has the label {parted[0]!r:.60}, and | separates the labels of a set; use "
            "predict_set in "
            "Python",
        )


# Each empty row costs a search for it, and a process.
MOST_SKIPPED = 100
FAILED = "\0failed"


def _answered(model: Any, chunk: Chunk, args: Namespace) -> tuple[dict[str, Any], int, float]:
    """Predict a chunk; rows at which a predictor fails are left empty and reported."""
    kept, failed = np.arange(len(chunk.X)), list[PredictorError]()
    while True:
        some = chunk if not failed else replace(chunk, X=_safe_indexing(chunk.X, kept))
        try:
            columns, _, share = _predicted(model, some, args)
            break
        except PredictorError as error:
            if error.row is None:
                raise
            failed.append(PredictorError(error.where, error.cause, int(kept[error.row])))
            kept = np.delete(kept, error.row)
            if args.on_error == "stop" or len(failed) > MOST_SKIPPED or not kept.size:
                return {FAILED: failed}, len(chunk.X), chunk.share
    if failed:
        ids = {args.id: columns.pop(args.id)} if args.id in columns else {}
        columns = ids | {
            name: _spread(found, kept, len(chunk.X)) for name, found in columns.items()
        }
        columns[FAILED] = failed
    return columns, len(chunk.X), share


def _spread(column: Any, rows: Any, n: int) -> Any:
    """Place the values of some rows in a column of n rows; the others are empty."""
    number = column.dtype.kind == "f"
    whole = np.full(n, np.nan) if number else np.full(n, None, dtype=object)
    whole[rows] = column
    return whole


def _predicted(model: Any, chunk: Chunk, args: Namespace) -> tuple[dict[str, Any], int, float]:
    """Return the output columns of a chunk, its number of rows, and the finished share."""
    X, columns = chunk.X, {}
    domain = None if chunk.domain is None else chunk.domain.tolist()
    strange = sorted(set(domain or ()) - {None, "", *map(str, model.source_names_)})
    if strange:
        known = ", ".join(map(str, model.source_names_))
        cause = f"names {strange[0]!r:.60}, not a source; write one of {known}, or leave it empty"
        raise InputError(f"column {args.domain!r:.60}", cause)
    if not hasattr(model, "classes_"):
        columns["prediction"] = model.predict(X, sample_domain=domain)
    else:
        proba = model.predict_proba(X, sample_domain=domain)
        columns["label"] = model.classes_[proba.argmax(axis=1)]
        for c, label in enumerate(model.classes_):
            columns[f"p({label})"] = proba[:, c]
    if args.interval:
        columns["lower"], columns["upper"] = model.predict_interval(X, 1 - args.interval).T
    if args.set:
        sets, which = np.unique(model.predict_set(X, 1 - args.set), axis=0, return_inverse=True)
        words = ["|".join(map(str, model.classes_[labels])) for labels in sets]
        columns["set"] = np.array(words)[which.ravel()]
    if args.weights:
        weights = model.source_weights(X)
        for k, name in enumerate(model.source_names_):
            columns[f"weight({name})"] = weights[:, k]
    if args.novelty:
        columns["novelty"] = model.novelty(X)
    if args.id in columns:
        raise InputError(
            f"column {args.id!r:.60} of --id",
            "has the name of an output column; rename it in the table",
        )
    ids = {} if args.id is None else {args.id: chunk.ids}
    named = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    return ids | named, len(X), chunk.share
