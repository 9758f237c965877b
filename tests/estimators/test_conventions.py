"""scikit-learn's conventions: its own checks, clone, pipelines, searches, routing, frames."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.estimators import HardRouter, Uniform, default_estimator
from tests.estimators.baseline_cases import failures
from tests.estimators.several_sources import classification, regression

# One bandwidth is enough here; to choose one takes most of the time of a fit.
KDE = GaussianKDE(bandwidth=0.8)
# Every exported estimator is checked in test_every_baseline.py; these are further settings.
CHECKED = [
    DistributionWeightedRegressor(LinearRegression(), DomainClassifier(), loss="absolute"),
    DistributionWeightedClassifier(LogisticRegression(C=0.1), rule="normalised"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [DistributionWeightedRegressor, DistributionWeightedClassifier])
def test_scikit_learn_accepts_the_defaults_with_no_expected_failure(kind):
    check_estimator(kind(), expected_failed_checks=None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED, ids=str)
def test_check_estimator(estimator):
    assert failures(estimator) == []


class TwoDomainsRegressor(DistributionWeightedRegressor):
    """The checks pass no domains, so this cuts the rows into two."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, halves(y), sample_weight)


class TwoDomainsClassifier(DistributionWeightedClassifier):
    """Likewise, with all classes in both."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, halves(y), sample_weight)


def halves(y):
    values = np.asarray(y).ravel()
    if values.size < 12:
        return None
    domain = np.empty(values.size, dtype=int)
    domain[np.argsort(values, kind="stable")] = np.arange(values.size) % 2
    return domain


REWEIGHED = "rows without weight still take a place in a fold"
SPARSE = "the default density takes dense rows alone"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": REWEIGHED,
    "check_sample_weight_equivalence_on_sparse_data": REWEIGHED,
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
    "check_estimator_sparse_tag": SPARSE,
    # A single source, as the few rows of this check are, needs no density and takes gaps.
    "check_estimators_nan_inf": "gaps are refused by kernels alone",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [TwoDomainsRegressor, TwoDomainsClassifier])
def test_check_estimator_with_two_sources(kind):
    model = kind(density=GaussianKDE(bandwidth=1.0), cv=2, shrinkage=0.0, random_state=0)
    assert failures(model, **EXPECTED) == []


@pytest.mark.parametrize("kind", [DistributionWeightedRegressor, DistributionWeightedClassifier])
def test_clone_keeps_parameters_and_forgets_what_was_learned(kind):
    X, y, d = regression() if kind is DistributionWeightedRegressor else classification()
    model = kind(cv=3, eta=1e-2, random_state=1).fit(X, y, sample_domain=d)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "z_")
    assert np.array_equal(copy.fit(X, y, sample_domain=d).predict(X), model.predict(X))


def test_kind_is_told_by_tags():
    assert is_regressor(DistributionWeightedRegressor())
    assert is_classifier(DistributionWeightedClassifier())
    assert is_classifier(Uniform(LogisticRegression()))
    assert is_regressor(Uniform(Ridge()))
    assert not hasattr(Uniform(Ridge()), "predict_proba")
    sources = DistributionWeightedClassifier(density=KDE, random_state=0)
    X, y, d = classification()
    sources = sources.fit(X, y, sample_domain=d).sources_
    assert is_classifier(HardRouter.from_sources(sources))


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_pipelines(where):
    X, y, d = classification()
    if where == "inside":
        model = DistributionWeightedClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()), KDE, random_state=0
        )
        model.fit(X, y, sample_domain=d)
    else:
        inner = DistributionWeightedClassifier(density=KDE, random_state=0)
        model = make_pipeline(StandardScaler(), inner)
        model.fit(X, y, distributionweightedclassifier__sample_domain=d)
    assert model.score(X, y) > 0.8


def test_grid_search_routes_domains_and_weights():
    X, y, d = classification()
    with sklearn.config_context(enable_metadata_routing=True):
        model = DistributionWeightedClassifier(LogisticRegression(), KDE, cv=2, random_state=0)
        model.set_fit_request(sample_domain=True, sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        grid = {"distributionweightedclassifier__estimator__C": [1e-6, 1.0]}
        search = GridSearchCV(pipe, grid, cv=2, error_score="raise")
        search.fit(X, y, sample_domain=d, sample_weight=np.ones(y.size))
        assert search.best_params_["distributionweightedclassifier__estimator__C"] == 1.0
        best = search.best_estimator_[-1]
        assert best.source_names_.tolist() == ["a", "b", "c"]
        model.set_fit_request(sample_domain=True, sample_weight=False)
        folds = StratifiedKFold(2, shuffle=True, random_state=0)
        params = {"sample_domain": d}
        model.set_score_request(sample_weight=False)
        assert cross_val_score(model, X, y, cv=folds, params=params).min() > 0.6


def test_frames_keep_their_names_for_the_estimators_inside():
    X, y, d = regression()
    frame = pd.DataFrame(X, columns=["u", "v"])
    model = DistributionWeightedRegressor(consult=False, random_state=0)
    model.fit(frame, pd.Series(y), pd.Series(d))
    assert model.feature_names_in_.tolist() == ["u", "v"]
    assert model.sources_[0].predictor.feature_names_in_.tolist() == ["u", "v"]
    plain = DistributionWeightedRegressor(consult=False, random_state=0).fit(X, y, d)
    assert np.allclose(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["v", "u"]])
    with pytest.raises(ValueError, match="X has no values"):
        model.fit(frame[[]], y, d)


@pytest.mark.filterwarnings("ignore:column 'side' of X determines sample_domain")
def test_columns_of_words_reach_a_column_transformer():
    X, y, d = regression()
    frame = pd.DataFrame({"u": X[:, 0], "side": np.where(X[:, 1] > 0, "up", "down")})
    columns = make_column_transformer(
        ("passthrough", ["u"]), (OneHotEncoder(handle_unknown="ignore"), ["side"])
    )
    router = DistributionWeightedRegressor(make_pipeline(columns, Ridge()), random_state=0)
    dense = make_pipeline(columns, StandardScaler())
    router.set_params(density=_Pair(dense))
    assert router.fit(frame, y, d).score(frame, y) > 0.8


class _Pair(DomainClassifier):
    """A classifier of domains on prepared columns."""

    def __init__(self, prepare=None):
        super().__init__()
        self.prepare = prepare

    def fit(self, X, y, sample_weight=None):
        self.prepare_ = clone(self.prepare).fit(X)
        return super().fit(self.prepare_.transform(X), y, sample_weight)

    def log_responsibilities(self, X):
        return super().log_responsibilities(self.prepare_.transform(X))


def test_a_single_source_is_the_estimator_itself():
    X, y, _ = regression()
    with pytest.warns(UserWarning, match=r"the one source 0.0.*StratifiedKFold"):
        model = DistributionWeightedRegressor(Ridge(2.0)).fit(X, y, np.zeros(len(y)))
    alone = Ridge(2.0).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert model.z_.tolist() == [1.0]
    assert np.array_equal(model.source_weights(X), np.ones((len(X), 1)))
    X, y, _ = classification()
    with pytest.warns(UserWarning, match="the one source"):
        model = DistributionWeightedClassifier().fit(X, y, np.zeros(len(y)))
    alone = default_estimator(X, classification=True).fit(X, y)
    assert np.allclose(model.predict_proba(X), alone.predict_proba(X), atol=3e-6)
