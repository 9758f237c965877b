"""anymix source pack, check, show: make a source folder, and look into those of others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Any

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix.cli.console import Console
from anymix.cli.training_table import column_names, read_training_rows
from anymix.densities import GaussianKDE, GaussianMixtureDensity
from anymix.sources import Source
from anymix.sources.exchange import Manifest, pack_source, read_sources


def add_pack_arguments(parser: ArgumentParser) -> None:
    """Describe `source pack`."""
    parser.add_argument("out", metavar="FOLDER", help="source folder to write")
    parser.add_argument("--name", required=True, help="name of the source")
    parser.add_argument("--rows", required=True, metavar="TABLE", help="training rows")
    parser.add_argument("--target", default="y", help="column with the label")
    parser.add_argument("--task", choices=("classification", "regression"), required=True)
    parser.add_argument(
        "--estimator",
        default="linear",
        help="what to train: linear, forest, or module:Class of scikit-learn's kind",
    )
    parser.add_argument("--onnx", metavar="FILE", help="take this predictor, and train none")
    parser.add_argument("--classes", nargs="+", help="labels of the columns of --onnx, in order")
    parser.add_argument("--density", choices=("kernels", "mixture"), default="kernels")
    parser.add_argument(
        "--keep-rows", action="store_true", help="hand over the training rows as kernels"
    )
    parser.add_argument("--held-out", metavar="TABLE", help="rows to state the own loss on")
    parser.add_argument("--seed", type=int, default=0)


def run_pack(args: Namespace, console: Console) -> int:
    """Run `source pack`."""
    names = column_names(args.rows, args.target)
    X, y = read_training_rows(args.rows, names, args.target, args.task)
    source = Source(
        args.name,
        args.onnx if args.onnx else _estimator(args).fit(X, y),
        _density(args).fit(X),
        classes=_classes(args, y) if args.onnx else None,
        feature_names=names,
        n_rows=len(X),
    )
    held = None
    if args.held_out is not None:
        held = read_training_rows(args.held_out, names, args.target, args.task)
    manifest = pack_source(source, args.out, held_out=held, keep_rows=args.keep_rows)
    console.result(f"wrote {args.out}\nit reveals: {manifest.reveals}", manifest)
    return 0


def _estimator(args: Namespace) -> Any:
    classifies = args.task == "classification"
    if args.estimator == "linear":
        return make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000) if classifies else Ridge()
        )
    if args.estimator == "forest":
        kind = RandomForestClassifier if classifies else RandomForestRegressor
        return kind(100, min_samples_leaf=3, random_state=args.seed)
    module, _, name = args.estimator.partition(":")
    try:
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ValueError(
            f"--estimator {args.estimator} is not to be had: {error}; give linear, forest or "
            "module:Class, such as sklearn.svm:SVR."
        ) from error


def _density(args: Namespace) -> Any:
    if args.density == "mixture":
        return GaussianMixtureDensity(random_state=args.seed)
    return GaussianKDE(random_state=args.seed)


def _classes(args: Namespace, y: Any) -> list[Any] | None:
    if args.task == "regression":
        return None
    if not args.classes:
        raise ValueError("--onnx of a classification needs --classes, in the order of its columns.")
    return [int(label) for label in args.classes] if y.dtype.kind == "i" else list(args.classes)


def add_check_arguments(parser: ArgumentParser) -> None:
    """Describe `source check`."""
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="source folders")


def run_check(args: Namespace, console: Console) -> int:
    """Run `source check`."""
    audited = read_sources(args.folders)
    text = "\n".join(f"{one.folder}: sound ({one.manifest.name})" for one in audited)
    console.result(text, [{"folder": str(one.folder), "sha256": one.sha256} for one in audited])
    return 0


def add_show_arguments(parser: ArgumentParser) -> None:
    """Describe `source show`."""
    parser.add_argument("folder", metavar="FOLDER", help="source folder")


def run_show(args: Namespace, console: Console) -> int:
    """Run `source show`."""
    one = read_sources([args.folder])[0]
    console.result(_description(one.manifest), one.manifest)
    return 0


def _description(manifest: Manifest) -> str:
    features, own = [f.name for f in manifest.features], manifest.own_loss
    shown = ", ".join(features[:8]) + (", ..." if len(features) > 8 else "")
    lines = {
        "name": manifest.name,
        "task": manifest.task,
        "classes": ", ".join(map(str, manifest.classes or ("-",))),
        "features": f"{len(features)} of {manifest.features[0].dtype}: {shown}",
        "density": manifest.density,
        "it reveals": manifest.reveals,
        "trained on": "not stated" if manifest.n_rows is None else f"{manifest.n_rows} rows",
        "own loss": "not stated"
        if own is None
        else f"{own.value:.4g} ({own.loss}, {own.n_rows} held-out rows)",
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())
