"""Sixty mistakes that a scientist makes, and what anymix says to each."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.svm import LinearSVC

from anymix import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    compare,
    load,
    save,
)
from anymix.densities import GaussianKDE
from anymix.estimators import Joint, SingleSource, Uniform, summarise
from anymix.report import render


@dataclass(frozen=True)
class Rows:
    """A table with words and gaps of two hospitals, who is ill, and the hospital of each row."""

    X: Any
    y: Any
    site: Any

    @property
    def numbers(self) -> Any:
        """The one column that is complete numbers."""
        return self.X[["age"]]

    def but(self, **other: Any) -> Rows:
        """The same rows with something else in place of X, y or site."""
        return replace(self, **other)

    def plus(self, **columns: Any) -> Rows:
        """The same rows with more columns, or with other values in them."""
        return self.but(X=self.X.assign(**columns))


def rows_of(seed: int, n: int = 60) -> Rows:
    rng = np.random.default_rng(seed)
    site = np.repeat(["north", "south"], n)
    X = pd.DataFrame(
        {
            "age": rng.normal(np.where(site == "north", 35, 65), 8).round(1),
            "pressure": rng.normal(130, 15, 2 * n),
            "ward": rng.choice(["a", "b", None], 2 * n),
        }
    )
    high = (X.age - 50) * (X.pressure - 130) + rng.normal(0, 60, 2 * n) > 0
    X.loc[::9, "pressure"] = np.nan
    return Rows(X, pd.Series(np.where(high, "ill", "well")), pd.Series(site))


TRAIN, NEW = rows_of(0), rows_of(1)


def fit(rows: Rows = TRAIN, **parameters: Any) -> Any:
    """Fit to the table as it is."""
    model = DistributionWeightedClassifier(**{"cv": 2, "random_state": 0, **parameters})
    return model.fit(rows.X, rows.y, sample_domain=rows.site)


def quick(rows: Rows = TRAIN, **parameters: Any) -> Any:
    """Fit to one column of numbers, with kernels."""
    return fit(rows.but(X=rows.X[["age"]]), **{"density": GaussianKDE(0.5), **parameters})


def blank() -> Any:
    return DistributionWeightedClassifier(density=GaussianKDE(0.5), cv=2)


def with_value(values: Any, at: Any, value: Any) -> Any:
    found = values.astype(object)
    found.iloc[at] = value
    return found


class World:
    """A model of the table, one of numbers, and a folder with a few things in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.model = fit()
        self.numbers = DistributionWeightedRegressor(density=GaussianKDE(0.5), cv=2)
        self.numbers.fit(TRAIN.numbers, TRAIN.X.age**2, sample_domain=TRAIN.site)
        self.pooled = Joint(LogisticRegression()).fit(TRAIN.numbers, TRAIN.y)
        (folder / "thesis").mkdir()
        (folder / "thesis" / "chapter.txt").write_text("years of work")
        (folder / "notes.txt").write_text("a file")
        (folder / "model.pkl").write_bytes(pickle.dumps(self.pooled))

    def compare(self, rows: Rows = NEW, **options: Any) -> Any:
        return compare({"anymix": self.model}, rows.X, rows.y, rows.site, **options)

    def certify(self, rows: Rows = NEW, **options: Any) -> Any:
        return self.model.certify(rows.X, rows.y, rows.site, **options)

    def files(self) -> dict[str, bytes]:
        every = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in every}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("scientist"))


Case = tuple[Callable[[World], Any], str, str]

# What is refused: the call, the cause and the remedy in the words of the reply.
FIT: dict[str, Case] = {
    "domain-is-the-name-of-a-column": (
        lambda w: fit(TRAIN.but(site="hospital")),
        "'hospital' is a word",
        "give the name of a column",
    ),
    "domain-with-a-gap": (
        lambda w: fit(TRAIN.but(site=with_value(TRAIN.site, 3, np.nan))),
        "empty at row 3",
        "name every row's source",
    ),
    "y-with-nan": (
        lambda w: fit(TRAIN.but(y=with_value(TRAIN.y, 3, np.nan))),
        "y is empty (nan) at row 3",
        "leave the row out",
    ),
    "y-with-none": (
        lambda w: fit(TRAIN.but(y=with_value(TRAIN.y, 3, None))),
        "y is empty (None) at row 3",
        "leave the row out",
    ),
    "y-of-one-class": (
        lambda w: fit(TRAIN.but(y=TRAIN.y.replace("well", "ill"))),
        "the one class 'ill' in all rows",
        "look at how the labels were made",
    ),
    "numbers-to-a-classifier": (
        lambda w: quick(TRAIN.but(y=TRAIN.X.age)),
        "continuous",
        "DistributionWeightedRegressor",
    ),
    "labels-to-a-regressor": (
        lambda w: DistributionWeightedRegressor().fit(
            TRAIN.numbers, TRAIN.y, sample_domain=TRAIN.site
        ),
        "y holds 'well', which is not a number",
        "DistributionWeightedClassifier",
    ),
    "one-column-as-a-series": (
        lambda w: fit(TRAIN.but(X=TRAIN.X["age"])),
        "(120,)",
        "rows and columns are needed",
    ),
    "two-columns-of-one-name": (
        lambda w: fit(TRAIN.but(X=pd.concat([TRAIN.X, TRAIN.numbers], axis=1))),
        "2 columns named 'age'",
        "rename or drop all but one",
    ),
    "a-column-of-lists": (
        lambda w: fit(TRAIN.plus(drugs=[["a"]] * 120)),
        "column 'drugs' holds a list",
        "a string or a number",
    ),
    "infinity-in-a-column": (
        lambda w: fit(TRAIN.plus(age=np.inf)),
        "column 'age' of X contains infinity",
        "or a missing value",
    ),
    "an-estimator-that-reads-no-words": (
        lambda w: fit(estimator=LogisticRegression()),
        "LogisticRegression needs complete numbers, but column",
        "put an encoder or imputer before it",
    ),
}
PARAMETERS: dict[str, Case] = {
    "confidence-in-percent": (lambda w: quick(confidence=95), "not 95", "write 0.95"),
    "objective-misspelt": (
        lambda w: quick(objective="regrets"),
        "not 'regrets'",
        "did you mean 'regret'",
    ),
    "accuracy-as-the-loss": (
        lambda w: quick(loss="accuracy"),
        "'accuracy' cannot be minimised",
        "measure='accuracy'",
    ),
    "a-word-as-the-density": (lambda w: quick(density="kde"), "got 'kde'", "GaussianKDE()"),
    "a-class-as-the-estimator": (
        lambda w: quick(estimator=LogisticRegression),
        "got <class",
        "such as LogisticRegression()",
    ),
    "a-regressor-in-the-classifier": (
        lambda w: quick(estimator=Ridge()),
        "Ridge does not learn labels",
        "LogisticRegression()",
    ),
    "an-estimator-without-probabilities": (
        lambda w: quick(estimator=LinearSVC()),
        "LinearSVC has no predict_proba",
        "CalibratedClassifierCV",
    ),
    "a-source-without-that-name": (
        lambda w: SingleSource(LogisticRegression(), "nort").fit(
            TRAIN.numbers, TRAIN.y, sample_domain=TRAIN.site
        ),
        "no source 'nort'",
        "did you mean 'north'",
    ),
    "an-average-of-nothing": (
        lambda w: Uniform().fit(TRAIN.X, TRAIN.y, sample_domain=TRAIN.site),
        "Uniform needs an estimator",
        "default_estimator(X, classification=True)",
    ),
}

PREDICT: dict[str, Case] = {
    "predict-before-fit": (lambda w: blank().predict(NEW.X), "not fitted yet", "Call 'fit'"),
    "a-column-of-another-name": (
        lambda w: w.model.predict(NEW.X.rename(columns={"age": "Age "})),
        "no column 'age'",
        "rename 'Age '",
    ),
    "words-where-numbers-were": (
        lambda w: w.model.predict(NEW.X.assign(age="unknown")),
        "column 'age' holds 'unknown'",
        "but held numbers in fit",
    ),
    "one-row-as-a-dictionary": (
        lambda w: w.model.predict(NEW.X.iloc[0].to_dict()),
        "X is a dictionary",
        "give a DataFrame",
    ),
    "rows-as-dictionaries": (
        lambda w: w.model.predict(NEW.X.to_dict("records")),
        "X is a list of dictionaries",
        "give pandas.DataFrame(X)",
    ),
    "predict-no-rows": (lambda w: w.model.predict(NEW.X[:0]), "X has no values", "(0, 3)"),
    "a-column-joined-twice": (
        lambda w: w.model.predict(pd.concat([NEW.X, NEW.numbers], axis=1)),
        "2 columns named 'age'",
        "rename or drop all but one",
    ),
    "alpha-in-percent": (
        lambda w: w.model.predict_set(NEW.X, alpha=10),
        "is a share between 0 and 1",
        "write 0.1, not 10",
    ),
}
JUDGE: dict[str, Case] = {
    "certify-an-unknown-hospital": (
        lambda w: w.certify(NEW.but(site=NEW.site.replace("north", "North"))),
        "names 'North'",
        "the sources are ['north', 'south']",
    ),
    "certify-without-one-hospital": (
        lambda w: w.certify(Rows(NEW.X[:60], NEW.y[:60], NEW.site[:60])),
        "no rows of the source 'south'",
        "add some of its rows",
    ),
    "certify-a-measure-cut-short": (
        lambda w: w.certify(measure="acc"),
        "no measure 'acc'",
        "did you mean 'accuracy'",
    ),
    "certify-an-area": (
        lambda w: w.certify(measure="auc"),
        "none is certified",
        "certify 'error_rate', 'log_loss' or 'brier'",
    ),
    "certify-other-labels": (
        lambda w: w.certify(NEW.but(y=(NEW.y == "ill").astype(int))),
        "y has the label 0",
        "the classes ['ill', 'well']",
    ),
    "certify-labels-with-a-gap": (
        lambda w: w.certify(NEW.but(y=with_value(NEW.y, 2, np.nan))),
        "y is empty (nan) at row 2",
        "leave the row out",
    ),
    "compare-a-list": (
        lambda w: compare([w.model, w.pooled], NEW.X, NEW.y, NEW.site),
        "got list",
        "a mapping of names to fitted models",
    ),
    "compare-on-percent": (
        lambda w: w.compare(mixtures={"half": [50, 50]}),
        "got [50. 50.]",
        "sum to 1",
    ),
    "compare-on-a-misnamed-mixture": (
        lambda w: w.compare(mixtures={"half": {"north": 0.5, "suth": 0.5}}),
        "a mixture names 'suth'",
        "the domains are 'north' or 'south'",
    ),
    "compare-labels-as-numbers": (
        lambda w: w.compare(measure="mae"),
        "'well' is a label",
        "by 'error_rate', 'auc', 'log_loss' or 'brier'",
    ),
    "compare-the-area-of-numbers": (
        lambda w: compare({"r": w.numbers}, NEW.numbers, NEW.X.age, NEW.site, measure="auc"),
        "'r' predicts numbers",
        "'mae', 'mse' or 'rmse'",
    ),
}
HAND_ON: dict[str, Case] = {
    "a-report-of-the-pooled-model": (
        lambda w: summarise(w.pooled),
        "got Joint",
        "a DistributionWeightedRegressor or -Classifier",
    ),
    "a-report-with-the-certificate": (
        lambda w: summarise(w.model, w.model.certificate_),
        "got Certificate",
        "what anymix.compare returns",
    ),
    "a-page-of-the-model-itself": (
        lambda w: render(w.model, w.folder / "page.html"),
        "got DistributionWeightedClassifier",
        "summarise(model)",
    ),
    "save-onto-a-file": (
        lambda w: save(w.model, w.folder / "notes.txt"),
        "notes.txt is a file",
        "choose another name",
    ),
    "save-over-the-thesis": (
        lambda w: save(w.model, w.folder / "thesis"),
        "it holds chapter.txt",
        "choose another name",
    ),
    "load-a-pickle": (
        lambda w: load(w.folder / "model.pkl"),
        "model.pkl is not a model folder",
        "give a folder that anymix.save or anymix fit wrote",
    ),
    "load-what-is-not-there": (
        lambda w: load(w.folder / "modle"),
        "modle does not exist",
        "give a folder that anymix.save or anymix fit wrote",
    ),
}
REFUSED = {**FIT, **PARAMETERS, **PREDICT, **JUDGE, **HAND_ON}

# What is done all the same, with a warning.
WARNED: dict[str, Case] = {
    "a-hospital-with-one-row": (
        lambda w: fit(TRAIN.but(site=with_value(TRAIN.site, 3, "east"))),
        "domain 'east' has fewer than 2 rows",
        "predicted as those of an unknown source",
    ),
    "one-class-at-one-hospital": (
        lambda w: fit(TRAIN.but(y=TRAIN.y.where(TRAIN.site == "south", "ill"))),
        "domain 'north' has too few rows of a second class",
        "trained on the rows of all sources",
    ),
    "no-domain": (
        lambda w: blank().fit(TRAIN.numbers, TRAIN.y),
        "nothing to combine or certify",
        "pass sample_domain",
    ),
    "the-target-among-the-columns": (
        lambda w: fit(TRAIN.plus(num=(TRAIN.y == "ill").astype(int))),
        "column 'num' of X determines y exactly",
        "leave it out",
    ),
    "the-hospital-among-the-columns": (
        lambda w: fit(TRAIN.plus(hospital=TRAIN.site)),
        "column 'hospital' of X determines sample_domain",
        "leave it out",
    ),
    "numbers-with-a-comma": (
        lambda w: fit(TRAIN.plus(age=TRAIN.X.age.astype(str).str.replace(".", ","))),
        "column 'age' of X has 1",
        "make it numbers",
    ),
    "one-hospital-in-two-spellings": (
        lambda w: quick(TRAIN.but(site=with_value(TRAIN.site, slice(0, 30), "North"))),
        "'North' and 'north', which differ in case or spaces alone",
        "give both one name",
    ),
    "y-in-another-order": (
        lambda w: quick(TRAIN.but(y=TRAIN.y.sample(frac=1, random_state=0))),
        "the labels of X in another order",
        "give y.loc[X.index]",
    ),
    "folds-of-sorted-rows": (
        lambda w: cross_val_score(
            blank(), TRAIN.numbers, TRAIN.y, cv=KFold(2), params={"sample_domain": TRAIN.site}
        ),
        "names the one source 'south'",
        "StratifiedKFold over sample_domain",
    ),
    "words-in-capitals": (
        lambda w: w.model.predict(NEW.X.assign(ward=NEW.X.ward.str.upper())),
        "column 'ward' has only categories never seen in fit",
        "write categories as in fit: 'a', 'b'",
    ),
    "compare-on-the-rows-of-fit": (
        lambda w: w.compare(TRAIN),
        "this flatters it",
        "compare on rows that no model has seen",
    ),
    "alpha-for-coverage": (
        lambda w: w.model.predict_set(NEW.X, alpha=0.9),
        "the share of rows that may be missed",
        "write 0.1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_refused_in_a_sentence(case: str, world: World) -> None:
    call, cause, remedy = REFUSED[case]
    before = world.files()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError)) as refusal:
            call(world)
    said = str(refusal.value)
    assert cause in said
    assert remedy in said
    assert "\n" not in said
    assert world.files() == before


@pytest.mark.parametrize("case", WARNED)
def test_a_slip_is_warned_of_once(case: str, world: World) -> None:
    call, cause, remedy = WARNED[case]
    with warnings.catch_warnings(record=True, action="always") as seen:
        call(world)
    told = [str(one.message) for one in seen if cause in str(one.message)]
    assert len(told) == 1
    assert remedy in told[0]


def test_they_are_fifty_nine() -> None:
    assert len(REFUSED) + len(WARNED) == 59
