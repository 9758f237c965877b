"""A model that rows elsewhere have taught: they stayed at their sites, and no table is kept.

What tables would show cannot be computed again by who reads the folder.  So the folder claims
nothing of it: the certificate, as the sites' sums gave it, stands in a file beside the folder, and
new rows can certify the model at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anymix.core import plain
from anymix.exchange import ReceivedSource, all_classes
from anymix.models.place import Place
from anymix.models.record import TASKS
from anymix.models.writing import write_model
from anymix.sources import FitResult, LearningSettings
from anymix.storage import replacing

BESIDE = ".sites.json"


def write_taught(
    place: Place,
    received: Sequence[ReceivedSource],
    goal: LearningSettings,
    taught: FitResult,
    told: Mapping[str, Any],
) -> Any:
    """Write a model that rows elsewhere have taught, and beside its folder what is known of them.

    `told` is what left the sites.  Returns the model.
    """
    assert taught.evidence is not None
    certificate = taught.evidence.certificate
    assert certificate is not None
    model = taught_model(received, goal, taught)
    write_model(place, model, received)
    found = {
        **told,
        "z": model.combination_.z,
        "solution": model.solution_,
        "certificate": certificate,
        "sentence": certificate.sentence,
    }
    path = Path(place.folder)
    with replacing(path.with_name(path.name + BESIDE)) as temporary:
        temporary.write_text(json.dumps(plain(found), indent=1, allow_nan=False), "utf-8")
    return model


def taught_model(
    received: Sequence[ReceivedSource], goal: LearningSettings, taught: FitResult
) -> Any:
    """Return an estimator as if it was fitted, without the tables of a fit."""
    kind = TASKS[received[0].manifest.task]
    names = ("loss", "eta", "objective", "calibrate", "confidence", "consult", "shrinkage")
    sources = [one.source for one in received]
    model: Any = kind.from_sources(sources, **{name: getattr(goal, name) for name in names})
    model.sources_, model.router_, model.columns_ = sources, None, None
    model.source_names_ = np.asarray([one.manifest.name for one in received])
    model.n_features_in_ = len(received[0].manifest.features)
    classes = all_classes(received)
    if classes is not None:
        model.classes_ = classes
    assert taught.evidence is not None
    # The rows stayed at their sites, so that nothing here can show a certificate.
    evidence = replace(taught.evidence, certificate=None, novelty=None, tables=None, held_out=None)
    model.result_ = replace(taught, evidence=evidence)
    return model
