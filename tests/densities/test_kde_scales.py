"""One bandwidth serves columns of one scale: others are named."""

import warnings

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix.densities import GaussianKDE
from anymix.densities.bandwidth import column_variances, narrow_share
from anymix.exchange.onnx_graph import Graph
from tests.densities.density_checks import damaged


def patients(n=80):
    rng = np.random.default_rng(0)
    return np.c_[rng.normal(size=(n, 3)), rng.normal(50_000, 20_000, n)]


def test_a_column_of_money_is_named_and_scaling_is_the_remedy():
    X = patients()
    with pytest.warns(UserWarning, match=r"column 3, the widest.*make_pipeline\(StandardScaler"):
        GaussianKDE(random_state=0).fit(X)
    frame = pd.DataFrame(X, columns=["age", "height", "weight", "income"])
    with pytest.warns(UserWarning, match="next to column 'income'"):
        GaussianKDE(1.0).fit(frame)
    make_pipeline(StandardScaler(), GaussianKDE(random_state=0)).fit(frame)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_raw_measurements_are_far_beyond_the_limit(load):
    X = load().data
    assert narrow_share(column_variances(X, np.ones(len(X)))) < 2e-5


def word_counts(rng):
    """Zipf's law: a few words are everywhere, most are hardly ever seen."""
    return rng.poisson(20.0 / np.arange(1, 2001), size=(200, 2000)).astype(float)


def sparse_units(rng):
    """Units of a network that fire at different rates, some hardly ever."""
    return np.maximum(rng.normal(rng.uniform(-3, 1, 256), 1.0, size=(200, 256)), 0)


@pytest.mark.parametrize(
    "X",
    [
        word_counts(np.random.default_rng(0)),
        sparse_units(np.random.default_rng(0)),
        load_digits().data,
        # Spreads that differ by thirty still leave the narrow column a say.
        np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 30.0],
        # Rounding is no spread, and a single column has nothing to be compared with.
        np.c_[np.random.default_rng(0).normal(size=100), np.full(100, 0.1) + 1e-17],
        1e9 * np.random.default_rng(0).normal(size=(100, 1)),
        np.c_[np.arange(100.0), 1e9 + np.cumsum(np.full(100, 1e-9))],
    ],
    ids=["words", "units", "pixels", "thirty", "constant", "one", "rounding"],
)
def test_columns_that_one_bandwidth_serves_are_left_alone(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianKDE(1.0).fit(X)


def test_variances_are_those_of_numpy():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(50, 3)) * [1, 10, 100] + 5, rng.random(50)
    expected = np.diag(np.cov(X.T, aweights=w, ddof=0))
    np.testing.assert_allclose(column_variances(X, w), expected, rtol=1e-12)


def sources(n=150):
    """Two sources whose columns are on scales that one bandwidth cannot serve."""
    rng = np.random.default_rng(1)
    X = np.c_[rng.normal(size=(n, 2)), 50_000 + 20_000 * rng.normal(size=n), np.full(n, 7.0)]
    return X, np.arange(n) % 2


@pytest.mark.parametrize("options", [{}, {"bandwidth": "loo"}, {"centres": 9, "random_state": 0}])
def test_a_scale_is_a_change_of_variables(options):
    """log f(x) = log f_s(x / s) − Σ log s, with the same choices made on x / s."""
    X, _ = sources()
    s = np.array([1.0, 2.0, 20_000.0, 0.1])
    options = {"random_state": 0} | options
    scaled = GaussianKDE(scale=s, **options).fit(X)
    plain = GaussianKDE(**options).fit(X / s)
    assert scaled.bandwidth_ == plain.bandwidth_
    new = X[:40] * 1.01
    expected = plain.score_samples(new / s) - np.log(s).sum()
    np.testing.assert_allclose(scaled.score_samples(new), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scaled.centres_, plain.centres_ * s, rtol=1e-12)
    drawn = plain.sample(50, random_state=3) * s
    np.testing.assert_allclose(scaled.sample(50, random_state=3), drawn, rtol=1e-9, atol=1e-9)


def test_a_scaled_density_integrates_to_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [0.01, 100.0]
    density = GaussianKDE(scale="shared", random_state=0).fit(X)
    a, b = np.linspace(-0.08, 0.08, 301), np.linspace(-800, 800, 301)
    points = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    values = np.exp(density.score_samples(points)).reshape(301, 301)
    assert np.trapezoid(np.trapezoid(values, a), b) == pytest.approx(1, abs=1e-3)


def test_all_sources_share_one_scale_and_nothing_warns():
    X, domain = sources()
    shared = GaussianKDE(scale="shared", random_state=0).with_shared(X, domain)
    assert not hasattr(shared, "centres_")
    expected = np.append(X[:, :3].std(axis=0), 1.0)
    np.testing.assert_allclose(shared.scale, expected, rtol=1e-12)
    both = [clone(shared).fit(X[domain == k]) for k in (0, 1)]
    for density in both:
        np.testing.assert_array_equal(density.scale_, shared.scale)
    alone = GaussianKDE(scale="shared", random_state=0).fit(X[domain == 0])
    np.testing.assert_allclose(alone.scale_[:3], X[domain == 0, :3].std(axis=0), rtol=1e-12)
    assert GaussianKDE().with_shared(X).scale is None
    given = np.ones(4)
    np.testing.assert_array_equal(GaussianKDE(scale=given).with_shared(X).scale, given)


def test_the_scale_routes_what_one_bandwidth_cannot():
    rng = np.random.default_rng(0)
    money, age = rng.normal(0, 20_000, 400), rng.normal(size=400)
    domain = np.arange(400) % 2
    X, train = np.c_[age + 4 * domain, money], np.arange(400) < 200

    def right(density):
        fitted = [clone(density).fit(X[train & (domain == k)]) for k in (0, 1)]
        logs = np.stack([f.score_samples(X[~train]) for f in fitted])
        return (logs.argmax(axis=0) == domain[~train]).mean()

    assert right(GaussianKDE(scale="shared", random_state=0).with_shared(X)) > 0.95
    with pytest.warns(UserWarning, match="One bandwidth cannot serve"):
        assert right(GaussianKDE(random_state=0)) < 0.8


@pytest.mark.parametrize("options", [{}, {"centres": 9}])
def test_the_scale_travels(options):
    X, _ = sources()
    density = GaussianKDE(scale="shared", random_state=0, **options).fit(X)
    for one in (density, density.shareable()):
        arrays = one.to_arrays()
        again = GaussianKDE.from_arrays(arrays, 4)
        np.testing.assert_array_equal(again.score_samples(X), one.score_samples(X))
        np.testing.assert_array_equal(again.sample(9, 0), one.sample(9, 0))
        for name, array in again.to_arrays().items():
            np.testing.assert_array_equal(array, arrays[name])
        for what, broken in damaged(arrays):
            if what == "no scale":
                continue  # as densities were packed before
            with pytest.raises(ValueError, match=r"\w"):
                GaussianKDE.from_arrays(broken, 4)
    apart = density.shareable().score_samples(X) - density.score_samples(X)
    assert abs(apart.mean()) < 1.0
    zero = arrays | {"scale": np.array([1.0, 0.0, 1.0, 1.0])}
    with pytest.raises(ValueError, match="has a scale of zero or less"):
        GaussianKDE.from_arrays(zero, 4)


def test_the_graph_of_a_scaled_density():
    X, _ = sources()
    density = GaussianKDE(scale="shared", random_state=0).fit(X)
    graph, make, double = Graph(), onnx.helper, onnx.TensorProto.DOUBLE
    out = density.log_density_graph(graph)
    ends = [
        [make.make_tensor_value_info(graph.rows, double, ["n", 4])],
        [make.make_tensor_value_info(out, double, ["n", 1])],
    ]
    whole = make.make_graph(graph.nodes, "density", *ends, graph.weights)
    model = make.make_model(whole, opset_imports=[make.make_opsetid("", 18)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    found = session.run(None, {graph.rows: X * 1.01})[0][:, 0]
    np.testing.assert_allclose(found, density.score_samples(X * 1.01), rtol=1e-9, atol=1e-4)


def test_arrays_without_a_scale_are_read_as_before():
    X = np.random.default_rng(0).normal(size=(30, 2))
    old = GaussianKDE(0.5).fit(X)
    assert set(old.to_arrays()) == {"centres", "weights", "variances", "bandwidth"}
    again = GaussianKDE.from_arrays(old.to_arrays(), 2)
    assert again.scale is None
    np.testing.assert_array_equal(again.score_samples(X), old.score_samples(X))


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ("own", "scale='own' is not known; use 'shared'"),
        ([1.0], r"scale has the shape \(1,\); 4 columns need \(4,\)"),
        ([1.0, 1.0, 0.0, 1.0], "positive, finite numbers"),
        ([1.0, 1.0, np.nan, 1.0], "positive, finite numbers"),
    ],
)
def test_scales_that_are_none(scale, words):
    with pytest.raises(ValueError, match=words):
        GaussianKDE(scale=scale).fit(sources()[0])
