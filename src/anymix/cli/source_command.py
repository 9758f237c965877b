"""anymix source pack, check, show: write a source folder, and inspect those of others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anymix.cli.argument_types import folder, name, natural, source_name, table
from anymix.cli.chosen_columns import add_choice
from anymix.cli.console import Console
from anymix.cli.exit_codes import SUCCESS, code_of, sentence_of
from anymix.cli.outputs import check_folder, output
from anymix.cli.packing import (
    check_labels,
    classes_of,
    few_threads,
    fit_density,
    home_table,
    make_density,
    make_estimator,
    read_held_out,
)
from anymix.cli.reference_command import REFERENCE, WORD_REFERENCE, read_part
from anymix.cli.second_round import better_of, read_others
from anymix.cli.streams import complain, note
from anymix.cli.training_table import TrainingTable, read_training_table
from anymix.densities import Reference
from anymix.exceptions import InputError, UsageError, visible
from anymix.exchange import (
    SOURCE_FILES,
    AuditError,
    HomeTable,
    Manifest,
    NoSafeGraph,
    ReceivedSource,
    check_name,
    pack_source,
    read_home,
    read_sources,
)
from anymix.sandbox import missing_protection
from anymix.sources import Source, made_to_fit
from anymix.tables import FEWEST_ROWS


def add_pack_arguments(parser: ArgumentParser) -> None:
    """Describe `source pack`."""
    parser.add_argument("out", type=folder, metavar="FOLDER", help="source folder to write")
    parser.add_argument("--name", type=source_name, required=True, help="name of the source")
    parser.add_argument("--rows", type=table, required=True, metavar="TABLE", help="training rows")
    parser.add_argument("--target", default="y", help="column with the label")
    add_choice(parser, trains=True)
    parser.add_argument(
        "--task",
        choices=("classification", "regression"),
        required=True,
        help="classification predicts labels, regression numbers",
    )
    _add_parts(parser)
    parser.add_argument(
        "--keep-rows", action="store_true", help="use the training rows as kernels in the folder"
    )
    parser.add_argument(
        "--reveals-rows",
        action="store_true",
        help="allow files that contain training rows or targets",
    )
    parser.add_argument(
        "--held-out",
        type=table,
        metavar="TABLE",
        help="rows on which to measure the model's own loss; without them none is stated",
    )
    parser.add_argument(
        "--home",
        type=name,
        metavar="FILE",
        help="file to keep at the site: predictions of five fold models on the training rows, so "
        "that site evaluate needs no held-out rows",
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the training")
    parser.add_argument(
        "--force", action="store_true", help="replace an existing source folder and --home file"
    )


def _add_parts(parser: ArgumentParser) -> None:
    """Add the options for predictor and density."""
    parser.add_argument(
        "--estimator",
        default="auto",
        help="what to train: linear, boosted (trees), forest, or module:Class with the "
        "scikit-learn "
        "interface; auto compares linear models and boosted trees by cross-validation, as fit "
        "does in "
        "Python",
    )
    parser.add_argument("--onnx", metavar="FILE", help="use this predictor instead of training one")
    parser.add_argument("--classes", nargs="+", help="labels of the outputs of --onnx, in order")
    parser.add_argument(
        "--density",
        choices=("auto", "kernels", "mixture", "contrastive"),
        default="auto",
        help="density: kernels on centres, a Gaussian mixture, or trees that separate rows "
        "from draws of a reference; auto is contrastive with --reference, and otherwise kernels "
        "or mixture, whichever has the higher held-out likelihood",
    )
    parser.add_argument(
        "--others",
        nargs="+",
        metavar="FOLDER",
        help="source folders of other sites, packed without --others: also train with their "
        "predictions, keep this model if it is better in cross-validation, and pack all as one "
        "graph; for labels the own model must be linear",
    )
    parser.add_argument(
        "--reference",
        metavar="FILE",
        help="common reference (anymix reference); needed for categories and missing values",
    )


def run_pack(args: Namespace, console: Console) -> int:
    """Run `source pack`; options and tables are checked before training."""
    check_name(args.name)
    inputs = [args.rows, *filter(None, (args.held_out, args.onnx, args.reference))]
    inputs += args.others or []
    replaces = check_folder(args.out, inputs, args.force, SOURCE_FILES, "a source folder")
    kept = output(args.home, [*inputs, args.out], args.force) if args.home else nullcontext()
    with kept as temporary, console.working("training"):
        trained = _train(args)
        source, rows, home = trained.source, trained.table, trained.home
        own_loss = None if home is None or trained.held else home.own_loss(rows.y)
        try:
            manifest = pack_source(
                source,
                args.out,
                own_loss=own_loss,
                held_out=trained.held,
                keep_rows=args.keep_rows,
                rows=rows.X,
                targets=rows.y,
                reveals_rows=args.reveals_rows,
                replaces=replaces,
                known_words=trained.known_words,
            )
        except NoSafeGraph as error:
            raise InputError(error.where, f"{error.cause} with --onnx") from error
        if home is not None and temporary is not None:
            home = home.packed(read_sources([args.out])[0], rows.X)
            if args.others and Path(args.home).exists():
                home = home.after(read_home(args.home))
            home.write(temporary)
    lines = [
        f"wrote {args.out}: {len(rows.X)} rows; features {_features(manifest)}",
        *([f"wrote {args.home}; keep it at the site, as it reveals single rows"] * bool(args.home)),
        *(f"note: {note}" for note in rows.notes),
        f"it reveals: {manifest.reveals}",
    ]
    console.result("\n".join(lines), manifest)
    return 0


class _Trained(NamedTuple):
    source: Source
    table: TrainingTable
    held: Any
    home: HomeTable | None
    known_words: frozenset[str]


def _check_options(args: Namespace) -> None:
    """Refuse options that exclude each other."""
    if args.others and (args.onnx or (args.text and args.task == "regression")):
        raise UsageError(
            "--others trains a second time; leave it out with --onnx, and with --text and --task "
            "regression."
        )
    if args.onnx and args.estimator != "auto":
        raise UsageError(
            "--onnx takes a trained predictor, and --estimator trains one; leave one out."
        )
    if args.onnx and args.home:
        raise UsageError(
            "--home trains fold models, but --onnx is already trained; leave one "
            "out, and evaluate held-out rows."
        )


def _train(args: Namespace) -> _Trained:
    """Read the tables, train, and return the source, its table, held-out rows and home table."""
    _check_options(args)
    kinds = REFERENCE, WORD_REFERENCE
    reference = None if args.reference is None else read_part(args.reference, *kinds)
    agreed = reference.columns if isinstance(reference, Reference) else None
    rows = read_training_table(args, args.task, agreed)
    X, y = rows.X, rows.y
    check_labels(args, y)
    classes = classes_of(args, y)
    if args.onnx and not Path(args.onnx).exists():
        raise InputError(args.onnx, "does not exist; give the ONNX file of a trained predictor")
    known = None if args.task == "regression" else np.unique(y if classes is None else classes)
    density = make_density(args, rows, reference)
    held = read_held_out(args, rows, known)
    if len(X) < FEWEST_ROWS:
        raise InputError(
            args.rows,
            f"has {len(X)} rows; give {FEWEST_ROWS} or more, as a folder of fewer would reveal "
            "single rows",
        )
    estimator, choice = (args.onnx, None) if args.onnx else make_estimator(args, rows)
    fit_density(args, density, rows)
    predictor, notes, others, share = (estimator if args.onnx else None), rows.notes, [], 1.0
    words: frozenset[str] = frozenset()
    notes = notes if choice is None else (*notes, str(choice))
    if args.others:
        others = read_others(args.others, rows, None if known is None else known.tolist())
        better = better_of(estimator, rows, others, args.seed)
        predictor, share, words = better.predictor, better.share, better.known_words
        notes, others = (*notes, f"{better.choice}."), others if share else []
        if others and known is not None:
            classes = known.tolist()
    elif predictor is None:
        with few_threads(X):
            predictor = made_to_fit(estimator, rows.filled, y).fit(rows.filled, y)
    named: dict[str, Any] = {"feature_names": rows.names, "columns": rows.coding}
    source = Source(args.name, predictor, density, classes=classes, n_rows=len(X), **named)
    given = estimator, density, rows, others, args.seed, share
    home = home_table(*given) if args.home else None
    return _Trained(source, replace(rows, notes=notes), held, home, words)


def add_check_arguments(parser: ArgumentParser) -> None:
    """Describe `source check`."""
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="source folders")


def run_check(args: Namespace, console: Console) -> int:
    """Run `source check`: report on each folder, whatever is wrong with the others."""
    audited, faults = _audit(args.folders)
    sentences = {folder: sentence_of(error) for folder, error in faults.items()}
    listed: list[dict[str, Any]] = [
        {"folder": str(one.folder), "sound": True, "sha256": one.sha256} for one in audited
    ]
    listed += [{"folder": one, "sound": False, "error": said} for one, said in sentences.items()]
    record = {"sound": not faults, "folders": listed}
    if audited or args.json:
        text = "\n".join(f"{visible(one.folder)}: sound ({one.manifest.name})" for one in audited)
        console.result(text, record)
    for said in sentences.values():
        complain(said)
    if lacking := missing_protection():
        note(f"{lacking}.")
    return max(map(code_of, faults.values()), default=SUCCESS)


def _audit(folders: Sequence[str]) -> tuple[list[ReceivedSource], dict[str, Exception]]:
    """Return the folders that pass, and the faults of the others."""
    try:
        return read_sources(folders), {}
    except (AuditError, OSError) as error:
        if len(folders) == 1:
            return [], {folders[0]: error}
    # Slower one by one, but needed to find all faulty folders.
    passed: list[ReceivedSource] = []
    faults: dict[str, Exception] = {}
    for one in folders:
        sound, fault = _audit([one])
        passed += sound
        faults |= fault
    return passed, faults


def add_show_arguments(parser: ArgumentParser) -> None:
    """Describe `source show`."""
    parser.add_argument("folder", metavar="FOLDER", help="source folder")


def run_show(args: Namespace, console: Console) -> int:
    """Run `source show`."""
    one = read_sources([args.folder])[0]
    console.result(_description(one.manifest), one.manifest)
    return 0


def _features(manifest: Manifest) -> str:
    names = [feature.name for feature in manifest.features]
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    of_words = sum(column.categories is not None for column in manifest.columns or ())
    words = f", {of_words} with categories" if of_words else ""
    gaps = ", missing values allowed" if any(feature.gaps for feature in manifest.features) else ""
    return f"{len(names)} of {manifest.features[0].dtype}{words}{gaps}: {shown}"


def _description(manifest: Manifest) -> str:
    own = manifest.own_loss
    lines = {
        "name": manifest.name,
        "task": manifest.task,
        "classes": ", ".join(map(str, manifest.classes or ("-",))),
        "features": _features(manifest),
        "density": manifest.density,
        "it reveals": manifest.reveals,
        "trained on": "not stated" if manifest.n_rows is None else f"{manifest.n_rows} rows",
        "own loss": "not stated"
        if own is None
        else f"{own.value:.4g} ({own.loss}, {own.n_rows} held-out rows)",
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())
