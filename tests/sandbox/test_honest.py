"""Graphs of honest models pass, and answer as the models do."""

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from anymix import Source
from anymix.exchange.conversion import graphs_of
from anymix.exchange.predictor import audit

RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(150, 4)))
Y = X[:, 0] - X[:, 1]
LABEL = np.where(Y > 0.5, "a", np.where(Y > -0.3, "b", "c"))
LOGISTIC = LogisticRegression()
SOME = ColumnTransformer([("scaled", StandardScaler(), [0, 1]), ("kept", "passthrough", [2, 3])])
CLASSIFIERS = [
    AdaBoostClassifier(n_estimators=5, random_state=0),
    BaggingClassifier(n_estimators=3, random_state=0),
    BernoulliNB(),
    GaussianNB(),
    GradientBoostingClassifier(n_estimators=5),
    HistGradientBoostingClassifier(max_iter=5),
    MLPClassifier((5,), solver="lbfgs", max_iter=5000, random_state=0),
    MultinomialNB(),
    OneVsRestClassifier(LOGISTIC),
    QuadraticDiscriminantAnalysis(),
    RandomForestClassifier(10, random_state=0),
    make_pipeline(MinMaxScaler(), LOGISTIC),
    make_pipeline(Normalizer(), LOGISTIC),
    make_pipeline(PCA(2), LOGISTIC),
    make_pipeline(PolynomialFeatures(2), StandardScaler(), LOGISTIC),
    make_pipeline(SimpleImputer(), LOGISTIC),
    make_pipeline(SOME, LOGISTIC),
    make_pipeline(make_union(StandardScaler(), PCA(2)), LOGISTIC),
]
WORDS = np.array([f"word{i}" for i in range(120)])
DOCUMENTS = [" ".join(RNG.choice(WORDS, 12)) for _ in range(200)]
SIDES = np.where([("word1" in text) for text in DOCUMENTS], "yes", "no")
TEXTS = [
    make_pipeline(TfidfVectorizer(), LOGISTIC),
    make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LOGISTIC),
    make_pipeline(CountVectorizer(binary=True), MultinomialNB()),
]


def largest_difference(model, rows, due, n_columns, text=False):
    (graph,) = graphs_of(Source("s", model), np.shape(rows)[-1] if not text else 1, text, "float32")
    width = 1 if text else rows.shape[1]
    found = audit(
        graph.content, graph.dtype, width, n_columns if n_columns > 1 else None, rows[:40]
    )
    return np.abs(found(rows) - np.reshape(due, (len(rows), -1))).max()


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: str(model)[:60])
def test_classifiers(model):
    model.fit(X, LABEL)
    rows = X.astype(np.float32)
    assert largest_difference(model, rows, model.predict_proba(rows), 3) < 1e-4


@pytest.mark.parametrize("model", [Ridge(), PoissonRegressor(), SVR()], ids=str)
def test_regressors(model):
    model.fit(X, np.abs(Y))
    rows = X.astype(np.float32)
    assert largest_difference(model, rows, model.predict(rows), 1) < 1e-4


@pytest.mark.parametrize("model", TEXTS, ids=lambda model: str(model)[:80])
def test_texts_of_more_words_than_a_short_list(model):
    model.fit(DOCUMENTS, SIDES)
    due = model.predict_proba(DOCUMENTS)
    assert largest_difference(model, np.array(DOCUMENTS, dtype=object), due, 2, text=True) < 1e-4


def test_a_gap_is_filled():
    model = make_pipeline(SimpleImputer(), Ridge()).fit(X, Y)
    (graph,) = graphs_of(Source("s", model), 4, False, "float32")
    found = audit(graph.content, "float32", 4)
    rows = X[:5].copy()
    rows[2, 1] = np.nan
    np.testing.assert_allclose(found(rows)[:, 0], model.predict(rows), atol=1e-5)
