"""fit(mixtures=...): z, certificates and folders for mixtures whose shares are known."""

import numpy as np
import pytest

import anymix
from anymix import DistributionWeightedRegressor

MIXTURES = {"north": (0.6, 0.8)}


def draw(seed, n=300):
    rng = np.random.default_rng(seed)
    domain = np.repeat([0, 1], n)
    X = rng.normal(2.0 * domain, 1.0)[:, None]
    y = np.sin(X[:, 0]) + domain + (0.2 + domain) * rng.normal(size=2 * n)
    return X, y, np.array(["north", "south"])[domain]


def fitted(**settings):
    X, y, domain = draw(0)
    model = DistributionWeightedRegressor(random_state=0, mixtures=MIXTURES, **settings)
    return model.fit(X, y, sample_domain=domain)


@pytest.mark.parametrize("refit", [True, False])
def test_certificates_are_for_the_mixtures(refit, tmp_path):
    model = fitted(refit=refit)
    found, (north, south) = model.certificate_, model.certificate_.source_losses
    assert found.robust_loss == pytest.approx(0.6 * north + 0.4 * south)
    assert found.loss_upper < model.set_params(mixtures=None).certify().loss_upper
    model.set_params(mixtures=MIXTURES)
    assert "2 sources with 60 to 80 % of rows from north" in found.sentence
    new = model.certify(*draw(1))
    assert new.loss_ground == "exact"
    assert "2 sources with 60 to 80 % of rows from north" in new.sentence
    anymix.save(model, tmp_path / "model")
    again = anymix.load(tmp_path / "model", verify=True)
    assert again.certificate_.sentence == found.sentence
    assert again.certify(*draw(1)).sentence == new.sentence


def test_mixtures_are_checked_before_training():
    X, y, domain = draw(0, n=30)
    model = DistributionWeightedRegressor(mixtures={"nroth": (0.1, 0.2)})
    with pytest.raises(ValueError, match="mixtures names 'nroth'; the sources are north, south"):
        model.fit(X, y, sample_domain=domain)
    model.set_params(mixtures=MIXTURES, objective="gamma")
    with pytest.raises(ValueError, match="mixtures are for the objectives"):
        model.fit(X, y, sample_domain=domain)
