"""refit=False deploys the models that were judged: each row by the member that never saw it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)


@pytest.fixture(scope="module")
def numbers():
    model = DistributionWeightedRegressor(Ridge(), KDE, cv=3, random_state=0, refit=False)
    return model.fit(*regression())


def test_the_members_average_predicts_and_each_judges_what_it_has_not_seen(numbers):
    X, y, d = regression()
    each = [member.predict(X) for member in numbers.members_]
    np.testing.assert_allclose(numbers.predict(X), np.mean(each, axis=0))
    np.testing.assert_allclose(numbers.source_weights(X).sum(axis=1), 1.0)
    fold = numbers.held_out_.fold
    due = np.stack(each)[fold, np.arange(len(y))]
    np.testing.assert_allclose(numbers.held_out_.predictions, due)
    names = numbers.source_names_
    losses = [np.mean((due - y)[d == name] ** 2) for name in names]
    np.testing.assert_allclose(numbers.certificate_.source_losses, losses)
    assert numbers.certificate_.covers == ""
    assert "fold models" not in numbers.certificate_.sentence


def test_labels_and_classes_that_a_member_lacks():
    X, y, d = classification()
    model = DistributionWeightedClassifier(
        LogisticRegression(), KDE, cv=3, random_state=0, refit=False
    ).fit(X, y, d)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.7
    assert model.predict_set(X, 0.2).shape == proba.shape


def test_what_only_one_model_has_is_asked_of_its_members(numbers):
    with pytest.raises(AttributeError, match="ask one of members_"):
        numbers.combination_.check()
    again = clone(numbers).set_params(refit=True).fit(*regression())
    assert again.certificate_.covers == "the fold models"
    assert not hasattr(again, "members_")
