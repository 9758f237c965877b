"""Sites of one class, of few rows, and with learners that mind: a stated policy, one warning."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import DomainClassifier
from anymix.estimators import Uniform
from tests.estimators.several_sources import classification, regression

LEFT_OUT = "domain 'tiny' has fewer than 2 rows and is left out"


def quick(**settings):
    return DistributionWeightedClassifier(
        LogisticRegression(), DomainClassifier(), random_state=0, **settings
    )


def with_tiny(X, y, d, n, seed=9):
    rng = np.random.default_rng(seed)
    more = rng.normal(size=(n, X.shape[1]))
    labels = rng.choice(np.unique(y), n)
    return np.r_[X, more], np.r_[y, labels], np.r_[d, np.repeat("tiny", n)]


def with_one_class(n=20):
    X, y, d = classification()
    rng = np.random.default_rng(1)
    more = rng.normal([6.0, 6.0], 1.0, size=(n, 2))
    return np.r_[X, more], np.r_[y, np.repeat("far", n)], np.r_[d, np.repeat("late", n)]


def test_a_site_of_few_rows_chooses_nothing_for_all():
    X, y, d = with_tiny(*classification(40), 5)
    y[-5:] = ["far", "far", "far", "near", "near"]
    with pytest.warns(UserWarning, match="domain 'tiny' has fewer than 10 rows, which do not"):
        model = quick().fit(X, y, sample_domain=d)
    assert model.source_names_.tolist() == ["a", "b", "c", "tiny"]
    assert model.set_aside_ == ("tiny",)
    assert np.isfinite(model.predict_proba(X, sample_domain=d)).all()


def test_sites_of_one_row_change_nothing_for_the_others():
    X, y, d = classification(20)
    plain = quick().fit(X, y, sample_domain=d)
    more, labels, sites = with_tiny(X, y, d, 1)
    with pytest.warns(UserWarning, match=LEFT_OUT) as seen:
        model = quick().fit(more, labels, sample_domain=sites)
    assert len(seen) == 1
    assert model.source_names_.tolist() == plain.source_names_.tolist()
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    known = model.predict_proba(X[:4], sample_domain=["tiny", "a", None, "c"])
    np.testing.assert_allclose(known[::2], model.predict_proba(X[:4])[::2], rtol=1e-12)


def test_few_rows_are_kept_where_all_sites_have_few():
    rng = np.random.default_rng(0)
    sites = np.repeat(np.arange(40), 14)
    X = rng.normal(size=(560, 2)) + rng.normal(size=(40, 2))[sites]
    y = np.arange(560) % 2
    model = quick(cv=2).fit(X, y, sample_domain=sites)
    assert len(model.source_names_) == 40


def test_all_small_sites_are_named_in_one_warning():
    X, y, d = with_one_class()
    y = np.where(d == "b", "near", y)
    X, y, d = with_tiny(X, y, d, 1)
    cause = "domains 'b', 'late' have too few rows of a second class.*domain 'tiny' has fewer"
    with pytest.warns(UserWarning, match=cause) as seen:
        model = quick().fit(X, y, sample_domain=d)
    assert len(seen) == 1
    assert model.source_names_.tolist() == ["a", "b", "c", "late"]


@pytest.mark.parametrize("settings", [{}, {"refit": False, "cv": 2}])
def test_a_site_of_one_class_has_the_model_of_all_rows(settings, tmp_path):
    X, y, d = with_one_class()
    with pytest.warns(UserWarning, match="'late' has too few rows of a second class"):
        model = quick(consult=False, **settings).fit(X, y, sample_domain=d)
    assert "late" in model.source_names_.tolist()
    assert np.isfinite(model.predict_proba(X)).all()
    if settings:
        return
    pooled = LogisticRegression().fit(X, y)
    own = model.sources_[model.source_names_.tolist().index("late")]
    np.testing.assert_allclose(own.predict_proba(X, model.classes_), pooled.predict_proba(X))
    # Its rows are all of one class, so that they would favour whoever names it.
    assert model.set_aside_ == ("late",)
    anymix.save(model, tmp_path / "m")
    loaded = anymix.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_without_sharing_rows_a_site_of_one_class_learns_from_its_own():
    X, y, d = with_one_class()
    model = DistributionWeightedClassifier(random_state=0, share_rows=False)
    with pytest.warns(UserWarning, match="'late' has too few rows of a second class"):
        model.fit(X, y, sample_domain=d)
    own = model.sources_[model.source_names_.tolist().index("late")]
    assert own.labels.tolist() == ["far", "near"]
    assert own.predict_proba(X[d == "late"], model.classes_)[:, 0].mean() > 0.8


def test_a_rare_class_of_one_row_and_sites_of_two_rows():
    X, _, d = classification(8)
    y = np.where(np.arange(24) % 2, "near", "far")
    rare = np.where((d == "a") & (np.arange(24) > 1), "far", y)
    with pytest.warns(UserWarning, match="'a' has too few rows of a second class"):
        model = quick().fit(X, rare, sample_domain=d)
    assert model.source_names_.tolist() == ["a", "b", "c"]
    X, y, d = regression(3)
    site = np.repeat(["p", "q", "r"], 2)
    assert DistributionWeightedRegressor(random_state=0).fit(X, y, site).predict(X).size == 6


def test_baselines_follow_the_same_policy():
    X, y, d = with_one_class()
    with pytest.warns(UserWarning, match="'late' has too few rows of a second class"):
        model = Uniform(LogisticRegression()).fit(X, y, sample_domain=d)
    assert np.isfinite(model.predict_proba(X)).all()


def test_all_missing_columns_and_missing_classes():
    rng = np.random.default_rng(0)
    X, y, d = classification()
    table = pd.DataFrame(X, columns=["u", "v"]).assign(none=np.nan, some=rng.normal(size=len(X)))
    table.loc[d == "a", "some"] = np.nan
    third = np.where((d != "b") & (np.arange(len(X)) % 3 == 0), "third", y)
    model = DistributionWeightedClassifier(random_state=0).fit(table, third, sample_domain=d)
    assert model.classes_.tolist() == ["far", "near", "third"]
    assert np.isfinite(model.predict_proba(table)).all()


def test_a_site_without_weight_is_named():
    X, y, d = classification()
    with pytest.raises(ValueError, match=r"sample_weight is 0 in all rows of domains 'a', 'c'"):
        quick().fit(X, y, sample_domain=d, sample_weight=(d == "b").astype(float))


def test_a_learner_that_fails_names_the_site():
    class Picky(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if (X[:, 1] > 3).mean() > 0.5:
                raise RuntimeError("no")
            return super().fit(X, y, sample_weight)

    X, y, d = classification()
    model = DistributionWeightedClassifier(Picky(), DomainClassifier(), random_state=0)
    with pytest.raises(RuntimeError, match="no") as caught:
        model.fit(X, y, sample_domain=d)
    assert any("rows of 'c'" in note for note in caught.value.__notes__)


def three_classes():
    X, y, d = classification()
    third = np.where((d != "b") & (np.arange(len(X)) % 3 == 0), "third", y)
    return pd.DataFrame(X, columns=["first one", "second"]), third, d


def test_lightgbm_with_blanks_in_names_and_missing_classes():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, d = three_classes()
    learner = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1)
    model = DistributionWeightedClassifier(learner, DomainClassifier(), random_state=0)
    model.fit(X, y, sample_domain=d)
    assert model.score(X, y) > 0.6
    with pytest.raises(ValueError, match="order"):
        model.predict(X[["second", "first one"]])


@pytest.mark.parametrize("labels", [["far", "near", "third"], [0, 1, 2], [3, 5, 9]])
def test_xgboost_with_labels_of_any_kind_and_missing_classes(labels):
    xgboost = pytest.importorskip("xgboost")
    X, y, d = three_classes()
    y = np.array(labels)[np.searchsorted(["far", "near", "third"], y)]
    model = DistributionWeightedClassifier(
        xgboost.XGBClassifier(n_estimators=5, n_jobs=1), DomainClassifier(), random_state=0
    )
    model.fit(X, y, sample_domain=d)
    assert model.classes_.tolist() == labels
    assert model.score(X, y) > 0.6
