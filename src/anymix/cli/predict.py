"""anymix predict: rows in, predictions out, chunk by chunk."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix._errors import InputError
from anymix._files import is_stream
from anymix.cli.argument_types import count, name
from anymix.cli.console import Console
from anymix.cli.outputs import add_force, is_prediction, output
from anymix.cli.table_reader import CHUNK_ROWS, Columns, read_chunks
from anymix.cli.table_writer import WRITERS, writing
from anymix.models import read_model


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("table", help="rows to predict: .csv, .parquet or .npz")
    parser.add_argument(
        "--out", type=name, required=True, help="table to write: .csv, .parquet or .npz"
    )
    parser.add_argument("--weights", action="store_true", help="add the weight of each source")
    parser.add_argument(
        "--novelty", action="store_true", help="add how unlike all sources a row is"
    )
    parser.add_argument(
        "--chunk-rows", type=count, default=CHUNK_ROWS, help="rows held in memory at a time"
    )
    add_force(
        parser,
        "a table of predictions (all the columns that this command writes, or the sole column "
        "prediction with nothing but numbers)",
    )


def run(args: Namespace, console: Console) -> int:
    """Run the command; whether the output may be written is said first."""
    if Path(args.out).suffix.lower() not in WRITERS and not is_stream(args.out):
        raise InputError(
            args.out, "is not a table that can be written; give .csv, .parquet or .npz"
        )
    inputs = [args.model, args.table]
    with output(args.out, inputs, args.force, is_prediction, suffix=".csv") as temporary:
        n, seconds = predict(args, console, temporary)
    speed = n / max(seconds, 1e-9)
    text = f"predicted {n} rows ({speed:.0f} a second); wrote {args.out}"
    console.result(text, {"rows": n, "rows_per_second": speed, "out": args.out}, args.out)
    return 0


def predict(args: Namespace, console: Console, path: Path) -> tuple[int, float]:
    """Write the predictions; return how many rows there were, and how long they took."""
    saved = read_model(args.model)
    if args.novelty and len(saved.received) == 1:
        raise InputError(args.model, "is of one source, so it has no novelty; leave --novelty out")
    if args.novelty and getattr(saved.model, "novelty_", None) is None:
        raise ValueError(
            f"{args.model} was fitted from responsibilities alone, so it has no novelty; leave "
            "--novelty out."
        )
    columns = Columns.of([one.manifest for one in saved.received])
    progress, n = console.progress("predicting"), 0
    with writing(path) as out:
        for chunk in read_chunks(args.table, columns, args.chunk_rows):
            out.write(answers(saved.model, chunk.X, args.weights, args.novelty))
            n += len(chunk.X)
            progress.update(chunk.share)
        if n == 0:
            raise InputError(args.table, "has no rows")
    return n, progress.done()


def answers(model: Any, X: Any, weights: bool, novelty: bool) -> dict[str, NDArray[Any]]:
    """Return the columns of the answer."""
    columns = {}
    if not hasattr(model, "classes_"):
        columns["prediction"] = model.predict(X)
    else:
        proba = model.predict_proba(X)
        columns["label"] = model.classes_[proba.argmax(axis=1)]
        for c, label in enumerate(model.classes_):
            columns[f"p({label})"] = proba[:, c]
    if weights:
        found = model.source_weights(X)
        for k, name in enumerate(model.source_names_):
            columns[f"weight({name})"] = found[:, k]
    if novelty:
        columns["novelty"] = model.novelty(X)
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}
