"""Pack a source into a folder that can be shared."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anymix.core import TASK_LOSSES
from anymix.exceptions import InputError
from anymix.exchange.conversion import (
    as_one_graph,
    classes_of,
    graphs_of,
    judge_own,
    nearest_graph,
    rows_to_compare,
    safe_graphs,
)
from anymix.exchange.leak_report import Packed, check_leaks
from anymix.exchange.manifest import (
    DENSITY,
    MANIFEST,
    NONE,
    PREDICTOR,
    SCHEMA,
    Feature,
    Manifest,
    OwnLoss,
    columns_taken,
    facts_of,
    names_of_densities,
    parse_manifest,
    same_codes,
)
from anymix.exchange.predictor import OnnxPredictor
from anymix.exchange.source_names import check_name
from anymix.exchange.tensors import (
    Tensors,
    check_travels,
    density_from_arrays,
    density_to_arrays,
    dump_arrays,
)
from anymix.sources import SecondRound, Source, evaluate
from anymix.storage import check_new, write_folder


def pack_source(
    source: Source,
    folder: str | Path,
    *,
    own_loss: OwnLoss | None = None,
    held_out: tuple[Any, ArrayLike] | None = None,
    keep_rows: bool = False,
    without_density: bool = False,
    dtype: str = "float32",
    rows: Any = None,
    targets: ArrayLike | None = None,
    reveals_rows: bool = False,
    measure: bool = True,
    replaces: bool = False,
    known_words: Collection[str] = (),
) -> Manifest:
    """Write a source folder: manifest.json, predictor.onnx and density.safetensors.

    Parameters
    ----------
    source : Source
        Its predictor is a scikit-learn estimator, a PyTorch module, or an ONNX file as a path or
        as bytes; its density one of `anymix.densities` that can travel.
    folder : path
        Must not exist yet, unless it `replaces` a source folder.
    own_loss : OwnLoss, optional
        The predictor's loss on held-out rows of the source.
    held_out : (X, y), optional
        Held-out rows of the source, on which the packed predictor's loss is measured.
    keep_rows : bool
        A kernel estimate is its training rows.  By default k-means centres of five distinct rows
        or more take their place; True hands over the rows.  So for the rare words of a bigram
        model.
    without_density : bool
        Whether a source may have no density, as in the folder of a model with one router for all
        sources; `read_sources` refuses such a folder unless given the same option.
    dtype : "float32", "float64" or "nearest"
        Of the numbers that the graph of a scikit-learn estimator takes.  "nearest" tries both and
        keeps the graph that is nearest to the estimator.  An ONNX file and a PyTorch module keep
        their own.
    rows, targets : array, optional
        The training rows and their targets.  The files are compared with them to say what they
        reveal; by default with the rows that a kernel density was fitted on.  At some of the rows
        the graph is compared with the estimator, too; by default they are drawn from the density.
    reveals_rows : bool
        Whether predictor and density may hold training rows, targets or rare words, as support
        vectors, deep trees and vocabularies do.
    measure : bool
        Whether to compare the files with the rows at all; what is not compared is not refused.
    replaces : bool
        Whether a folder that is there is replaced, whatever it holds.
    known_words : collection of str
        Words that reveal nothing in an ONNX file: others have listed them, or many rows have them.

    Returns
    -------
    Manifest
        Its `reveals` says what predictor and density reveal about the rows.

    Raises
    ------
    AuditError
        If the files hold training rows, targets or rare words that were not allowed.

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
    10 centres, each the mean of 5 distinct rows or more. Compared with 100 rows that the density \
was fitted on: none stands in the predictor as it is, none in the density.
    """
    _check_given(source, held_out, None if replaces else folder)
    density = _shareable(source, keep_rows, without_density)
    if source.columns is not None and rows is not None:
        rows = source.columns.encode(rows)
    columns = columns_taken(source, density, rows)
    kind, arrays = _packed_density(density, columns[0])
    if isinstance(source.predictor, SecondRound):
        source = as_one_graph(source, density, rows, {})
    graph = _graph(source, density, rows, columns, dtype)
    packed = Packed(graph, density, arrays, columns[1], known_words)
    reveals = check_leaks(
        source,
        packed,
        rows,
        targets,
        keep_rows=keep_rows,
        reveals_rows=reveals_rows,
        measure=measure,
    )
    files = {PREDICTOR: graph.content, DENSITY: dump_arrays(arrays)}
    classes = classes_of(source)
    manifest = Manifest(
        schema=SCHEMA,
        name=source.name,
        task="regression" if classes is None else "classification",
        classes=classes,
        features=_features(source, density, graph, columns[0]),
        density=kind,
        reveals=reveals,
        own_loss=own_loss,
        n_rows=source.n_rows,
        files={name: facts_of(content) for name, content in files.items()},
    )
    if held_out is not None:
        manifest = replace(manifest, own_loss=_measured(manifest, graph, *held_out))
    written = json.dumps(manifest.to_dict(), indent=1, ensure_ascii=False).encode()
    manifest = parse_manifest(written)
    write_folder(folder, {MANIFEST: written, **files}, replace=replaces)
    return manifest


def _check_given(source: Any, held_out: Any, folder: str | Path | None) -> None:
    """Refuse what is no source, its name, held-out rows that are no pair, a folder that exists."""
    if not isinstance(source, Source):
        raise InputError(
            f"a {type(source).__name__}", "is not a Source; give the source first, then the folder"
        )
    if held_out is not None and (isinstance(held_out, str | Path) or len(held_out) != 2):
        raise InputError("held_out", "must be the pair (X, y) of rows and labels, and no file")
    check_name(source.name)
    if folder is not None:
        check_new(folder)


def _graph(
    source: Source, density: Any, rows: Any, columns: tuple[int, bool], dtype: str
) -> OnnxPredictor:
    """Return the safe graph that is nearest to the predictor."""
    n_features, text = columns
    graphs = safe_graphs(source, graphs_of(source, n_features, text, dtype), n_features)
    compared = rows_to_compare(density, rows, text, graphs[0])
    graph = nearest_graph(source, graphs, compared)
    judge_own(source, graph, compared)
    return graph


def _packed_density(density: Any, n_features: int) -> tuple[str, Tensors]:
    """Return the kind and the arrays."""
    if density is None:
        return NONE, {}
    kind, arrays = density_to_arrays(density)
    # What we write must pass what a reader will ask.
    density_from_arrays(kind, arrays, n_features, f"the density {type(density).__name__}")
    return kind, arrays


def _shareable(source: Source, keep_rows: bool, without_density: bool) -> Any:
    """Return the density in the form that is handed over, if there is one that can travel."""
    density = source.density
    if density is None:
        if without_density:
            return None
        raise InputError(
            f"source {source.name!r}", f"has no density; give it a {names_of_densities()}"
        )
    if hasattr(density, "log_responsibilities"):
        raise InputError(
            f"a {type(density).__name__}",
            "has seen the rows of all sources, so it cannot be part of one source; pack a "
            f"{names_of_densities()}",
        )
    check_travels(density)
    return density if keep_rows else density.shareable()


def _measured(manifest: Manifest, packed: OnnxPredictor, X: Any, y: ArrayLike) -> OwnLoss:
    """Return the mean loss of the packed predictor on held-out rows."""
    classes = None if manifest.classes is None else np.asarray(manifest.classes)
    blind = Source(
        manifest.name,
        packed,
        lambda X: np.zeros(len(X)),
        classes=manifest.classes,
        columns=manifest.columns,
    )
    loss = TASK_LOSSES[manifest.task]
    losses = evaluate([blind], X, classes).labelled(y, 0).point_losses(loss)
    return OwnLoss(loss, float(losses.mean()), losses.size)


def _features(source: Source, density: Any, graph: OnnxPredictor, n: int) -> tuple[Feature, ...]:
    names: Sequence[str] | None = source.feature_names
    if names is None:
        found = getattr(source.predictor, "feature_names_in_", None)
        names = [f"x{i}" for i in range(n)] if found is None else [str(name) for name in found]
    if graph.dtype == "string" and source.feature_names is None:
        names = ["text"]
    if source.columns is not None:
        names = source.columns.names
    if len(names) != n:
        raise InputError(f"source {source.name!r}", f"names {len(names)} features for {n} columns")
    if source.columns is None:
        return tuple(Feature(str(name), graph.dtype) for name in names)
    if not same_codes(source.columns, density):
        raise InputError(
            f"source {source.name!r}", "has a density of other categories; fit both on one coding"
        )
    # A column may be empty where predictor and density have an answer all the same.
    rows = np.zeros((n, n))
    np.fill_diagonal(rows, np.nan)
    answered = np.asarray(np.isfinite(graph(rows)).all(axis=1))
    if density is not None and answered.any():
        try:
            answered &= np.isfinite(density.score_samples(rows))
        except ValueError:  # a density of complete rows says so
            answered[:] = False
    return tuple(
        Feature(column.name, graph.dtype, column.categories, gaps)
        for column, gaps in zip(source.columns, answered.tolist(), strict=True)
    )
