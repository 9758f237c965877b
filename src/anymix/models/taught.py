"""A model that rows elsewhere have taught: they stayed at their sites, and no table is kept.

What tables would show cannot be computed again by who reads the folder.  So the folder claims
nothing of it: the certificate, as the sites' sums gave it, stands in a file beside the folder, and
new rows can certify the model at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anymix.core import plain
from anymix.estimators import take_up
from anymix.exchange import ReceivedSource, all_classes
from anymix.models.place import Place
from anymix.models.record import TASKS
from anymix.models.writing import write_model
from anymix.sources import Learned, LearningSettings
from anymix.storage import replacing

BESIDE = ".sites.json"


def write_taught(
    place: Place,
    received: Sequence[ReceivedSource],
    goal: LearningSettings,
    taught: Learned,
    told: Mapping[str, Any],
) -> Any:
    """Write a model that rows elsewhere have taught, and beside its folder what is known of them.

    `told` is what left the sites.  Returns the model.
    """
    model = taught_model(received, goal, taught)
    write_model(place, model, received)
    found = {
        **told,
        "z": model.combination_.z,
        "solution": model.solution_,
        "certificate": taught.certificate,
        "sentence": taught.certificate.sentence,
    }
    path = Path(place.folder)
    with replacing(path.with_name(path.name + BESIDE)) as temporary:
        temporary.write_text(json.dumps(plain(found), indent=1, allow_nan=False), "utf-8")
    return model


def taught_model(
    received: Sequence[ReceivedSource], goal: LearningSettings, taught: Learned
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
    take_up(model, taught)
    model.set_aside_, model.certificate_, model.novelty_ = (), None, None
    return model
