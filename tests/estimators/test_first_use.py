"""What a new user runs into gets one sentence, said once."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, compare
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.estimators import (
    Comparison,
    CrossLoss,
    GroupDRO,
    HardRouter,
    Joint,
    KernelMeanMatching,
    Uniform,
    summarise,
)
from tests.estimators.several_sources import classification, regression

KERNEL = GaussianKDE(1.0)


def said(action):
    """Return the sentences that an action gives as warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in seen], {w.filename for w in seen}


def test_columns_of_other_scales_are_named_once_at_the_line_of_the_user():
    X, y, d = regression()
    X = np.c_[X, np.random.default_rng(1).normal(50_000, 20_000, len(X))]
    model = DistributionWeightedRegressor(Ridge(), GaussianKDE(), random_state=0)
    sentences, files = said(lambda: model.fit(X, y, d))
    assert len(sentences) == 1
    assert "next to column 2" in sentences[0]
    assert files == {__file__}


def test_scaling_in_front_restores_the_certificate():
    X, y, d = regression(100)
    wide = np.c_[X, np.random.default_rng(1).normal(50_000, 20_000, len(X))]
    kernels = DistributionWeightedRegressor(Ridge(), GaussianKDE(), consult=False, random_state=0)
    plain = clone(kernels).fit(X, y, d)
    scaled = make_pipeline(StandardScaler(), clone(kernels))
    scaled.fit(wide, y, distributionweightedregressor__sample_domain=d)
    with pytest.warns(UserWarning, match="scale the columns"):
        raw = clone(kernels).fit(wide, y, d)
    good, bad = scaled[-1].certificate_.robust_loss, raw.certificate_.robust_loss
    assert good < 2 * plain.certificate_.robust_loss < bad


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (DistributionWeightedRegressor, regression),
        (DistributionWeightedClassifier, classification),
    ],
)
def test_rows_without_domains_are_warned_of_and_nothing_is_certified(kind, problem):
    X, y, _ = problem()
    with pytest.warns(UserWarning, match=f"{kind.__name__} was fitted without sample_domain"):
        model = kind().fit(X, y)
    for missing in ("certificate_", "cross_loss_", "solution_", "tables_"):
        with pytest.raises(AttributeError, match=f"no {missing}: .*fit it with sample_domain"):
            getattr(model, missing)
    with pytest.raises(AttributeError, match=f"'{kind.__name__}' object has no attribute 'certif'"):
        _ = model.certif
    with pytest.raises(AttributeError, match="no certificate_ yet: fit it with sample_domain"):
        _ = kind().certificate_
    assert np.array_equal(copy.deepcopy(model).predict(X), model.predict(X))


def patients():
    X, y, d = classification()
    smoker = np.where(X[:, 1] > 2, "yes", "no")
    return pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "smoker": smoker}), y, d


def prepared():
    # A site may have seen smokers alone.
    encode = OneHotEncoder(handle_unknown="ignore")
    return make_column_transformer((SimpleImputer(), ["u", "v"]), (encode, ["smoker"]))


@pytest.mark.parametrize("density", [None, KERNEL, DomainClassifier()])
def test_text_and_gaps_are_too_much_for_a_density_which_says_so(density):
    frame, y, d = patients()
    model = DistributionWeightedClassifier(make_pipeline(prepared(), LogisticRegression()), density)
    with pytest.raises(ValueError, match="the density needs complete numbers, but column 'smoker'"):
        model.fit(frame, y, d)
    frame.loc[::2, "v"] = np.nan
    with pytest.raises(ValueError, match="column 'v' has missing values") as caught:
        model.fit(frame, y, d)
    assert "distributionweightedclassifier__sample_domain" in str(caught.value)
    with pytest.raises(ValueError, match="the density needs complete numbers"):
        HardRouter(model.estimator, density).fit(frame, y, d)


def test_missing_numbers_name_their_column():
    X, y, d = classification()
    frame = pd.DataFrame({"age": X[:, 0], "dose": np.where(np.arange(len(X)) % 9, X[:, 1], np.nan)})
    with pytest.raises(ValueError, match="but column 'dose' has missing values"):
        DistributionWeightedClassifier(density=DomainClassifier(), cv=2).fit(frame, y, d)


def test_a_learner_that_takes_missing_values_is_told_of_words():
    frame, y, d = patients()
    frame.loc[::9, "u"] = np.nan
    with pytest.raises(ValueError, match="but column 'smoker' holds"):
        Uniform(HistGradientBoostingClassifier()).fit(frame, y, sample_domain=d)


def test_both_remedies_for_text_and_gaps_work():
    frame, y, d = patients()
    frame.loc[3, "v"] = np.nan
    front = make_pipeline(prepared(), DistributionWeightedClassifier(random_state=0))
    front.fit(frame, y, distributionweightedclassifier__sample_domain=d)
    density = make_pipeline(FrozenEstimator(prepared().fit(frame)), GaussianKDE(random_state=0))
    inner = make_pipeline(prepared(), LogisticRegression())
    inside = DistributionWeightedClassifier(inner, density, random_state=0).fit(frame, y, d)
    assert min(front.score(frame, y), inside.score(frame, y)) > 0.8


def test_other_faults_of_a_density_are_told_as_they_are():
    X, y, d = regression()
    with pytest.raises(ValueError, match=r"bandwidth must be .* not 'wide'"):
        DistributionWeightedRegressor(density=GaussianKDE("wide")).fit(X, y, d)
    frame, y, d = patients()
    density = make_pipeline(StandardScaler(), KERNEL)
    with pytest.raises(ValueError, match="could not convert string to float"):
        HardRouter(make_pipeline(prepared(), LogisticRegression()), density).fit(frame, y, d)


def test_gaps_in_an_array_are_named_with_the_remedy():
    X, y, d = regression()
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"column 1 has missing values.*SimpleImputer\(\), model"):
        DistributionWeightedRegressor(RandomForestRegressor()).fit(X, y, d)
    words = np.array([[1.0, "no"], [2.0, "yes"]], dtype=object)
    with pytest.raises(ValueError, match="complete numbers, but column 1 holds 'no'"):
        Uniform(Ridge()).fit(words, [0, 1])


def test_rows_without_names_are_warned_of_once():
    X, y, d = regression()
    frame = pd.DataFrame(X, columns=["u", "v"])
    model = DistributionWeightedRegressor(random_state=0).fit(frame, y, d)
    for ask in (
        model.predict,
        model.source_weights,
        model.log_responsibilities,
        model.novelty,
        model.predict_or_abstain,
    ):
        sentences, _ = said(lambda ask=ask: ask(X))
        assert len(sentences) == 1, ask
        assert "does not have valid feature names, but DistributionWeighted" in sentences[0]
        assert said(lambda ask=ask: ask(frame))[0] == []


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"density": "gmm"}, r"density must be an object with fit and score_samples or .*'gmm'"),
        ({"density": GaussianKDE}, r"density must be .* such as GaussianKDE\(\)"),
        ({"density": StandardScaler()}, "density must be"),
        ({"estimator": "forest"}, "estimator must be an object with fit and predict, .*'forest'"),
        ({"estimator": Ridge}, "estimator must be an object"),
    ],
)
@pytest.mark.parametrize("kind", [DistributionWeightedRegressor, HardRouter])
def test_parts_that_are_none_are_told_what_they_must_be(kind, parts, sentence):
    X, y, d = regression()
    with pytest.raises(TypeError, match=sentence):
        kind(**{"estimator": Ridge(), **parts}).fit(X, y, d)


@pytest.mark.parametrize("kind", [Joint, GroupDRO, KernelMeanMatching])
def test_an_estimator_to_reweigh_is_told_what_it_must_be(kind):
    X, y, d = regression()
    with pytest.raises(TypeError, match="estimator must be an object with fit and predict"):
        kind("forest").fit(X, y, sample_domain=d)


def test_models_to_compare_have_names():
    X, y, d = regression()
    model = Uniform(Ridge()).fit(X, y, d)
    with pytest.raises(TypeError, match=r"models must be a mapping of names .* got list"):
        compare([model], X, y, d)


def test_a_pipeline_is_summarised_by_its_last_step():
    X, y, d = regression()
    model = make_pipeline(StandardScaler(), DistributionWeightedRegressor(random_state=0))
    model.fit(X, y, distributionweightedregressor__sample_domain=d)
    assert summarise(model) == summarise(model[-1])


def comparison(loss, measure="squared", names=("a", "b")):
    loss = np.array(loss, dtype=float)
    return Comparison(
        methods=names,
        privileged=(False, True),
        sources=("x", "y"),
        mixtures=("x", "a rather long name"),
        mixture_weights=np.eye(2),
        loss=loss,
        lower=loss,
        upper=loss,
        worst=loss.max(axis=1),
        worst_mixture=("x", "x"),
        measure=measure,
    )


def test_columns_of_a_comparison_are_as_wide_as_their_numbers():
    table = comparison([[3_456_789.0, 0.5], [-123_456.0, 99_999.0]]).table()
    lines = table.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split() == ["a", "3.457e+06", "0.5000", "3.457e+06"]
    assert lines[2].split() == ["b*", "-1.235e+05", "99999.0000", "99999.0000"]


def test_a_printed_comparison_is_its_table_and_the_measure():
    found = comparison([[1, 2], [3, 4]], "error_rate")
    *table, last = str(found).splitlines()
    assert "\n".join(table) == found.table()
    assert "error rate" in last
    assert "*" in last
    assert "(squared error in squared units of the target, smaller is better" in str(
        comparison([[1, 2], [3, 4]])
    )


def test_a_printed_cross_loss_is_a_table():
    X, y, d = regression()
    found = DistributionWeightedRegressor(random_state=0).fit(X, y, d).cross_loss_
    assert isinstance(found, CrossLoss)
    lines = str(found).splitlines()
    assert lines[0].split() == ["north", "south"]
    assert lines[1].split()[:3] == ["north", f"{found.mean[0, 0]:.4f}", "±"]
    assert "95 % intervals" in lines[3]
