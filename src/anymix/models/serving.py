"""Export a model folder for serving: one graph, or an MLflow folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anymix.core import CLAIMED, plain
from anymix.exceptions import InputError
from anymix.exchange import (
    FLOAT32_TOLERANCE,
    Float32Difference,
    ReceivedSource,
    all_classes,
    by_columns,
    described_features,
    draws_of,
    export_onnx,
    float32_difference,
    mlflow_files,
    noted,
)
from anymix.models.model_folder import SavedModel, read_model
from anymix.models.saved_records import read_records


class Exported(NamedTuple):
    """An ONNX file, the sources in it, and how far it is from float64; None where it is that."""

    content: bytes
    received: Sequence[ReceivedSource]
    difference: Float32Difference | None = None

    def mlflow_files(self) -> dict[str, bytes]:
        """Return the files of a folder that MLflow opens."""
        columns = by_columns(self.content, self.received)
        return mlflow_files(columns, self.received[0].manifest.features, draws_of(self.received))


def export_model(
    folder: str | Path, *, float32: bool = False, rows: Any = None, verify: bool = False
) -> Exported:
    """Write a model folder as one ONNX graph, which runs without anymix.

    Parameters
    ----------
    folder : path
        A model folder, as `save` and `anymix fit` write.
    float32 : bool
        Whether rows and answers are float32; weights are computed in float64 all the same.
    rows : table, optional
        Rows at which the float32 form is compared; by default they are drawn from the densities.
    verify : bool
        Whether to recompute the evidence from the tables in the folder.  By default the metadata
        call the certificate claimed by the folder.

    Returns
    -------
    Exported
        Its `content` are the bytes of the file.

    Raises
    ------
    InputError
        If a part has no form as ONNX, or if the float32 form differs from the float64 form by more
        than 0.001, of a probability or of the predictions' standard deviation, at one of the rows.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from anymix import DistributionWeightedRegressor, save
    >>> from anymix.densities import GaussianKDE
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-2, 1, (60, 1)), rng.normal(2, 1, (60, 1))]
    >>> y, d = np.abs(X[:, 0]), np.repeat(["north", "south"], 60)
    >>> model = DistributionWeightedRegressor(density=GaussianKDE(), random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model.fit(X, y, sample_domain=d), folder + "/model")
    ...     found = export_model(folder + "/model", float32=True)
    >>> found.content[4:10], found.difference.largest < 1e-3
    (b'anymix', True)
    """
    saved = read_model(folder, verify=verify)
    received, used = saved.received, (saved.received, saved.model.combination_, saved.model.router_)
    more = saved.generalist
    content = export_onnx(*used, float32=float32, notes=_notes(saved), generalist=more)
    if not float32:
        return Exported(content, received)
    columns = received[0].manifest.columns
    if rows is None:
        compared = draws_of(received)
    else:
        compared = np.asarray(rows if columns is None else columns.encode(rows), dtype=float)
    difference = float32_difference(export_onnx(*used, generalist=more), content, compared)
    if not difference.holds:
        raise InputError(
            folder,
            f"differs by {difference.largest:.1g} from its float64 form where "
            f"{FLOAT32_TOLERANCE:g} is taken; export it without --float32",
        )
    return Exported(content, received, difference)


def card_facts(received: Sequence[ReceivedSource]) -> dict[str, Any]:
    """Return the facts of a model card about the sources, beyond the report's record."""
    first, classes = received[0].manifest, all_classes(received)
    return {
        "task": first.task,
        "classes": None if classes is None else classes.tolist(),
        "features": described_features(first.features),
        "trained": [one.manifest.n_rows for one in received],
        "densities": [one.manifest.density for one in received],
    }


def _notes(saved: SavedModel) -> dict[str, str]:
    """Say what was learned, and what is certified: on new rows, if that is kept in the folder."""
    model, used = saved.model, saved.model.combination_
    certificate, day, verified = None, None, False
    if len(saved.received) > 1:
        kept = read_records(saved.path, model, saved.sha256).get("certificate")
        certificate, day = kept or (model.certificate_, None)
        verified = kept is None and model.result_.evidence.verified
    grounds = {"regret": "regret_ground", "loss": "loss_ground"}
    grounds |= {name: name for name in ("confidence", "clip", "share_above", "n_rows")}
    return noted(
        loss=model.loss if isinstance(model.loss, str) else type(model.loss).__name__,
        objective=model.objective,
        rule=used.rule,
        z=plain(used.z),
        eta=used.eta,
        certificate=certificate and certificate.sentence,
        certificate__date=day,
        certificate__status=CLAIMED if certificate and not verified else None,
        certificate__grounds=certificate
        and {name: getattr(certificate, field) for name, field in grounds.items()},
    )
