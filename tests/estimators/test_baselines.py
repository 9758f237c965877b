"""The rivals are what they say, and the comparison puts them in one honest table."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error

from anymix import DistributionWeightedClassifier, Source, compare
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.estimators import (
    GroupDRO,
    HardRouter,
    Joint,
    KernelMeanMatching,
    LambdaComb,
    SingleSource,
    Stacking,
    Uniform,
    VolumeWeighted,
)
from tests.estimators.several_sources import classification, regression

X, Y, D = regression()
OWN = [Ridge().fit(X[name == D], Y[name == D]) for name in ("north", "south")]
H = np.stack([model.predict(X) for model in OWN])


def test_averages():
    assert np.allclose(Uniform(Ridge()).fit(X, Y, D).predict(X), H.mean(axis=0))
    assert np.allclose(SingleSource(Ridge(), "south").fit(X, Y, D).predict(X), H[1])
    assert np.allclose(SingleSource(Ridge(), 0).fit(X, Y, D).predict(X), H[0])
    informed = LambdaComb(Ridge(), mixture=[0.25, 0.75]).fit(X, Y, D)
    assert np.allclose(informed.predict(X), 0.25 * H[0] + 0.75 * H[1])
    assert np.allclose(informed.for_mixture([1, 0]).predict(X), H[0])
    assert np.allclose(informed.predict(X), 0.25 * H[0] + 0.75 * H[1])


def test_volumes_are_those_of_training_rows():
    rows = np.r_[0:40, 40:50]
    model = VolumeWeighted(Ridge()).fit(X[rows], Y[rows], D[rows])
    assert np.allclose(model.alpha_, [0.8, 0.2])
    stated = [Source(n, m, n_rows=k) for n, m, k in zip("ab", OWN, (1, 3), strict=True)]
    again = VolumeWeighted.from_sources(stated).fit(X, Y, np.where(D == "north", "a", "b"))
    assert np.allclose(again.alpha_, [0.25, 0.75])


def test_stacking_is_the_best_average_on_held_out_rows():
    sources = [Source(n, m) for n, m in zip(("north", "south"), OWN, strict=True)]
    fresh, y, d = regression(60, seed=1)
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    alpha = Stacking.from_sources(sources).fit(fresh, y, d, sample_weight=weight).alpha_
    h = np.stack([model.predict(fresh) for model in OWN])

    def loss(a):
        return weight @ (a * h[0] + (1 - a) * h[1] - y) ** 2

    best = minimize(lambda a: loss(a[0]), [0.5], bounds=[(0, 1)]).x[0]
    assert np.isclose(alpha[0], best, atol=1e-4)


@pytest.mark.parametrize("density", [GaussianKDE(bandwidth=1.0), DomainClassifier()])
def test_the_router_asks_one_source_a_row(density):
    router = HardRouter(Ridge(), density).fit(X, Y, D)
    weights = router.source_weights(X)
    assert set(weights.ravel()) == {0.0, 1.0}
    chosen = weights.argmax(axis=1)
    assert np.allclose(router.predict(X), H[chosen, np.arange(len(X))])
    assert (chosen == (D == "south")).mean() > 0.95


def test_joint_sees_all_rows_with_their_weights():
    weight = np.random.default_rng(0).random(len(Y))
    model = Joint(Ridge()).fit(X, Y, D, sample_weight=weight)
    assert np.allclose(model.predict(X), Ridge().fit(X, Y, weight).predict(X))


def test_who_is_privileged():
    names = {m.__name__ for m in (LambdaComb, Joint, GroupDRO, KernelMeanMatching) if m.privileged}
    assert names == {"LambdaComb", "Joint", "GroupDRO", "KernelMeanMatching"}
    assert not any(m.privileged for m in (Uniform, VolumeWeighted, Stacking, HardRouter))


def test_compare_gives_the_losses_of_scikit_learn():
    fresh, y, d = regression(30, seed=2)
    models = {"uniform": Uniform(Ridge()).fit(X, Y, D), "joint": Joint(Ridge()).fit(X, Y)}
    table = compare(models, fresh, y, d)
    for a, model in enumerate(models.values()):
        by_hand = [
            mean_squared_error(y[d == n], model.predict(fresh[d == n])) for n in table.sources
        ]
        assert np.allclose(table.loss[a], [*by_hand, np.mean(by_hand)])
        assert np.isclose(table.worst[a], max(by_hand))
        assert table.worst_mixture[a] == table.sources[int(np.argmax(by_hand))]
    assert (table.lower < table.loss).all()
    assert (table.loss < table.upper).all()
    assert table.privileged == (False, True)
    assert "joint*" in table.table()
    assert json.loads(table.to_json())["measure"] == "squared"


@pytest.mark.filterwarnings("ignore:the rows of")
def test_compare_of_classifiers_and_mixtures():
    rows, y, d = classification()
    model = DistributionWeightedClassifier(
        LogisticRegression(), GaussianKDE(bandwidth=0.8), random_state=0
    ).fit(rows, y, sample_domain=d)
    informed = LambdaComb.from_sources(model.sources_).fit(rows, y, d)
    table = compare(
        {"DW": model, "informed": informed}, rows, y, d, mixtures={"half": [0.5, 0.5, 0]}
    )
    by_hand = [log_loss(y[d == n], model.predict_proba(rows[d == n])) for n in "ab"]
    assert np.isclose(table.loss[0, 0], np.mean(by_hand), atol=1e-5)
    half = informed.for_mixture([0.5, 0.5, 0]).predict_proba(rows)
    by_hand = [log_loss(y[d == n], half[d == n]) for n in "ab"]
    assert np.isclose(table.loss[1, 0], np.mean(by_hand), atol=1e-5)
    wrong = compare({"DW": model}, rows, y, d, measure="error_rate")
    assert np.isclose(wrong.loss[0, -1], 1 - model.score(rows, y))


def test_compare_speaks():
    labels = np.where(np.arange(len(X)) % 2, "north", "south")
    fitted = {"uniform": Uniform(LogisticRegression()).fit(X, labels, D)}
    with pytest.raises(ValueError, match="label 'west', which is not one of the classes"):
        compare(fitted, X, np.where(labels == "north", "west", labels), D)
    with pytest.raises(ValueError, match="no models"):
        compare({}, X, Y, D)
    with pytest.raises(ValueError, match="mixture"):
        compare(fitted, X, labels, D, mixtures={"odd": [0.5, 0.4]})
