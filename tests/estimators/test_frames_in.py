"""Baselines take DataFrames as they are, and rows go by position."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from anymix import DistributionWeightedClassifier, compare
from anymix.densities import GaussianKDE
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
    default_estimator,
)
from tests.estimators.several_sources import classification

KINDS = [GroupDRO, Joint, KernelMeanMatching, LambdaComb, SingleSource, Stacking, Uniform]
KINDS += [VolumeWeighted]
KDE = GaussianKDE(bandwidth=0.8)


def people(gaps=False):
    X, y, d = classification()
    index = [f"p{i}" for i in range(len(X))]
    side = np.where(X[:, 1] > 0, "up", "down")
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "side": side}, index=index)
    if gaps:
        frame.loc[::7, "v"] = np.nan
        frame.loc[::11, "side"] = None
    return frame, pd.Series(y, index), pd.Series(d, index, name="site")


def by_name():
    words = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(("passthrough", ["u", "v"]), (words, ["side"]))
    return make_pipeline(columns, LogisticRegression())


@pytest.mark.parametrize("kind", KINDS)
def test_columns_reach_the_estimator_by_name(kind):
    X, y, d = people()
    front = kind(by_name())
    if "random_state" in front.get_params():
        front.set_params(random_state=0)
    model = clone(front).fit(X, y, sample_domain=d)
    assert model.feature_names_in_.tolist() == ["u", "v", "side"]
    assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["v", "u", "side"]])
    bare = clone(front).fit(X, y.to_numpy(), sample_domain=d.to_numpy())
    np.testing.assert_array_equal(bare.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [*KINDS, HardRouter])
def test_no_estimator_is_told_at_once_with_what_helps(kind):
    X, y, d = people(gaps=True)
    sentence = f"{kind.__name__} needs an estimator.*default_estimator"
    with pytest.raises(ValueError, match=sentence):
        kind(None).fit(X, y, sample_domain=d)
    if kind is HardRouter:
        return
    model = kind(default_estimator(X, classification=True, random_state=0))
    assert model.fit(X, y, sample_domain=d).score(X, y) > 0.5
    unseen = X.assign(side="sideways")
    assert set(model.predict(unseen)) <= set(y)


def test_matching_means_needs_numbers_and_says_so():
    X, y, _ = people()
    with pytest.raises(ValueError, match=r"column 'side' holds '\w+'; put the preprocessing"):
        KernelMeanMatching(by_name()).fit(X, y, X_target=X)
    X, y, _ = people(gaps=True)
    with pytest.raises(ValueError, match="column 'v' has missing values"):
        KernelMeanMatching(by_name()).fit(X[["u", "v"]], y, X_target=X[["u", "v"]])


def fitted(X, y, d):
    return DistributionWeightedClassifier(LogisticRegression(), KDE, random_state=0).fit(X, y, d)


def test_another_order_of_the_same_labels_is_warned_of_once():
    X, y, d = people()
    X = X[["u", "v"]]
    turned = d.iloc[::-1]
    with pytest.warns(UserWarning, match="sample_domain holds the labels of X in another") as seen:
        model = fitted(X, y, turned)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    # By position, as arrays.
    np.testing.assert_array_equal(
        model.predict_proba(X), fitted(X, y, turned.to_numpy()).predict_proba(X)
    )
    with pytest.warns(UserWarning, match="the index of y holds"):
        compare({"it": Uniform(LogisticRegression()).fit(X, y, d)}, X, y.iloc[::-1], d)
    with pytest.warns(UserWarning, match="the index of y holds"):
        model.evaluate(X, y.iloc[::-1], d)
    for kind in (Joint, GroupDRO, KernelMeanMatching):
        with pytest.warns(UserWarning, match="the index of y holds") as seen:
            kind(LogisticRegression()).fit(X, y.iloc[::-1])
        assert seen[0].filename == __file__


def test_other_labels_and_none_are_no_reason_to_warn():
    X, y, d = people()
    X = X[["u", "v"]]
    fitted(X, y, d)
    fitted(X, y.reset_index(drop=True), d.to_numpy())
    fitted(X.to_numpy(), y.iloc[::-1].to_numpy(), list(d))
    twice = X.set_axis(np.zeros(len(X)))
    fitted(twice, y.set_axis(np.zeros(len(X))), d)
