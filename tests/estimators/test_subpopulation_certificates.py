"""Bounds on subpopulations, through the estimators: of new rows, and of those of fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor

SHARE = 0.25


def rows(n, seed):
    rng = np.random.default_rng(seed)
    domain = np.repeat(["north", "south"], n)
    x = rng.normal(2.0 * (domain == "south"), 1.0)
    return x[:, None], np.sin(x) + 0.3 * rng.normal(size=2 * n), domain


@pytest.fixture(scope="module")
def model():
    X, y, domain = rows(300, 0)
    return DistributionWeightedRegressor(Ridge(), random_state=0).fit(X, y, sample_domain=domain)


def test_new_rows_bound_the_worst_quarter_exactly(model):
    X, y, domain = rows(500, 1)
    found = model.certify(X, y, domain, subpopulation=SHARE)
    assert found.subpopulation_ground == "exact"
    fresh, targets, home = rows(20_000, 2)
    losses = np.minimum((model.predict(fresh) - targets) ** 2, found.clip)
    quarters = [np.sort(losses[home == k])[-5000:].mean() for k in ("north", "south")]
    assert found.loss_upper < max(quarters) < found.subpopulation_upper < found.clip
    assert "on every subpopulation of at least 25 % of any mixture" in found.sentence
    assert model.certify(X, y, domain).subpopulation_upper is None


def test_without_rows_those_of_fit_are_asked_again(model):
    again = model.certify()
    assert again.to_dict() == model.certificate_.to_dict()
    found = model.certify(subpopulation=SHARE)
    assert found.subpopulation_ground == "asymptotic"
    assert found.loss_upper < found.subpopulation_upper < found.clip
    with pytest.raises(ValueError, match="need new rows"):
        model.certify(measure="mae", subpopulation=SHARE)
    with pytest.raises(ValueError, match="subpopulation"):
        model.certify(subpopulation=2.0)


def test_wrong_labels_on_a_subpopulation_and_seen_rows():
    X, y, domain = rows(100, 3)
    model = DistributionWeightedClassifier(LogisticRegression(), random_state=0)
    model.fit(X, y > 0.3, sample_domain=domain)
    X_new, y_new, home = rows(200, 4)
    given = {"measure": "accuracy", "subpopulation": 0.5}
    found = model.certify(X_new, y_new > 0.3, home, **given)
    assert found.subpopulation_upper == pytest.approx(2 * found.loss_upper)
    seen = model.certify(X, y > 0.3, domain, **given)
    assert seen.subpopulation_upper is None
    assert seen.confidence is None
