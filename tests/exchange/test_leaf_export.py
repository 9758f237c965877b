"""Leaf models travel as ONNX like any other predictor."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from anymix.densities import GaussianKDE
from anymix.exchange import pack_source, read_source
from anymix.sources import LinearRows, Source, fit_by_sums, shared_columns


@pytest.mark.parametrize("c", [0, 2, 3])
def test_a_leaf_model_is_packed_and_read(c, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.digitize(X[:, 0], np.linspace(-1, 1, c + 1)[1:-1]) if c else X[:, 0] * X[:, 1]
    kind = HistGradientBoostingClassifier if c else HistGradientBoostingRegressor
    own = [kind(max_iter=5, max_leaf_nodes=5).fit(X[i::2], y[i::2]) for i in range(2)]
    columns, classes = shared_columns(own), np.arange(c) if c else None
    none = np.zeros(200, dtype=np.intp)
    part = LinearRows(columns, X, y, np.ones(200), none, c)
    model = fit_by_sums(columns, [part], classes, strengths=[1.0]).predictors[0][0]
    source = Source("all rows", model, GaussianKDE(0.5).fit(X))
    pack_source(source, tmp_path / "all", reveals_rows=True)
    again = read_source(tmp_path / "all")
    if c:
        expected = model.predict_proba(X)
        np.testing.assert_allclose(again.predict_proba(X, classes), expected, atol=1e-6)
    else:
        np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-6)
