"""A user's own loss, of whatever kind, works wherever the name of a loss does."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, compare
from anymix.core import Combination, Loss, Problem, certify, losses_at, solve
from anymix.core.losses import Brier, CrossEntropy, Squared
from anymix.densities import GaussianKDE
from anymix.estimators import Uniform, compare_tables, summarise, usual_methods
from anymix.sources import Grounds, certify_tables, usual_clip
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)
ROWS = {"label": classification(30), "vector": classification(30), "number": regression(30)}

pytestmark = pytest.mark.filterwarnings("ignore:the rows of")


@dataclass(frozen=True)
class Quadratic(Loss):
    """(1 − h)² of the label's probability h."""

    takes = "label"

    def value(self, h, y):
        return (1 - h) ** 2

    def slope(self, h, y):
        return -2 * (1 - h)

    def curvature(self, h, y):
        return np.full_like(h, 2.0)

    def curvature_ratio(self, predictions, targets):
        return 2 * ((1 - predictions) ** 2).max(axis=0)


@dataclass(frozen=True)
class Tripled(Brier):
    """Three times the Brier score."""

    def value(self, h, y):
        return 3 * super().value(h, y)

    def slope(self, h, y):
        return 3 * super().slope(h, y)

    def curvature(self, h, y):
        return 3 * super().curvature(h, y)


@dataclass(frozen=True)
class Halved(Squared):
    """Half the squared error."""

    def value(self, h, y):
        return super().value(h, y) / 2

    def slope(self, h, y):
        return super().slope(h, y) / 2

    def curvature(self, h, y):
        return super().curvature(h, y) / 2


OWN = {"label": Quadratic(), "vector": Tripled(), "number": Halved()}


@pytest.fixture(scope="module", params=OWN)
def case(request):
    loss, rows = OWN[request.param], ROWS[request.param]
    number = request.param == "number"
    kind = DistributionWeightedRegressor if number else DistributionWeightedClassifier
    model = kind(density=KDE, loss=loss, cv=3, consult=False, random_state=0)
    return loss, rows, model.fit(*rows)


def test_fit_certificate_and_cross_losses_agree(case):
    loss, _, model = case
    said, tables = model.held_out_.losses(model.tables_, loss), model.tables_
    losses = [said[tables.sample_domain == k].mean() for k in range(len(model.source_names_))]
    np.testing.assert_allclose(model.certificate_.source_losses, losses)
    np.testing.assert_allclose(np.diag(model.cross_loss_.mean), model.certificate_.own_losses)
    assert type(loss).__name__ in model.certificate_.sentence
    assert summarise(model)["loss"] == type(loss).__name__


def test_it_is_compared_by_models_and_by_tables_alike(case):
    loss, (X, y, d), model = case
    by_models = compare({"anymix": model}, X, y, d, loss=loss)
    tables = model.evaluate(X, y, d)
    names = [str(name) for name in model.source_names_]
    by_tables = compare_tables(tables, {"anymix": model.combination_}, names, loss)
    np.testing.assert_allclose(by_tables.loss, by_models.loss, rtol=1e-9)
    np.testing.assert_allclose(by_tables.upper, by_models.upper, rtol=1e-9)
    np.testing.assert_allclose(by_tables.worst, by_models.worst, rtol=1e-9)
    assert by_tables.measure == by_models.measure == type(loss).__name__


def test_it_is_certified_on_new_rows(case):
    loss, (X, y, d), model = case
    X = X + 0.1 * np.random.default_rng(5).normal(size=X.shape)
    found = model.certify(X, y, d)
    tables = model.evaluate(X, y, d)
    grounds = Grounds(clip=usual_clip(model.tables_, model.held_out_, loss))
    again = certify_tables(tables, model.combination_, loss, grounds=grounds)
    assert found.sentence == again.sentence
    point = losses_at(
        model.combination_.predict(tables.log_masses, tables.predictions), tables.targets, loss
    )
    domain = tables.sample_domain
    due = [point[domain == k].mean() for k in range(len(model.source_names_))]
    np.testing.assert_allclose(found.source_losses, due)


def test_a_subclass_of_the_cross_entropy_is_judged_by_its_own_value():
    @dataclass(frozen=True)
    class Doubled(CrossEntropy):
        def value(self, h, y):
            return -2 * np.log(h)

        def slope(self, h, y):
            return -2 / h

        def curvature(self, h, y):
            return 2 / (h * h)

        def curvature_ratio(self, predictions, targets):
            return np.full(predictions.shape[1], 2.0)

    X, y, d = ROWS["label"]
    settings = {"density": KDE, "cv": 3, "random_state": 0, "shrinkage": 0.0}
    model = DistributionWeightedClassifier(loss=Doubled(), **settings).fit(X, y, d)
    np.testing.assert_allclose(np.diag(model.cross_loss_.mean), model.certificate_.own_losses)
    plain = DistributionWeightedClassifier(**settings).fit(X, y, d)
    np.testing.assert_allclose(model.certificate_.own_losses, 2 * plain.certificate_.own_losses)
    assert not Doubled().logarithmic
    assert CrossEntropy().logarithmic
    with pytest.raises(ValueError, match="'normalised' is learned with loss='cross_entropy'"):
        DistributionWeightedClassifier(loss=Doubled(), rule="normalised", **settings).fit(X, y, d)
    own = Problem.from_log_densities(
        np.zeros((2, 4)), np.full((2, 4), 0.5), None, Doubled(), sample_domain=[0, 0, 1, 1]
    )
    with pytest.raises(ValueError, match="known for the cross-entropy only"):
        solve(own, "gamma", "dca")


@pytest.mark.parametrize(
    ("kind", "loss", "words"),
    [
        (DistributionWeightedClassifier, Halved(), "classification needs"),
        (DistributionWeightedClassifier, "squared", "classification needs"),
        (DistributionWeightedRegressor, Quadratic(), "a regression needs"),
        (DistributionWeightedRegressor, "brier", "a regression needs"),
    ],
)
def test_a_loss_of_another_kind_is_refused(kind, loss, words):
    rows = ROWS["number" if kind is DistributionWeightedRegressor else "label"]
    with pytest.raises(ValueError, match=words):
        kind(density=KDE, loss=loss, cv=2).fit(*rows)


def test_there_is_one_standard_error():
    """What the library says of models and what the command says of tables are the same numbers."""
    X, y, d = ROWS["label"]
    model = DistributionWeightedClassifier(density=KDE, cv=3, random_state=0).fit(X, y, d)
    rival = Uniform.from_sources(model.sources_).fit(X, y, d)
    by_models = compare({"uniform": rival, "anymix": model}, X, y, d)
    tables = model.evaluate(X, y, d)
    methods = usual_methods(tables, model.combination_, "abc")
    chosen = {name: methods[name] for name in ("uniform", "anymix")}
    by_tables = compare_tables(tables, chosen, "abc", "cross_entropy")
    for field in ("loss", "lower", "upper", "worst"):
        np.testing.assert_allclose(
            getattr(by_tables, field), getattr(by_models, field), rtol=1e-9, err_msg=field
        )
    point = losses_at(model.predict_proba(X), tables.targets, "cross_entropy")[d == "a"]
    half = (by_models.upper - by_models.loss)[1, 0]
    due = stats.t.ppf(0.975, point.size - 1) * point.std(ddof=1) / np.sqrt(point.size)
    assert half == pytest.approx(due)


def test_the_core_takes_all_three_kinds():
    rng = np.random.default_rng(0)
    r = rng.dirichlet(np.ones(2), 40).T
    proba = rng.dirichlet(np.ones(3), (2, 40))
    y = rng.integers(3, size=40)
    for loss in (Quadratic(), Tripled()):
        problem = Problem.from_log_densities(np.log(r), proba, y, loss, 1e-3, np.arange(40) % 2)
        z = solve(problem).z
        losses = losses_at(Combination(z, 1e-3).predict(np.log(r), proba), y, loss)
        due = [losses[np.arange(40) % 2 == k].mean() for k in range(2)]
        np.testing.assert_allclose(problem.source_losses(z), due, rtol=1e-6)
        np.testing.assert_allclose(certify(problem, z).source_losses, due, rtol=1e-6)
