"""Pack a source into a folder that can be handed over."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier

from anymix._files import check_new, write_folder
from anymix.densities import BigramModel, GaussianKDE
from anymix.exchange._optional import need
from anymix.exchange.manifest import (
    DENSITY,
    MANIFEST,
    PREDICTOR,
    SCHEMA,
    AuditError,
    Feature,
    Manifest,
    OwnLoss,
    check_name,
    facts_of,
    parse_manifest,
)
from anymix.exchange.predictor import OnnxPredictor, audit_predictors
from anymix.exchange.read import due
from anymix.exchange.site import LOSSES
from anymix.exchange.tensors import TextDensity, dump, share_centres, to_tensors
from anymix.sources import Source, evaluate

OPSETS = {"": 17, "ai.onnx.ml": 3}
THAT_WORK = "linear models, trees, forests, GradientBoosting, MLP and naive Bayes of scikit-learn"


class NoSafeGraph(ValueError):
    """An estimator that has no ONNX form which a reader would trust."""

    def __init__(self, estimator: Any, cause: str):
        name = type(_last_step(estimator)).__name__
        super().__init__(
            f"{name} cannot be packed as a safe graph ({cause}); {THAT_WORK} can, or pass an ONNX "
            "file."
        )


def pack_source(
    source: Source,
    folder: str | Path,
    *,
    own_loss: OwnLoss | None = None,
    held_out: tuple[Any, ArrayLike] | None = None,
    keep_rows: bool = False,
) -> Manifest:
    """Write a source folder: manifest.json, predictor.onnx and density.safetensors.

    Parameters
    ----------
    source : Source
        Its predictor is a scikit-learn estimator, a PyTorch module, or an ONNX file as a path or
        as bytes; its density a GaussianKDE, a GaussianMixtureDensity or a BigramModel.
    folder : path
        Must not exist yet.
    own_loss : OwnLoss, optional
        The predictor's loss on held-out rows at home.
    held_out : (X, y), optional
        Held-out rows at home, to measure the own loss on what is handed over.
    keep_rows : bool
        A kernel estimate is its training rows.  By default k-means centres of five rows or more
        take their place; True hands over the rows.

    Returns
    -------
    Manifest
        Its `reveals` says what the density tells about the rows.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from anymix import Source
    >>> from anymix.densities import GaussianKDE
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> source = Source("north", Ridge().fit(X, X[:, 0]), GaussianKDE(0.5).fit(X))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(pack_source(source, folder + "/north").reveals)
    10 centres, each the mean of five rows or more; no row as it is.
    """
    check_name(source.name)
    check_new(folder)
    density = source.density
    if isinstance(density, GaussianKDE) and not keep_rows:
        density = share_centres(density)
    kind, arrays, reveals = to_tensors(density)
    text = kind == "bigram"
    n_features = 1 if text else density.n_features_in_
    predictor, dtype, classes = _to_onnx(source, n_features, text)
    files = {PREDICTOR: predictor, DENSITY: dump(arrays)}
    manifest = Manifest(
        schema=SCHEMA,
        name=source.name,
        task="regression" if classes is None else "classification",
        classes=classes,
        features=_features(source, n_features, dtype),
        density=kind,
        reveals=reveals,
        own_loss=own_loss,
        n_rows=source.n_rows,
        files={name: facts_of(content) for name, content in files.items()},
    )
    _try_out(source, predictor, manifest)
    packed = OnnxPredictor(predictor, dtype)
    _compare(source, packed)
    if held_out is not None:
        manifest = replace(manifest, own_loss=_measured(manifest, packed, *held_out))
    written = json.dumps(manifest.to_dict(), indent=1, ensure_ascii=False).encode()
    # What we write must pass what a reader will ask.
    manifest = parse_manifest(written)
    write_folder(folder, {MANIFEST: written, **files})
    return manifest


def _try_out(source: Source, predictor: bytes, manifest: Manifest) -> None:
    """Send the predictor through the customs; an estimator is not to blame for bad intentions."""
    try:
        audit_predictors([(f"the predictor of {source.name!r}", predictor, due(manifest))])
    except AuditError as error:
        if not isinstance(source.predictor, BaseEstimator):
            raise
        cause = str(error).partition("cannot be trusted: ")[2].rstrip(".")
        raise NoSafeGraph(source.predictor, cause) from error


def _last_step(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _measured(manifest: Manifest, packed: OnnxPredictor, X: Any, y: ArrayLike) -> OwnLoss:
    """Return the mean loss of the packed predictor on held-out rows."""
    classes = None if manifest.classes is None else np.asarray(manifest.classes)
    blind = Source(manifest.name, packed, lambda X: np.zeros(len(X)), classes=manifest.classes)
    loss = LOSSES[manifest.task]
    losses = evaluate([blind], X, classes).labelled(y, 0).point_losses(loss)
    return OwnLoss(loss, float(losses.mean()), losses.size)


def _to_onnx(
    source: Source, n_features: int, text: bool
) -> tuple[bytes, str, tuple[str | int, ...] | None]:
    """Return the ONNX file, the dtype of its input, and the classes of its columns."""
    model, torch = source.predictor, sys.modules.get("torch")
    if isinstance(model, BaseEstimator):
        content = _from_estimator(model, n_features, text)
    elif torch is not None and isinstance(model, torch.nn.Module):
        content = _from_torch(model, n_features)
    elif isinstance(model, bytes | str | Path):
        content = model if isinstance(model, bytes) else Path(model).read_bytes()
    else:
        raise ValueError(
            f"a predictor of type {type(model).__name__} cannot be packed; give a scikit-learn "
            "estimator, a PyTorch module, or the path of an ONNX file."
        )
    given = source.classes if source.classes is not None else getattr(model, "classes_", None)
    classes = None if given is None else tuple(np.asarray(given).tolist())
    return *_one_output(content, classes), classes


def _from_estimator(model: Any, n_features: int, text: bool) -> bytes:
    need("onnx")
    skl2onnx, types = need("skl2onnx"), need("skl2onnx.common.data_types")
    kind = types.StringTensorType if text else types.FloatTensorType
    last = _last_step(model)
    if is_classifier(model) and not hasattr(model, "predict_proba"):
        raise NoSafeGraph(model, "it gives no probabilities")
    options = {id(last): {"zipmap": False}} if hasattr(last, "predict_proba") else None
    try:
        graph = skl2onnx.convert_sklearn(
            model,
            initial_types=[("X", kind([None, n_features]))],
            options=options,
            target_opset=OPSETS,
        )
    except Exception as error:
        # What follows the name of a node is a dump of its numbers.
        cause = str(error).strip().split("\n")[0].split(" with name=")[0][:200].rstrip(".")
        raise NoSafeGraph(model, f"skl2onnx says: {cause}") from error
    return bytes(graph.SerializeToString())


def _from_torch(model: Any, n_features: int) -> bytes:
    torch, out = need("torch"), BytesIO()
    example = torch.zeros(2, n_features)
    options = {"input_names": ["X"], "dynamic_axes": {"X": {0: "n"}}, "verbose": False}
    torch.onnx.export(model.eval(), (example,), out, **options)
    return out.getvalue()


def _one_output(content: bytes, classes: Any) -> tuple[bytes, str]:
    """Keep the one output that counts, drop metadata, and find the dtype of the input."""
    onnx = need("onnx")
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise ValueError("the predictor is not an ONNX file.") from error
    numbers = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    outputs = [v for v in model.graph.output if v.type.tensor_type.elem_type in numbers]
    if not outputs or not model.graph.input:
        raise ValueError("the ONNX file must have an input and an output of numbers.")
    # A classifier gives labels first and probabilities last; a regressor gives numbers alone.
    kept = outputs[-1] if classes is not None else outputs[0]
    del model.graph.output[:]
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer):
        part.ClearField("metadata_props")
    model.graph.output.append(kept)
    model.doc_string = model.graph.doc_string = ""
    _use_plain_locale(model.graph)
    dtypes = {
        onnx.TensorProto.FLOAT: "float32",
        onnx.TensorProto.DOUBLE: "float64",
        onnx.TensorProto.STRING: "string",
    }
    elem = model.graph.input[0].type.tensor_type.elem_type
    return bytes(model.SerializeToString()), dtypes.get(elem, "float32")


def _use_plain_locale(graph: Any) -> None:
    """Lower-case text by the locale C: a reader need not have the one that was written."""
    plain = need("onnx").helper.make_attribute("locale", "C")
    for node in graph.node:
        if node.op_type == "StringNormalizer":
            others = [a for a in node.attribute if a.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*others, plain])


def _features(source: Source, n: int, dtype: str) -> tuple[Feature, ...]:
    names: Sequence[str] | None = source.feature_names
    if names is None:
        found = getattr(source.predictor, "feature_names_in_", None)
        names = [f"x{i}" for i in range(n)] if found is None else [str(name) for name in found]
    if dtype == "string" and source.feature_names is None:
        names = ["text"]
    if len(names) != n:
        raise ValueError(f"source {source.name!r} names {len(names)} features for {n} columns.")
    return tuple(Feature(str(name), dtype) for name in names)


def _compare(source: Source, packed: OnnxPredictor) -> None:
    """Refuse an ONNX form that says something else than the estimator it was made of."""
    model, density = source.predictor, source.density
    if not isinstance(model, BaseEstimator) or isinstance(density, BigramModel | TextDensity):
        return
    rows = density.sample(256, random_state=0).astype(np.float32)
    asked: Any = rows
    if hasattr(model, "feature_names_in_"):
        asked = need("pandas").DataFrame(rows, columns=model.feature_names_in_)
    due = model.predict_proba(asked) if hasattr(model, "predict_proba") else model.predict(asked)
    due = np.reshape(due, (len(rows), -1))
    apart = np.abs(packed(rows) - due).max(axis=1) > 1e-3 * (1 + np.abs(due).max())
    if apart.mean() > 0.02:
        share = f"{100 * apart.mean():.0f} %"
        raise NoSafeGraph(model, f"its ONNX form differs from the estimator at {share} of rows")
