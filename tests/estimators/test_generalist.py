"""The generalist of an estimator: what trains it, who consults it, what it may not see."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.exceptions import ParameterError

LINEAR = make_pipeline(StandardScaler(), Ridge())


def world(n=60, seed=0, noise=1.0):
    """Three sources of few rows and one law."""
    rng = np.random.default_rng(seed)
    d = np.repeat(["east", "north", "west"], n)
    X = rng.normal(size=(3 * n, 6)) + np.repeat(np.eye(3, 6), n, axis=0)
    y = X @ [1.0, -1.0, 0.5, 2.0, 0.0, 1.0] + noise * rng.normal(size=3 * n)
    return X, y, d


def fitted(X, y, d, **settings):
    kind = DistributionWeightedRegressor if y.dtype.kind == "f" else DistributionWeightedClassifier
    given = {"density": GaussianKDE(), "random_state": 0, **settings}
    if kind is DistributionWeightedClassifier:
        given.setdefault("estimator", make_pipeline(StandardScaler(), LogisticRegression()))
    given.setdefault("estimator", LINEAR)
    return kind(**given).fit(X, y, sample_domain=d)


def test_it_is_the_learner_trained_on_all_rows():
    X, y, d = world()
    model = fitted(X, y, d)
    assert np.allclose(model.generalist_.predict(X), LINEAR.fit(X, y).predict(X))
    assert model.tables_.generalist.shape == y.shape
    # Held-out predictions are by models that have not seen the row.
    assert not np.allclose(model.tables_.generalist, model.generalist_.predict(X))
    assert str(model.result_.evidence.generalist) in model.describe()


def test_it_helps_sources_of_few_rows():
    X, y, d = world(30)
    new, truth, where = world(400, seed=1)
    losses = {}
    for given in ("auto", None):
        model = fitted(X, y, d, generalist=given)
        losses[given] = np.mean((model.predict(new, sample_domain=where) - truth) ** 2)
    assert losses["auto"] < losses[None]


@pytest.mark.parametrize("settings", [{"generalist": None}, {"consult": False}])
def test_there_is_none_where_none_is_wanted(settings):
    X, y, d = world()
    model = fitted(X, y, d, **settings)
    assert model.generalist_ is None
    assert model.tables_.generalist is None
    assert model.result_.evidence.generalist is None


def test_of_given_sources_nothing_is_trained_but_what_is_asked_for():
    X, y, d = world()
    sources = fitted(X, y, d).sources_
    new = world(seed=1)
    kind = DistributionWeightedRegressor
    plain = kind.from_sources(sources).fit(new[0], new[1], sample_domain=new[2])
    assert plain.generalist_ is None
    trained = kind.from_sources(sources, generalist=LINEAR, random_state=0)
    trained.fit(new[0], new[1], sample_domain=new[2])
    assert np.allclose(trained.generalist_.predict(X), LINEAR.fit(*new[:2]).predict(X))
    assert trained.certificate_.covers != ""  # models of folds were judged
    given = Source("everybody", LINEAR)
    used = kind.from_sources(sources, generalist=given).fit(new[0], new[1], sample_domain=new[2])
    assert used.generalist_ is given
    assert np.allclose(used.tables_.generalist, LINEAR.predict(new[0]))


def test_regret_is_against_the_own_models():
    X, y, d = world()
    model = fitted(X, y, d)
    without = fitted(X, y, d, generalist=None)
    assert np.allclose(model.certificate_.own_losses, without.certificate_.own_losses)


def test_rows_of_a_known_source_get_its_consulted_model():
    X, y, d = world()
    model = fitted(X, y, d)
    each = model.consulted_predictions(X)
    assert each.shape == (3, y.size)
    place = np.searchsorted(model.source_names_, d)
    found = model.predict(X, sample_domain=d)
    assert np.allclose(found, each[place, np.arange(y.size)])


def test_a_generalist_that_nobody_consults_is_not_evaluated():
    X, y, d = world(200, noise=0.1)
    y = y * np.repeat([1.0, -1.0, 3.0], 200)  # three laws, which no linear model of all tells
    model = fitted(X, y, d)
    used = model.combination_.needed()
    if not used[3:].any():
        object.__setattr__(model.generalist_, "predictor", None)
        model.predict(X)
    assert used[:3].all()


def test_a_second_fit_forgets_it():
    X, y, d = world()
    model = fitted(X, y, d)
    model.set_params(generalist=None).fit(X, y, sample_domain=d)
    assert model.generalist_ is None


def test_what_it_cannot_be_is_refused():
    X, y, d = world()
    with pytest.raises(TypeError, match="generalist must be"):
        fitted(X, y, d, generalist="joint")
    with pytest.raises(ParameterError, match="generalist takes 'auto' or None"):
        fitted(X, y, d, generalist=Ridge(), share_rows=False)
    boosted = DomainClassifier.boosted()
    with pytest.raises(ParameterError, match="density takes no classifier"):
        fitted(X, y, d, density=boosted, share_rows=False)


# -- by sums over sites ---------------------------------------------------------------------------


def test_by_sums_it_is_the_model_of_all_rows():
    X, y, d = world()
    model = fitted(X, y, d, share_rows=False)
    record = model.result_.evidence.generalist
    due = make_pipeline(StandardScaler(), Ridge(record.strength)).fit(X, y)
    assert np.allclose(model.generalist_.predict(X), due.predict(X), atol=1e-8)
    assert record.learned_from == "sums over sites"
    assert 0 < record.n_rounds <= 60
    assert record.n_numbers > 0
    assert "numbers left them" in model.describe()


def test_by_sums_labels_are_told_by_the_model_of_all_rows():
    X, y, d = world()
    labels = np.where(y > 1, "much", np.where(y < -1, "little", "some"))
    model = fitted(X, labels, d, share_rows=False)
    record = model.result_.evidence.generalist
    linear = LogisticRegression(C=1.0 / record.strength, max_iter=10_000, tol=1e-12)
    due = make_pipeline(StandardScaler(), linear).fit(X, labels)
    found = model.generalist_.predict_proba(X, model.classes_)
    assert np.allclose(found, due.predict_proba(X), atol=1e-5)
    assert record.n_rounds <= 60


def test_sites_that_keep_their_rows_have_the_usual_defaults():
    X, y, d = world(80)
    labels = np.where(y > 0, "yes", "no")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DistributionWeightedClassifier(random_state=0, share_rows=False)
        model.fit(X, labels, sample_domain=d)
    assert "trees" not in model.density_choice_.names
    assert model.generalist_ is not None


def test_without_columns_in_common_there_is_none():
    X, y, d = world()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    model = fitted(X, y, d, estimator=tree, share_rows=False)
    assert model.generalist_ is None
