"""What trains on all rows in one place takes tables with words and gaps, and texts, as they are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from anymix.estimators import GroupDRO, Joint

TABLE = pd.DataFrame({"age": [30.0, 70.0] * 20, "pain": ["none", "typical", None, "none"] * 10})
WORDS = make_column_transformer((OneHotEncoder(), ["pain"]), remainder="passthrough")
TEXTS = ["good pan", "bad pan", "good book", "bad book"] * 10
CASES = {
    "table": (TABLE, make_pipeline(WORDS, LogisticRegression())),
    "texts": (TEXTS, make_pipeline(CountVectorizer(), LogisticRegression())),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("pooled", [Joint, GroupDRO])
def test_rows_reach_the_estimator_as_they_are(kind, pooled):
    X, estimator = CASES[kind]
    y, domain = np.array([0, 1] * 20), np.repeat([0, 1], 20)
    model = pooled(estimator).fit(X, y, sample_domain=domain)
    assert (model.predict(X) == y).all()
    if pooled is Joint:
        np.testing.assert_allclose(model.predict_proba(X), estimator.fit(X, y).predict_proba(X))


def test_columns_of_another_name_are_refused():
    model = Joint(CASES["table"][1]).fit(TABLE, np.array([0, 1] * 20))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(TABLE.rename(columns={"age": "years"}))
