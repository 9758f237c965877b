"""A source answers in one form, whatever it is made of, and says in a sentence what is wrong."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.svm import LinearSVC

from anymix import DistributionWeightedRegressor, Source

X = np.arange(12.0).reshape(6, 2)
Y = np.array(["a", "b", "a", "b", "a", "b"])


def test_estimators_frozen_estimators_and_functions_answer_alike():
    model = Ridge().fit(X, X[:, 0])
    answers = [Source("s", p).predict(X) for p in (model, FrozenEstimator(model), model.predict)]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_a_column_of_predictions_becomes_a_row_of_numbers():
    assert Source("s", lambda X: X[:, :1]).predict(X).shape == (6,)


def test_densities_are_objects_or_functions():
    density = KernelDensity().fit(X)
    one, other = Source("s", None, density), Source("s", None, density.score_samples)
    assert np.array_equal(one.log_density(X), other.log_density(X))
    assert Source("s", None, lambda X: np.full(6, -np.inf)).log_density(X)[0] == -np.inf


def test_classes_are_matched_by_label_and_unseen_ones_get_the_floor():
    model = LogisticRegression().fit(X, Y)
    proba = Source("s", model).predict_proba(X, np.array(["b", "c", "a"]))
    inner = model.predict_proba(X)
    assert np.allclose(proba[:, [2, 0]], inner, atol=2e-6)
    assert np.allclose(proba[:, 1], 1e-6, rtol=1e-5)
    assert np.allclose(proba.sum(axis=1), 1)


def test_a_class_that_nobody_asks_for_is_dropped_and_the_rest_scaled():
    sure = Source("s", lambda X: np.tile([0.5, 0.3, 0.2], (6, 1)), classes=["a", "b", "c"])
    assert np.allclose(sure.predict_proba(X, np.array(["a", "b"])), [0.625, 0.375])


def test_a_source_is_finished_work_that_clone_leaves_alone():
    source = Source("s", Ridge().fit(X, X[:, 0]))
    model = DistributionWeightedRegressor.from_sources([source])
    assert clone(model).sources[0] is source


@pytest.mark.parametrize(
    ("source", "ask", "error", "sentence"),
    [
        (Source("s", lambda X: X), "predict", ValueError, r"shape \(6, 2\); \(6,\) is expected"),
        (Source("s", lambda X: X[:, 0] / 0), "predict", ValueError, "returned nan at row 0"),
        (Source("s", object()), "predict", TypeError, "has no predict and is not a function"),
        (Source("s", lambda X: X[:, 0]), "log_density", ValueError, "has no density; pass one"),
        (Source("s", None, lambda X: X[:3, 0]), "log_density", ValueError, r"its density returned"),
        (Source("s", None, lambda X: X[:, 0] * np.nan), "log_density", ValueError, "repair the"),
        (Source("s", None, lambda X: X[:, 0] + np.inf), "log_density", ValueError, "returned inf"),
        (Source("s", lambda X: X), "predict_proba", ValueError, "does not say which classes"),
        (
            Source("s", lambda X: X[:, :1], classes=["a", "b"]),
            "predict_proba",
            ValueError,
            "is expected",
        ),
        (Source("s", lambda X: X, classes=["a", "b"]), "predict_proba", ValueError, "not scores"),
        (Source("s", LinearSVC().fit(X, Y)), "predict_proba", TypeError, "CalibratedClassifierCV"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_failures_speak(source, ask, error, sentence):
    classes = (np.array(["a", "b"]),) if ask == "predict_proba" else ()
    with pytest.raises(error, match=sentence):
        getattr(source, ask)(X, *classes)


def test_features_are_asked_for_by_name_and_order():
    frame = pd.DataFrame(X, columns=["u", "v"])
    trained = Source("s", Ridge().fit(frame, X[:, 0]))
    stated = Source("s", lambda X: X["u"].to_numpy(), feature_names=["u", "v"])
    for source in (trained, stated):
        assert source.predict(frame).shape == (6,)
        with pytest.raises(ValueError, match="X has them in another order"):
            source.predict(frame[["v", "u"]])
        with pytest.raises(ValueError, match=r"X has others: \['u', 'w'\]"):
            source.predict(frame.rename(columns={"v": "w"}))
