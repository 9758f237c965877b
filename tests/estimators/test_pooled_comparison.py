"""One call compares with pooled models; domains are left out, and the worst one scores."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import DomainClassifier
from anymix.model_selection import LeaveOneDomainOut, worst_domain_scorer
from tests.estimators.several_sources import classification, regression

X, Y, D = classification()
QUICK = DistributionWeightedClassifier(LogisticRegression(), DomainClassifier(), random_state=0)


def test_compare_with_pooled_numbers():
    XR, YR, DR = regression(60)
    model = DistributionWeightedRegressor(Ridge(), DomainClassifier(), random_state=0)
    found = anymix.compare_with_pooled(model, XR, YR, DR)
    methods = ("anymix", "pooled", "best pooled", "average", "north", "south", "stacking")
    assert found.methods == methods
    assert found.privileged == (False, True, True, False, False, False, False)
    mean, low, high = found.paired("pooled")
    assert low < mean < high < 0
    np.testing.assert_allclose(found.difference, found.loss[0] - found.loss, atol=1e-12)
    np.testing.assert_allclose(found.difference[0], 0)
    assert "anymix less, on all in equal parts" in str(found)
    assert not hasattr(model, "z_")


def test_compare_with_pooled_takes_tables_groups_and_measures():
    table = pd.DataFrame(X, columns=["u", "v"]).assign(site=D, who=np.arange(len(X)) // 2)
    table.loc[::5, "u"] = np.nan
    table["sex"] = np.where(np.arange(len(X)) % 3, "f", "m")
    model = DistributionWeightedClassifier(random_state=0, cv=2)
    found = anymix.compare_with_pooled(model, table, Y, "site", groups="who", measure="accuracy")
    assert found.methods[4:7] == ("a", "b", "c")
    assert found.measure == "accuracy"
    with pytest.raises(ValueError, match="no mean over rows"):
        anymix.compare_with_pooled(QUICK, X, Y, D, measure="auc")


def test_leave_one_domain_out():
    folds = LeaveOneDomainOut()
    assert folds.get_n_splits(groups=D) == 3
    for (rest, held), name in zip(folds.split(X, Y, D), "abc", strict=True):
        assert set(D[held]) == {name}
        assert len(rest) + len(held) == len(X)
    with pytest.raises(ValueError, match="needs the domain of each row"):
        next(folds.split(X))
    with pytest.raises(ValueError, match="rows of two domains"):
        next(folds.split(X, groups=np.zeros(len(X))))
    plain = cross_val_score(QUICK, X, Y, cv=folds, groups=D, params={"sample_domain": D})
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(QUICK, X, Y, cv=folds, params={"sample_domain": D})
    np.testing.assert_array_equal(plain, routed)


def test_the_worst_domain_scores():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    worst = worst_domain_scorer("accuracy")
    each = [model.score(X[name == D], Y[name == D]) for name in "abc"]
    assert worst(model, X, Y, sample_domain=D) == min(each)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        worst(model, X, Y)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    with config_context(enable_metadata_routing=True):
        params = {"sample_domain": D}
        scores = cross_val_score(QUICK, X, Y, cv=folds, scoring=worst, params=params)
        means = cross_val_score(QUICK, X, Y, cv=folds, params=params)
    assert (scores <= means).all()
