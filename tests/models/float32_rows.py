"""How far float32 is from float64 on real rows: `python -m tests.models.float32_rows FOLDER`."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.estimators import default_estimator
from anymix.exchange import float32_difference
from anymix.models import export_model, load
from experiments import evidence_sets

# Data, and what the sources are weighed by: the default, or kernels where numbers are complete.
CASES = {
    "heart": ("load_heart", "auto"),
    "housing": ("load_housing", "auto"),
    "housing, kernels": ("load_housing", "kernels"),
    "digits": ("load_digit_pixels", "auto"),
    "digits, kernels": ("load_digit_pixels", "kernels"),
}


def measured(data, case, place):
    """Fit on seven rows of ten; return the largest difference at draws and at the other rows."""
    loader, wish = CASES[case]
    whole = getattr(evidence_sets, loader)(data)
    order = np.random.default_rng(0).permutation(len(whole.y))
    if wish == "kernels" and whole.X.ndim == 2 and hasattr(whole.X, "iloc"):
        order = order[whole.X.notna().all(axis=1).to_numpy()[order]]
    train, test = (whole.take(part) for part in np.split(order, [int(0.7 * order.size)]))
    regression = not whole.classification
    kind = DistributionWeightedRegressor if regression else DistributionWeightedClassifier
    density = GaussianKDE() if wish == "kernels" else "auto"
    if wish == "kernels":
        scale = StandardScaler().fit(train.X)
        train, test = (part._replace(X=scale.transform(part.X)) for part in (train, test))
    # Trees compare in float64: of float32 rows a few may fall on the other side of a threshold.
    learner = "auto"
    if wish == "kernels":
        learner = default_estimator(train.X, whole.classification)
    sites = np.char.lstrip(np.asarray(train.domain, dtype=str), "<")
    model = kind(learner, density=density, random_state=0).fit(
        train.X, train.y, sample_domain=sites
    )
    anymix.save(model, place / "m")
    wide, narrow = (export_model(place / "m", float32=yes) for yes in (False, True))
    columns = load(place / "m").columns_
    rows = np.asarray(test.X if columns is None else columns.encode(test.X), dtype=float)
    return narrow.difference, float32_difference(wide.content, narrow.content, rows)


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(sys.argv[1]), name, Path(folder))
        took = time.monotonic() - began
        sys.stdout.write(f"{name}: draws {found[0]}; rows {found[1]}; {took:.0f} s\n")
        sys.stdout.flush()
