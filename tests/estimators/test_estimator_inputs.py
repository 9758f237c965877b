"""Bad input gets one clear sentence."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC

from anymix import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    Source,
    Tables,
    evaluate,
)
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.estimators import LambdaComb, SingleSource, Uniform
from tests.estimators.several_sources import classification, regression

X, Y, D = classification(12)
XR, YR, DR = regression(12)
REGRESSOR = DistributionWeightedRegressor(density=GaussianKDE(bandwidth=1.0), random_state=0)
CLASSIFIER = DistributionWeightedClassifier(density=GaussianKDE(bandwidth=1.0), random_state=0)


def sources(**changes):
    """Two sources of numbers, the first changed."""
    parts = {"predictor": lambda X: X[:, 0], "density": lambda X: -np.abs(X[:, 0]), **changes}
    return [Source("north", **parts), Source("south", lambda X: X[:, 1], lambda X: -(X[:, 0] ** 2))]


@pytest.mark.parametrize(
    ("domain", "sentence"),
    [
        (np.arange(24), "names 24 sources of fewer than 2 rows each; merge some"),
        (DR[:5], "sample_domain has 5 entries for 24 rows"),
    ],
)
def test_domains(domain, sentence):
    with pytest.raises(ValueError, match=sentence):
        REGRESSOR.fit(XR, YR, sample_domain=domain)


def test_labels():
    given = DistributionWeightedClassifier.from_sources(CLASSIFIER.fit(X, Y, D).sources_)
    odd = np.where(np.arange(36) == 0, "unheard", Y)
    with pytest.raises(ValueError, match="label 'unheard', which no source knows"):
        given.fit(X, odd, sample_domain=D)
    with pytest.raises(ValueError, match="nknown label type"):
        CLASSIFIER.fit(X, np.linspace(0, 1, 36), sample_domain=D)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"predictor": lambda X: X}, "'north': its predictor returned shape"),
        ({"predictor": lambda X: X[:, 0] * np.nan}, "'north': its predictor returned nan"),
        ({"density": lambda X: X[:, 0] * np.nan}, "'north': its density returned nan"),
        ({"density": None}, "'north' has no density"),
    ],
)
def test_sources_that_misbehave(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        DistributionWeightedRegressor.from_sources(sources(**changes), density=None).fit(XR, YR, DR)


def test_probabilities_that_do_not_sum_to_one():
    def scores(X):
        return X[:, :2]

    bad = [Source(n, scores, lambda X: -X[:, 0], classes=["far", "near"]) for n in "abc"]
    with pytest.raises(ValueError, match="'a' gives probabilities that are negative or do not sum"):
        DistributionWeightedClassifier.from_sources(bad).fit(X, Y, sample_domain=D)


def test_features_in_another_order():
    frame = pd.DataFrame(XR, columns=["u", "v"])
    models = [Ridge().fit(frame[:12], YR[:12]), Ridge().fit(frame[12:], YR[12:])]
    given = [
        Source(n, m, lambda X: -(X["u"] ** 2).to_numpy()) for n, m in zip("ab", models, strict=True)
    ]
    model = DistributionWeightedRegressor.from_sources(given)
    with pytest.raises(
        ValueError, match=r"expects the features \['u', 'v'\]; X has them in another or"
    ):
        model.fit(frame[["v", "u"]], YR, np.repeat(["a", "b"], 12))
    assert model.fit(frame, YR, np.repeat(["a", "b"], 12)).predict(frame).shape == (24,)


def test_no_held_out_rows():
    given = sources()
    tables = evaluate(given, XR)
    with pytest.raises(ValueError, match="z is learned from held-out rows"):
        DistributionWeightedRegressor.from_sources(given).fit_tables(tables)
    with pytest.raises(ValueError, match="no rows of the source 'south'"):
        DistributionWeightedRegressor.from_sources(given).fit(XR, YR, np.full(24, "north"))
    with pytest.raises(ValueError, match="sample_domain is needed to learn from 2 sources"):
        DistributionWeightedRegressor.from_sources(given).fit(XR, YR)
    with pytest.raises(ValueError, match="names 'east', but the sources are"):
        DistributionWeightedRegressor.from_sources(given).fit(XR, YR, np.full(24, "east"))


def test_tables_that_do_not_fit():
    with pytest.raises(ValueError, match="fit_tables needs sources"):
        REGRESSOR.fit_tables(evaluate(sources(), XR))
    three = Tables(np.zeros((3, 4)), np.zeros((3, 4))).labelled(np.zeros(4), [0, 1, 2, 2])
    with pytest.raises(ValueError, match="tables are of 3 sources, not of 2"):
        DistributionWeightedRegressor.from_sources(sources()).fit_tables(three)
    given = CLASSIFIER.fit(X, Y, sample_domain=D).sources_
    with pytest.raises(ValueError, match="come from evaluate"):
        DistributionWeightedClassifier.from_sources(given).fit_tables(three)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"cv": 1}, "cv must be a whole number of 2 or more, or a splitter"),
        ({"cv": "five"}, "cv must be a whole number"),
        ({"loss": "cross_entropy"}, "a regression needs 'squared', .* got 'cross_entropy'"),
        ({"loss": "nonsense"}, "nonsense"),
        ({"objective": "best"}, "objective must be"),
        ({"eta": 0.0}, "eta must be a number above 0, not 0.0"),
        ({"shrinkage": -1.0}, "shrinkage must be"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_parameters(parameters, sentence):
    model = DistributionWeightedRegressor(density=GaussianKDE(bandwidth=1.0), **parameters)
    with pytest.raises(ValueError, match=sentence):
        model.fit(XR, YR, DR)


def test_parameters_of_the_classifier():
    with pytest.raises(ValueError, match="rule must be 'marginal' or 'normalised'"):
        DistributionWeightedClassifier(rule="other", density=GaussianKDE(bandwidth=1.0)).fit(
            X, Y, D
        )
    with pytest.raises(ValueError, match="'brier', or a Loss of its kind; got 'squared'"):
        clone(CLASSIFIER).set_params(loss="squared").fit(X, Y, D)


def test_parts_that_lack_something():
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        DistributionWeightedClassifier(LinearSVC(), random_state=0).fit(X, Y, sample_domain=D)
    with pytest.raises(TypeError, match=r"KNeighborsRegressor\.fit does not take it"):
        DistributionWeightedRegressor(KNeighborsRegressor()).fit(
            XR, YR, DR, sample_weight=np.ones(24)
        )
    with pytest.raises(ValueError, match="Uniform needs an estimator, or sources"):
        Uniform().fit(XR, YR, DR)
    routed = DistributionWeightedRegressor(LinearRegression(), DomainClassifier(), random_state=0)
    with pytest.raises(ValueError, match="novelty needs a density"):
        routed.fit(XR, YR, DR).novelty(XR)


def test_baselines_parameters():
    with pytest.raises(ValueError, match=r"no source 'east' among \['north', 'south'\]"):
        SingleSource(Ridge(), source="east").fit(XR, YR, DR)
    with pytest.raises(ValueError, match="no source 2 among"):
        SingleSource(Ridge(), source=2).fit(XR, YR, DR)
    with pytest.raises(ValueError, match="mixture"):
        LambdaComb(Ridge(), mixture=[0.5, 0.6]).fit(XR, YR, DR)


def _rows():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-2, 1, (40, 1)), rng.normal(2, 1, (40, 1))]
    return X, X[:, 0], np.repeat([0, 1], 40)


@pytest.mark.parametrize("empty", [None, np.nan])
def test_a_row_without_a_domain_is_named(empty):
    X, y, domain = _rows()
    domain = [*domain[:5].tolist(), empty, *domain[6:].tolist()]
    with pytest.raises(ValueError, match="sample_domain is empty at row 5"):
        DistributionWeightedRegressor().fit(X, y, sample_domain=domain)


def test_given_sources_must_be_sources_with_names_of_their_own():
    X, y, domain = _rows()
    one = Source("a", lambda X: X[:, 0], lambda X: 0 * X[:, 0])
    for sources, kind, words in (
        ([], ValueError, "sources is empty"),
        ([one, one], ValueError, "two sources are called 'a'"),
        ([one, object()], TypeError, "must hold Source objects; got object"),
    ):
        with pytest.raises(kind, match=words):
            DistributionWeightedRegressor.from_sources(sources).fit(X, y, sample_domain=domain)


def test_a_fit_to_one_source_forgets_an_earlier_fit_to_several():
    X, y, domain = _rows()
    model = DistributionWeightedRegressor(random_state=0).fit(X, y, sample_domain=domain)
    assert model.certificate_ is not None
    with pytest.warns(UserWarning, match="without sample_domain, so all rows are one source"):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")
    with pytest.raises(ValueError, match="novelty needs a density"):
        model.novelty(X)
