"""anymix export: the whole model as one ONNX file, to be run without anymix."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import numpy as np

from anymix._files import replacing
from anymix.cli.console import Console
from anymix.cli.model_folder import FittedFolder, read_model
from anymix.exchange import Weights, export_onnx


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("model", help="model folder")
    parser.add_argument("out", metavar="FILE", help="ONNX file to write")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    fitted = read_model(args.model)
    content = export_onnx(fitted.audited, weights_of(fitted))
    with replacing(args.out) as temporary:
        temporary.write_bytes(content)
    text = f"wrote {args.out}: {len(content) / 2**10:.0f} kB; input X, float64"
    console.result(text, {"out": args.out, "bytes": len(content)})
    return 0


def weights_of(fitted: FittedFolder) -> Weights:
    """Take z and the calibration out of a model."""
    model, p = fitted.model, len(fitted.audited)
    scaling, sharpness = model.weighing_.scaling, model.weighing_.sharpness
    if scaling is None:
        return Weights(model.z_, model.eta, np.ones(p), np.zeros(p), -1e300, sharpness)
    return Weights(
        model.z_, model.eta, scaling.temperature_, scaling.offset_, scaling.floor_, sharpness
    )
