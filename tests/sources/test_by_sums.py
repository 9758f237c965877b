"""A generalist by sums: the model of all rows in one place, in a usual form."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer, OneHotEncoder, StandardScaler

from anymix.densities import BoostedTrees, leaf_columns
from anymix.sources import BoundedRidge, LinearRows, fit_by_sums, shared_columns
from anymix.sources.agreed_steps import agreed_step
from anymix.sources.by_sums import MIN_ROWS

EXACT = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cg"}


def table(seed=0, n=240):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 10, 0.1, 1, 1] + [0, 2000, 0, 1, 5]
    y = X[:, 0] * (X[:, 1] > 2000) + X[:, 3] + 0.1 * rng.normal(size=n)
    return X, y, rng.integers(3, size=n)


def parts_of(columns, X, y, domain, n_classes=0, **options):
    n = len(y)
    weight, fold = np.ones(n), np.arange(n) % 5
    each = [np.flatnonzero(domain == k) for k in range(3)]
    take = (lambda r: [X[i] for i in r]) if isinstance(X, list) else (lambda r: X[r])
    return [
        LinearRows(columns, take(r), y[r], weight[r], fold[r], n_classes, **options) for r in each
    ]


def labels_of(y, c):
    return np.digitize(y, np.quantile(y, np.linspace(0, 1, c + 1)[1:-1]))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("c", [0, 2, 3])
def test_linear_models_are_those_of_all_rows(scaled, c):
    X, y, domain = table()
    X = X if scaled else X - X.mean(axis=0)
    learner = Ridge(2.0) if not c else LogisticRegression(C=0.5, **EXACT)
    learner = make_pipeline(StandardScaler(), learner) if scaled else learner
    y = labels_of(y, c) if c else y
    own = [learner.fit(X[domain == k], y[domain == k]) for k in range(3)]
    columns = shared_columns(own)
    classes = np.arange(c) if c else None
    parts = parts_of(columns, X, y, domain, c)
    found = fit_by_sums(columns, parts, classes, folds=[-1, 3], strengths=[2.0])
    assert found.n_rounds <= 60
    # Trained without the fold; means and scales are those of all rows.
    whole = learner.fit(X, y)
    ask = "predict_proba" if c else "predict"
    got, expected = (getattr(model, ask)(X) for model in (found.predictors[0][0], whole))
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)
    got, expected = (model.predict(X) for model in (found.predictors[0][0], whole))
    np.testing.assert_allclose(got, expected, rtol=1e-8)
    assert not np.allclose(found.theta[0], found.theta[1])


@pytest.mark.parametrize("c", [0, 2, 3])
def test_leaf_models_are_linear_models_on_leaves(c):
    X, y, domain = table(1)
    X[::7, 2] = np.nan
    kind = HistGradientBoostingClassifier if c else HistGradientBoostingRegressor
    y = labels_of(y, c) if c else y
    own = [
        kind(max_iter=8, max_leaf_nodes=6, random_state=0).fit(X[domain == k], y[domain == k])
        for k in range(3)
    ]
    columns, classes = shared_columns(own), np.arange(c) + 10 if c else None
    parts = parts_of(columns, X, y, domain, c, min_rows=1)
    found = fit_by_sums(columns, parts, classes, folds=[-1, 0], strengths=[0.3, 3.0])
    A = leaf_columns([BoostedTrees.of(one) for one in own], X).toarray()
    for i, fold in enumerate((-1, 0)):
        keep = np.arange(len(y)) % 5 != fold
        for j, mu in enumerate((0.3, 3.0)):
            exact = Ridge(mu) if not c else LogisticRegression(C=1 / mu, **EXACT)
            exact.fit(A[keep], y[keep])
            model = found.predictors[i][j]
            if c:
                np.testing.assert_allclose(
                    model.predict_proba(X), exact.predict_proba(A), atol=1e-8
                )
                assert (model.predict(X) == exact.predict(A) + 10).all()
            else:
                np.testing.assert_allclose(model.predict(X), exact.predict(A), rtol=1e-8)
    assert found.n_rounds <= 60


def test_splits_of_few_rows_are_not_told():
    X, y, domain = table(2)
    own = [
        HistGradientBoostingRegressor(max_iter=8).fit(X[domain == k], y[domain == k])
        for k in range(3)
    ]
    columns = shared_columns(own)
    parts = parts_of(columns, X, y, domain, min_rows=9)
    found = fit_by_sums(columns, parts, strengths=[1.0])
    trees = [BoostedTrees.of(one) for one in own]
    order, unit = np.argsort(domain, kind="stable"), None
    each = []
    for k in range(3):
        matrix = leaf_columns(trees, X[domain == k], 9)
        unit = np.eye(matrix.shape[1]) if unit is None else unit
        each.append(np.asarray(matrix @ unit))
    exact = Ridge(1.0).fit(np.concatenate(each), y[order])
    np.testing.assert_allclose(found.theta[0, 0, 0, :-1], exact.coef_, atol=1e-8)
    np.testing.assert_allclose(found.theta[0, 0, 0, -1], exact.intercept_, rtol=1e-8)


def test_words_of_all_sources_are_columns():
    rng = np.random.default_rng(0)
    names = np.array([f"w{i}" for i in range(40)])
    texts = [" ".join(rng.choice(names[: 20 + 10 * (i % 3)], 12)) for i in range(150)]
    y = np.array([sum(int(w[1:]) for w in t.split()) for t in texts], dtype=float)
    domain = np.arange(150) % 3
    own = [
        make_pipeline(TfidfVectorizer(min_df=2), Ridge(0.2)).fit(
            [t for t, d in zip(texts, domain, strict=True) if d == k], y[domain == k]
        )
        for k in range(3)
    ]
    columns = shared_columns(own)
    found = fit_by_sums(columns, parts_of(columns, texts, y, domain, min_rows=1), strengths=[0.2])
    # Of sparse columns scikit-learn would stop earlier.
    dense = TfidfVectorizer().fit_transform(texts).toarray()
    expected = Ridge(0.2).fit(dense, y).predict(dense)
    np.testing.assert_allclose(found.predictors[0][0].predict(texts), expected, rtol=1e-8)
    said = parts_of(columns, texts[:12], y[:12], domain[:12])[0].answer("words", {}, {})["with"]
    assert (said[said > 0] >= MIN_ROWS).all()


def test_other_models_have_no_columns_in_common():
    X, y, _ = table()
    assert (
        shared_columns([make_pipeline(StandardScaler(), Ridge()).fit(X, y), Ridge().fit(X, y)])
        is None
    )
    assert shared_columns([object()]) is None


# -- steps that all sources agree on ---------------------------------------------------------------


def mixed_rows(n=80):
    """Numbers with gaps, and a category, of three sources with other means."""
    rng = np.random.default_rng(0)
    domain = np.repeat(np.arange(3), n)
    X = np.column_stack([rng.normal(size=(3 * n, 2)) + domain[:, None], rng.integers(0, 4, 3 * n)])
    y = X[:, 0] - X[:, 1] + (X[:, 2] == 2) + 0.1 * rng.normal(size=3 * n)
    X[rng.random(3 * n) < 0.1, 1] = np.nan
    return X, y, domain


def prepared():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    codes = OneHotEncoder(categories=[np.arange(4.0)], sparse_output=False)
    parts = [("numbers", numbers, [0, 1]), ("missing", MissingIndicator(features="all"), [0, 1])]
    return ColumnTransformer([*parts, ("codes", codes, [2])])


def test_a_scaler_of_all_sources_is_that_of_all_rows():
    X, _, domain = mixed_rows()
    X = np.nan_to_num(X)
    agreed = agreed_step([StandardScaler().fit(X[domain == k]) for k in range(3)])
    due = StandardScaler().fit(X)
    assert np.allclose(agreed.mean_, due.mean_)
    assert np.allclose(agreed.transform(X), due.transform(X))


def test_prepared_columns_give_the_ridge_regression_of_all_rows():
    X, y, domain = mixed_rows()
    models = [
        make_pipeline(prepared(), BoundedRidge()).fit(X[domain == k], y[domain == k])
        for k in range(3)
    ]
    columns = shared_columns(models)
    own = [np.flatnonzero(domain == k) for k in range(3)]
    parts = [
        LinearRows(columns, X[i], y[i], np.ones(i.size), np.zeros(i.size, np.intp)) for i in own
    ]
    fit = fit_by_sums(columns, parts, strengths=[2.0])
    found = fit.predictors[0][0]
    due = Ridge(2.0).fit(columns.steps.transform(X), y)
    inside = np.clip(due.predict(columns.steps.transform(X)), *columns.bounds)
    assert np.allclose(found.predict(X), inside, atol=1e-8)
    assert fit.n_numbers > 0
    far = X + np.array([1e6, 1e6, 0.0])
    assert np.all(found.predict(far) <= columns.bounds[1])


@pytest.mark.parametrize(
    "steps",
    [
        [Normalizer(), RBFSampler(n_components=20, random_state=0)],
        [MaxAbsScaler()],
        [StandardScaler(), Normalizer()],
    ],
)
def test_steps_without_rows_of_their_own_are_shared(steps):
    X, y, domain = mixed_rows()
    X = np.nan_to_num(X)
    models = [
        clone(make_pipeline(*steps, Ridge())).fit(X[domain == k], y[domain == k]) for k in range(3)
    ]
    columns = shared_columns(models)
    due = make_pipeline(*map(clone, steps)).fit(X).transform(X)
    assert np.allclose(columns.matrix(X, {}, 1), due)


def test_steps_that_differ_are_not_shared():
    X, y, domain = mixed_rows()
    X = np.nan_to_num(X)
    models = [
        make_pipeline(RBFSampler(random_state=k), Ridge()).fit(X[domain == k], y[domain == k])
        for k in range(3)
    ]
    assert shared_columns(models) is None
    assert shared_columns([make_pipeline(PCA(1), Ridge()).fit(X, y)] * 2) is None
