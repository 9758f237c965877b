"""Rows that look like a slip are warned of, and those that do not are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from anymix import DistributionWeightedClassifier, compare
from anymix.estimators import SingleSource, Uniform, default_estimator
from anymix.estimators._input_warnings import warn_of_slips

SITE = np.repeat(["north", "south"], 50)
AGE = np.random.default_rng(0).normal(50, 9, 100)
ILL = np.random.default_rng(1).choice(["ill", "well"], 100)


def told(frame, y=ILL, site=SITE):
    with warnings.catch_warnings(record=True, action="always") as seen:
        warn_of_slips(frame, y, site)
    return [str(one.message) for one in seen]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"age": AGE, "ward": np.resize(["a", "b", "c"], 100)}),
        pd.DataFrame({"same": np.ones(100)}),
        pd.DataFrame({"measured in the north": np.where(SITE == "north", 1.0, np.nan)}),
        AGE[:, None],
        pd.DataFrame({"few": ILL})[::10],
    ],
)
def test_plain_rows_are_not_suspected(frame):
    step = 100 // len(frame)
    assert told(frame, ILL[::step], SITE[::step]) == []


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.where(ILL == "ill", 1.0, 0.0), "determines y"),
        (np.where(SITE == "north", "CH", "IT"), "determines sample_domain"),
        ([f"P{i}" for i in range(100)], "100 different words in 100 rows, such as 'P0'"),
    ],
)
def test_a_column_that_tells_too_much_is_named(column, words):
    (said,) = told(pd.DataFrame({"age": AGE, "code": column}))
    assert "column 'code'" in said
    assert words in said


def test_numbers_that_are_the_target_are_named_though_all_differ():
    (said,) = told(pd.DataFrame({"age": AGE, "bmi": AGE[::-1]}), AGE)
    assert "column 'age' of X determines y" in said


def test_a_slip_is_seen_among_very_many_rows():
    n = 30
    frame = pd.DataFrame({"age": np.tile(AGE, n), "ill": np.tile(ILL, n)})
    (said,) = told(frame, np.tile(ILL, n), np.repeat(SITE, n))
    assert "column 'ill'" in said


def patients():
    """Two hospitals, of which the south measures no cholesterol at all."""
    chol = np.where(SITE == "north", 4 * AGE, np.nan)
    return pd.DataFrame({"age": AGE, "chol": chol, "ward": np.resize(["a", None, "b"], 100)})


def test_average_and_single_source_learn_beside_an_empty_column():
    X = patients()
    same = default_estimator(X, classification=True)
    assert isinstance(same, HistGradientBoostingClassifier)
    for model in (Uniform(same), SingleSource(same, "south")):
        assert set(model.fit(X, ILL, sample_domain=SITE).predict(X)) <= {"ill", "well"}
    assert np.isnan(X.chol[50:]).all()


def test_mixtures_go_by_the_names_of_domains_too():
    X = patients()
    model = Uniform(default_estimator(X, classification=True)).fit(X, ILL, sample_domain=SITE)
    ways = {"listed": [0.25, 0.75], "named": {"south": 0.75, "north": 0.25}, "one": {"south": 1.0}}
    found = compare({"average": model}, X, ILL, SITE, mixtures=ways, measure="accuracy")
    assert found.loss[0, 0] == found.loss[0, 1]
    assert found.mixture_weights[2].tolist() == [0.0, 1.0]
    with pytest.raises(TypeError, match="a mapping of names to shares"):
        compare({"average": model}, X, ILL, SITE, mixtures=[0.5, 0.5])


def test_what_is_not_there_is_told_with_what_is():
    model = DistributionWeightedClassifier()
    with pytest.raises(AttributeError, match="no certificate_ yet: fit it with sample_domain"):
        model.certificate_  # noqa: B018
    with pytest.raises(AttributeError, match="predict_interval'; it has predict_set"):
        model.predict_interval  # noqa: B018
    with pytest.raises(ValueError, match="n_jobs must be"):
        DistributionWeightedClassifier(n_jobs=0).fit(AGE[:, None], ILL, sample_domain=SITE)
