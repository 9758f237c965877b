"""Answers as DataFrames and pictures: the numbers are those of the arrays, and keep their names."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, compare
from anymix.densities import GaussianKDE
from anymix.estimators import Joint, SingleSource, Uniform
from tests.estimators.several_sources import classification, regression

mpl.use("Agg")
KDE = GaussianKDE(bandwidth=0.8)


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows():
    X, y, d = regression()
    index = [f"row {i}" for i in range(len(X))]
    frame = pd.DataFrame(X, columns=["u", "v"], index=index)
    return frame, pd.Series(y, index), pd.Series(d, index, name="site")


@pytest.fixture(scope="module")
def model(rows):
    return DistributionWeightedRegressor(Ridge(), KDE, random_state=0).fit(*rows)


@pytest.fixture(scope="module")
def comparison(rows, model):
    models = {"average": Uniform(Ridge()).fit(*rows), "all rows": Joint(Ridge()).fit(*rows)}
    X, y, d = regression(seed=1)
    return compare({**models, "anymix": model}, pd.DataFrame(X, columns=["u", "v"]), y, d)


def test_a_comparison_is_a_frame(comparison):
    frame = comparison.to_frame()
    assert list(frame.index) == ["average", "all rows", "anymix"]
    assert list(frame.columns) == ["north", "south", "all", "worst"]
    np.testing.assert_array_equal(frame.drop(columns="worst"), comparison.loss)
    np.testing.assert_array_equal(frame["worst"], comparison.worst)
    assert frame["worst"].idxmin() == "anymix"
    assert "squared" in frame.attrs["unit"]
    assert frame.attrs["privileged"] == ["all rows"]
    assert frame.attrs["worst_mixture"]["anymix"] == comparison.worst_mixture[2]


def test_its_intervals_are_columns_if_asked_for(comparison):
    frame = comparison.to_frame(intervals=True)
    for part, due in (("estimate", "loss"), ("lower", "lower"), ("upper", "upper")):
        found = frame.xs(part, axis=1, level="value").drop(columns="worst", errors="ignore")
        np.testing.assert_array_equal(found, getattr(comparison, due))
    tidy = frame.stack("mixture")
    assert tidy.loc[("anymix", "south"), "upper"] == comparison.upper[2, 1]


def test_wrong_labels_are_named():
    X, y, d = classification()
    frame = compare({"it": Uniform(LogisticRegression()).fit(X, y, d)}, X, y, d, loss="error_rate")
    assert frame.to_frame().attrs["unit"] == "error rate"


def test_a_comparison_is_drawn(comparison):
    ax = comparison.plot()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["average", "all rows*", "anymix"]
    assert ax.yaxis_inverted()
    assert "squared" in ax.get_xlabel()
    assert "* uses" in ax.get_xlabel()
    # Mixture by mixture: who is not privileged, then who is.
    dots = [part.get_offsets()[:, 0] for part in ax.collections if hasattr(part, "get_sizes")]
    dots = [part for part in dots if len(part) in (1, 2)]
    np.testing.assert_allclose(dots[0], comparison.loss[[0, 2], 0])
    np.testing.assert_allclose(dots[1], comparison.loss[[1], 0])
    ends = ax.collections[0].get_segments()
    np.testing.assert_allclose([s[0, 0] for s in ends], comparison.lower[:, 0])
    np.testing.assert_allclose([s[1, 0] for s in ends], comparison.upper[:, 0])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["north", "south", "all"]


def test_one_mixture_is_drawn_on_given_axes(comparison):
    _, ax = pyplot.subplots()
    assert comparison.plot(ax=ax, mixtures=["all"]) is ax
    assert ax.get_legend() is None
    with pytest.raises(ValueError, match="mixtures names 'none'; there are north, south, all"):
        comparison.plot(mixtures=["none"])


def test_weights_have_the_names_of_rows_and_sources(rows, model):
    X = rows[0].iloc[5:9]
    for ask in (
        model.source_weights,
        model.model_weights,
        Uniform(Ridge()).fit(*rows).source_weights,
    ):
        frame = ask(X, frame=True)
        assert list(frame.index) == list(X.index)
        assert list(frame.columns)[:2] == ["north", "south"]
        assert list(frame.columns)[2:] == ["generalist"] * (frame.shape[1] - 2)
        np.testing.assert_array_equal(frame, ask(X))
        assert isinstance(ask(X), np.ndarray)
        assert isinstance(model.predict(X), np.ndarray)


def test_rows_without_names_are_counted(model, rows):
    one = SingleSource(Ridge()).fit(rows[0].to_numpy(), rows[1], np.repeat(7, len(rows[1])))
    frame = one.source_weights([[0.0, 1.0]], frame=True)
    assert list(frame.index) == [0]
    assert list(frame.columns) == [7]


def test_members_have_named_weights_too(rows):
    folds = DistributionWeightedRegressor(Ridge(), KDE, refit=False, cv=2, random_state=0)
    X = rows[0].iloc[:4]
    frame = folds.fit(*rows).source_weights(X, frame=True)
    np.testing.assert_array_equal(frame, folds.source_weights(X))
    assert list(frame.index) == list(X.index)


def widths(ax):
    return np.array([bar.get_width() for bar in ax.patches]).reshape(2, -1).T


def test_weights_are_drawn_for_each_domain_and_for_all_rows(rows, model):
    X, _, d = rows
    weights = model.source_weights(X)
    found = widths(model.plot_weights(X, d))
    np.testing.assert_allclose(
        found, [weights[(d == name).to_numpy()].mean(axis=0) for name in ("north", "south")]
    )
    np.testing.assert_allclose(widths(model.plot_weights(X)), weights.mean(axis=0)[None])


def test_weights_are_drawn_along_a_column(rows, model):
    X = rows[0]
    ax = model.plot_weights(X, along="u")
    assert ax.get_xlabel() == "u"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["north", "south"]
    assert len(ax.collections) == 2
    with pytest.raises(ValueError, match="along names 'w', which is not a column"):
        model.plot_weights(X, along="w")
    with (
        pytest.warns(UserWarning, match="feature names"),
        pytest.raises(ValueError, match="along is 2, but X has 2 columns without names"),
    ):
        model.plot_weights(X.to_numpy(), along=2)


def test_a_single_column_is_drawn_point_by_point_and_gaps_are_left_out(rows):
    X, y, d = rows
    single = Uniform(Ridge()).fit(X[["u"]], y, d)
    ax = single.plot_weights(X[["u"]])
    corners = ax.collections[0].get_paths()[0].vertices[:, 0]
    assert set(X["u"]) <= set(corners)
    words = X.assign(word="x")
    kind = DistributionWeightedClassifier(random_state=0, cv=2, consult=False)
    mixed = kind.fit(words, np.where(y > y.mean(), "high", "low"), d)
    with pytest.raises(ValueError, match="along names 'word', which does not hold numbers"):
        mixed.plot_weights(words, along="word")
    words.iloc[3, 0] = np.nan
    assert mixed.plot_weights(words, along="u").get_xlim()[1] < 10
    with pytest.raises(ValueError, match="which holds no values"):
        mixed.plot_weights(words.assign(u=np.nan), along="u")


@pytest.mark.parametrize(
    ("library", "extra", "ask"),
    [
        ("pandas", "notebook", lambda c: c.to_frame()),
        ("matplotlib", "plot", lambda c: c.plot()),
    ],
)
def test_a_library_that_is_missing_is_named(comparison, monkeypatch, library, extra, ask):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"{library} is not installed; .*extra '{extra}'"):
        ask(comparison)
