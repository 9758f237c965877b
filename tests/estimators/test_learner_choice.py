"""estimator="auto" and lists: the right learner is chosen, recorded, saved, and cheap to choose."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.estimators import LearnerChoice, choose_estimator, default_estimator
from anymix.exceptions import ParameterError
from anymix.models import load
from anymix.sources import BoundedRidge

KDE = GaussianKDE(bandwidth=1.0)


def world(kind, n=200, seed=0, p=2):
    """Rows of p sources whose targets a linear model fits best, or trees."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(p), n)
    X = rng.normal(size=(p * n, 4)) + 0.5 * site[:, None]
    signal = X @ [1.0, -2.0, 0.5, 0.0]
    if kind == "trees":
        signal = 4.0 * ((X[:, 0] > 0) ^ (X[:, 1] > 0.5)) + (X[:, 2] > 1)
    return X, signal + 0.2 * rng.normal(size=p * n), site


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_the_right_learner_is_chosen(kind):
    X, y, site = world(kind)
    model = DistributionWeightedRegressor(density=KDE, random_state=0)
    model.fit(X, y, sample_domain=site)
    choice = model.learner_choice_
    assert choice.chosen == choice.names[0] == kind
    assert choice.differences[0] == 0
    assert (choice.differences[1:] > -3 * choice.errors[1:]).all()
    assert f"Learner: {kind}" in model.describe()
    assert isinstance(model.estimator_, HistGradientBoostingRegressor) == (kind == "trees")
    loud = clone(model).set_params(estimator=default_estimator(X, classification=False))
    loud.fit(X, y, sample_domain=site)
    worse = loud.certificate_.robust_loss - model.certificate_.robust_loss
    assert worse > 0.3 if kind == "trees" else abs(worse) < 1e-12


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_labels_of_mixed_tables(kind):
    X, y, site = world(kind, n=300)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(word=np.resize(["u", "v", "w"], 600))
    frame.loc[::9, "d"] = np.nan
    labels = np.where(y > np.median(y), "high", "low")
    model = DistributionWeightedClassifier(density="auto", random_state=0)
    model.fit(frame, labels, sample_domain=site)
    assert model.learner_choice_.chosen.startswith(kind)
    assert model.score(frame, labels) > 0.85


def test_of_few_rows_the_stronger_penalty_is_chosen():
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(8), 40)
    X = rng.normal(size=(320, 30))
    y = rng.random(320) < 1 / (1 + np.exp(-X[:, 0]))
    choice = choose_estimator(X, y, site, classification=True, random_state=0)[1]
    stronger = ("linear (C=0.1)", "linear (C=0.01)")
    assert max(map(choice.names.index, stronger)) < choice.names.index("linear")
    assert choice.chosen != "linear"


def test_of_learners_that_are_alike_at_home_the_better_generalist_decides():
    rng = np.random.default_rng(3)
    site = np.repeat(["a", "b"], 300)
    # At each site x is 0 or 1, so that a line is as good as trees; of both only trees are right.
    X = rng.integers(0, 2, (600, 1)) + 2.0 * (site == "b")[:, None]
    y = np.array([0.0, 1.0, 5.0, -3.0])[X[:, 0].astype(int)] + 0.3 * rng.normal(size=600)
    trees = DecisionTreeRegressor(max_depth=3, random_state=0)
    for candidates in ([Ridge(1e-9), trees], [trees, Ridge(1e-9)]):
        choice = choose_estimator(
            X, y, site, classification=False, candidates=candidates, random_state=0
        )[1]
        assert choice.chosen == choice.generalist == "DecisionTreeRegressor"
        assert abs(choice.differences[1]) < 0.01


def test_of_a_list_the_better_one_is_chosen_and_none_means_auto():
    X, y, site = world("linear")
    given = [DummyRegressor(), Ridge(), DecisionTreeRegressor(max_depth=2, random_state=0)]
    model = DistributionWeightedRegressor(given, KDE, random_state=0)
    model.fit(X, y, sample_domain=site)
    assert model.learner_choice_.names[0] == "Ridge"
    assert set(model.learner_choice_.names) == {"Ridge", "DummyRegressor", "DecisionTreeRegressor"}
    assert isinstance(model.sources_[0].predictor, Ridge)
    alone = DistributionWeightedRegressor(Ridge(), KDE, random_state=0)
    alone.fit(X, y, sample_domain=site)
    assert alone.learner_choice_ is None
    np.testing.assert_array_equal(alone.predict(X), model.predict(X))
    none = DistributionWeightedRegressor(None, KDE, random_state=0).fit(X, y, sample_domain=site)
    auto = DistributionWeightedRegressor("auto", KDE, random_state=0).fit(X, y, sample_domain=site)
    np.testing.assert_array_equal(none.predict(X), auto.predict(X))


@pytest.mark.parametrize(
    ("estimator", "error", "sentence"),
    [
        ([], ValueError, "estimator is an empty list"),
        ("trees", TypeError, "estimator must be an object"),
        ([Ridge(), "linear"], TypeError, "estimator must be an object"),
        ([Ridge(), LogisticRegression()], ValueError, "LogisticRegression does not learn numbers"),
    ],
)
def test_what_is_no_learner_is_refused(estimator, error, sentence):
    X, y, site = world("linear", n=20)
    with pytest.raises(error, match=sentence):
        DistributionWeightedRegressor(estimator, KDE).fit(X, y, sample_domain=site)


class Counted(RegressorMixin, BaseEstimator):
    """Ridge regression that counts its trainings by name."""

    counts: ClassVar[dict[str, int]] = {}

    def __init__(self, name="", alpha=1.0):
        self.name = name
        self.alpha = alpha

    def fit(self, X, y):
        Counted.counts[self.name] = Counted.counts.get(self.name, 0) + 1
        self.inner_ = Ridge(self.alpha).fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)


def test_nothing_is_trained_twice():
    X, y, site = world("linear")
    Counted.counts.clear()
    given = [Counted("good"), Counted("bad", alpha=1e9)]
    model = DistributionWeightedRegressor(given, KDE, cv=4, consult=False, random_state=0)
    model.fit(X, y, sample_domain=site)
    # Two sources: the loser is dropped after one fold, the winner's folds are not trained again.
    assert Counted.counts["bad"] == 2
    assert Counted.counts["good"] == 2 * 5


def test_the_choice_is_saved_and_loaded(tmp_path):
    X, y, site = world("trees")
    model = DistributionWeightedRegressor(density=KDE, random_state=0)
    model.fit(X, y, sample_domain=site)
    anymix.save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert str(again.learner_choice_) == str(model.learner_choice_)
    assert str(model.learner_choice_) in again.describe()
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-5)


def test_the_record_reads_as_a_sentence():
    choice = choose_estimator(*world("trees"), classification=False, random_state=0)[1]
    assert isinstance(choice, LearnerChoice)
    assert str(choice).startswith("Learner: trees, own held-out loss ")
    assert "; linear +" in str(choice)
    assert LearnerChoice.from_dict(choice.to_dict()).names == choice.names


def test_parameters_of_an_automatic_estimator():
    X, y, _ = world("linear", n=40)
    search = GridSearchCV(DistributionWeightedRegressor(), {"estimator__alpha": [1.0]}, cv=2)
    with pytest.raises(ParameterError, match="estimator__alpha is a parameter of the estimator"):
        search.fit(X, y)
    model = DistributionWeightedRegressor(density=KDE, consult=False, random_state=0)
    models = {"estimator": [Ridge(), Ridge(1e6)]}
    with pytest.warns(UserWarning, match="without sample_domain"):
        found = GridSearchCV(model, models, cv=2).fit(X, y)
    assert found.best_params_["estimator"].alpha == 1.0
    nested = DistributionWeightedRegressor().set_params(estimator=Ridge(), estimator__alpha=3.0)
    assert nested.estimator.alpha == 3.0


def test_many_columns_and_few_rows_stay_in_range():
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(12), 40)
    X = np.exp(rng.normal(size=(480, 150)) + 2 * rng.normal(size=(12, 1))[site])
    y = 0.3 * rng.normal(size=480) + np.log(X[:, 0])
    model = DistributionWeightedRegressor(density=KDE, random_state=0)
    model.fit(X, y, sample_domain=site)
    room = 0.2 * np.ptp(y)
    found = model.evaluate(np.exp(5 * rng.normal(size=(200, 150)))).predictions
    assert found.min() >= y.min() - room
    assert found.max() <= y.max() + room


def test_sparse_rows_are_scaled():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(400, 80)) * 10.0 ** rng.integers(-3, 4, 80)
    y = (X[:, 0] > 0) ^ (rng.random(400) < 0.1)
    estimator, choice = choose_estimator(sparse.csr_matrix(X), y, classification=True)
    assert "linear, scaled columns" in choice.names
    dense, sparsely = (clone(estimator).fit(Z, y).predict(X) for Z in (X, sparse.csr_matrix(X)))
    assert np.mean(dense == sparsely) > 0.99
    regressor = default_estimator(sparse.csr_matrix(X), classification=False)
    assert type(regressor[0]).__name__ == "MaxAbsScaler"


def test_bounds_hold_and_rows_without_weight_do_not_move_them():
    X, y, _ = world("linear")
    weight = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    wild = np.where(weight > 0, y, 1e6)
    model = BoundedRidge().fit(X, wild, sample_weight=weight)
    own = BoundedRidge().fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(model.predict(X), own.predict(X), rtol=1e-6)
    assert model.predict(1e9 * X).max() == own.upper_ < 1.2 * y.max() + 0.2 * np.ptp(y)
    inside = np.abs(X) < 1
    np.testing.assert_allclose(own.predict(X * inside), (X * inside) @ own.coef_ + own.intercept_)


class OneFold(ClassifierMixin, BaseEstimator):
    """Refuses to be trained."""

    def fit(self, X, y):
        raise ValueError("this learner cannot be trained")

    def predict_proba(self, X):
        raise AssertionError

    def predict(self, X):
        raise AssertionError


def test_a_learner_that_fails_is_not_left_out_in_silence():
    X, y, site = world("linear", n=30)
    with pytest.raises(ValueError, match="this learner cannot be trained"):
        DistributionWeightedClassifier([LogisticRegression(), OneFold()], KDE).fit(
            X, y > 0, sample_domain=site
        )


def test_rows_that_are_too_few_to_hold_out_get_the_first_learner():
    X, y = np.arange(3.0)[:, None], np.array([0, 1, 1])
    estimator, choice = choose_estimator(X, y, classification=True)
    assert choice is None
    assert estimator[-1].C == 1


def test_the_generalist_has_a_learner_of_its_own():
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(16), 40)
    X = rng.normal(size=(640, 4))
    steps = 4.0 * ((X[:, 0] > 0) ^ (X[:, 1] > 0.5)) + 0.2 * rng.normal(size=640)
    # Of forty rows nothing can be learned but a slope; of all rows the steps can.
    model = DistributionWeightedRegressor(density=KDE, random_state=0)
    model.fit(X, steps + X[:, 2], sample_domain=site)
    choice = model.learner_choice_
    assert choice.chosen != "trees"
    assert choice.generalist == "trees"
    assert isinstance(model.generalist_.predictor, HistGradientBoostingRegressor)
    assert "Generalist: trees." in model.describe()
