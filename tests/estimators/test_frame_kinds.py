"""Frames of pandas, polars and pyarrow; dates, texts, written numbers; named columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source, compare
from anymix.estimators import GroupDRO, Joint, Uniform, default_estimator
from anymix.monitor import Monitor
from anymix.tables import Columns, as_rows

KINDS = [pl.from_pandas, pa.Table.from_pandas, lambda frame: pl.from_pandas(frame).lazy()]
N = 180


def hospital(seed=0):
    rng = np.random.default_rng(seed)
    site = np.repeat(["a", "b", "c"], N // 3)
    words = ["good", "bad", "pain", "fever", "cough", "none", "well", "ill", "sore", "head"]
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, N).round(),
            "pressure": rng.normal(120, 10, N),
            "sex": rng.choice(["f", "m"], N),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "dose": [f"{dose:.1f}" for dose in rng.random(N)],
            "smokes": rng.random(N) > 0.5,
            "note": [" ".join(rng.choice(words, 6)) for _ in range(N)],
        }
    )
    X.loc[::7, "age"] = np.nan
    signal = X.pressure + 10 * X.note.str.contains("fever") + 5 * rng.normal(size=N)
    return X, np.where(signal > 124, "ill", "well"), site


def numbers():
    X, y, site = hospital()
    return X[["pressure"]].assign(x=np.arange(N) % 17 / 1.0), y, site


@pytest.fixture(scope="module")
def mixed():
    X, y, site = hospital()
    return DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=site), X, y, site


@pytest.mark.parametrize("rows", [hospital, numbers])
@pytest.mark.parametrize("kind", KINDS, ids=["polars", "pyarrow", "lazy"])
def test_frames_of_every_library_give_the_same_model(rows, kind):
    X, y, site = rows()
    mine = DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=site)
    theirs = DistributionWeightedClassifier(random_state=0)
    theirs.fit(kind(X), pl.Series(y), sample_domain=pl.Series(site))
    np.testing.assert_array_equal(theirs.predict_proba(kind(X)), mine.predict_proba(X))
    np.testing.assert_array_equal(theirs.feature_names_in_, mine.feature_names_in_)
    weights = theirs.source_weights(kind(X), frame=True)
    assert type(weights).__module__.split(".")[0] == type(kind(X)).__module__.split(".")[0]
    np.testing.assert_array_equal(np.asarray(weights), mine.source_weights(X))
    assert theirs.certify(kind(X), y, site, confidence=None).sentence
    assert Monitor(theirs, kind(X), site).estimate(kind(X)).estimate.mixture.size == 3


def test_compare_and_sources_take_frames_of_every_library():
    X, y, site = numbers()
    rng = np.random.default_rng(1)
    new = X + rng.normal(size=X.shape)
    fitted = {
        "anymix": DistributionWeightedClassifier(random_state=0).fit(X, y, site),
        "uniform": Uniform(default_estimator(X, True)).fit(pl.from_pandas(X), y, site),
        "joint": Joint(default_estimator(X, True)).fit(pa.Table.from_pandas(X), y, site),
        "dro": GroupDRO(default_estimator(X, True)).fit(pl.from_pandas(X), y, site),
    }
    by_pandas = compare(fitted, new, y, site).loss
    np.testing.assert_allclose(compare(fitted, pl.from_pandas(new), y, site).loss, by_pandas)
    source = Source("a", lambda X: X["x"].to_numpy())
    np.testing.assert_array_equal(source.predict(pl.from_pandas(X)), X["x"])


def test_a_dask_frame_is_pointed_to_its_engine():
    dask = pytest.importorskip("dask.dataframe")
    X, y, site = numbers()
    with pytest.raises(ValueError, match=r"anymix\.engines\.dask\.fit"):
        DistributionWeightedClassifier().fit(dask.from_pandas(X, 2), y, site)


@pytest.mark.parametrize("kind", KINDS[:2], ids=["polars", "pyarrow"])
def test_cells_keep_what_they_are(kind):
    table = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "flag": pd.array([True, None], dtype="boolean"),
            "word": ["a", None],
            "sort": pd.Categorical(["x", None], categories=["y", "x"]),
            "when": pd.to_datetime(["2024-01-31 06:00", None]),
        }
    )
    found = as_rows(kind(table))
    columns = Columns.of(table)
    assert Columns.of(found) == columns
    np.testing.assert_array_equal(columns.encode(found), columns.encode(table))
    assert columns.names[-5:] == tuple(
        f"when [{part}]" for part in ("days", "year", "month", "weekday", "hour")
    )


def test_lists_in_cells_are_refused_by_name():
    with pytest.raises(ValueError, match="column 'v' holds lists"):
        as_rows(pl.DataFrame({"v": [[1, 2], [3]]}))


def test_dates_texts_and_written_numbers_are_read_and_said(mixed):
    model, X, _, _ = mixed
    kinds = {column.name: column.kind for column in model.columns_}
    assert kinds["dose"] == kinds["smokes"] == kinds["day [month]"] == "number"
    assert kinds["sex"] == "category"
    assert "note [word fever]" in kinds
    assert "column 'day' holds dates, read as days since 1970, year, month" in model.describe()
    assert "column 'note' holds texts" in model.describe()
    encoded = dict(zip(model.columns_.names, model.columns_.encode(X).T, strict=True))
    np.testing.assert_array_equal(encoded["day [month]"], X.day.dt.month)
    np.testing.assert_array_equal(encoded["day [weekday]"], X.day.dt.day_of_week)
    np.testing.assert_array_equal(encoded["day [year]"], X.day.dt.year)
    np.testing.assert_array_equal(encoded["note [word fever]"], X.note.str.contains("fever"))
    np.testing.assert_array_equal(encoded["dose"], X.dose.astype(float))
    as_words = X.assign(day=X.day.dt.strftime("%Y-%m-%d"))
    np.testing.assert_array_equal(model.predict_proba(as_words), model.predict_proba(X))
    with pytest.raises(ValueError, match="column 'day' holds 'soon', where dates were learned"):
        model.predict(X.assign(day="soon"))


def test_codes_with_leading_zeros_stay_words():
    codes = pd.DataFrame({"zip": ["01067", "10115"], "n": ["1", "2"]})
    assert [column.kind for column in Columns.of(codes)] == ["category", "number"]


def test_a_model_of_dates_and_texts_is_saved(mixed, tmp_path):
    model, X, _, _ = mixed
    anymix.save(model, tmp_path / "m")
    loaded = anymix.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == X.columns.tolist()
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_a_frame_of_one_column_of_texts_is_its_texts():
    X, y, site = hospital()
    alone, texts = X[["note"]], X["note"]
    framed = DistributionWeightedClassifier(random_state=0).fit(alone, y, site)
    plain = DistributionWeightedClassifier(random_state=0).fit(texts, y, site)
    np.testing.assert_array_equal(framed.predict_proba(alone), plain.predict_proba(texts))
    np.testing.assert_array_equal(
        framed.predict_proba(alone[:1].assign(note="bad")), plain.predict_proba(["bad"])
    )


@pytest.mark.parametrize("refit", [True, False])
def test_the_source_may_be_named_by_its_column(refit, tmp_path):
    X, y, site = numbers()
    table = X.assign(site=site, patient=np.arange(N) // 2)
    model = DistributionWeightedClassifier(random_state=0, refit=refit, cv=2)
    model.fit(pl.from_pandas(table), y, sample_domain="site", groups="patient")
    assert model.feature_names_in_.tolist() == ["pressure", "x"]
    bare = DistributionWeightedClassifier(random_state=0, refit=refit, cv=2)
    bare.fit(X, y, site, groups=table.patient)
    expected = bare.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(table), expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    known = model.predict_proba(table, sample_domain="site")
    np.testing.assert_array_equal(known, bare.predict_proba(X, sample_domain=site))
    anymix.save(model, tmp_path / "m")
    loaded = anymix.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.predict_proba(table), expected, atol=1e-6)
    with pytest.raises(ValueError, match="sample_domain='sit' is a word, and neither a column"):
        DistributionWeightedClassifier().fit(table, y, sample_domain="sit")


@pytest.mark.parametrize("consult", [True, False])
def test_rows_of_known_source_use_its_pooled_model(consult):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    site = np.tile(["north", "south", "east"], 100)
    slope = np.select([site == "north", site == "south"], [3.0, -3.0], 0.5)
    y = slope * X[:, 0] + 0.1 * rng.normal(size=300)
    model = DistributionWeightedRegressor(random_state=0, consult=consult).fit(X, y, site)
    error, known_error = y - model.predict(X), y - model.predict(X, sample_domain=site)
    assert (known_error**2).mean() < 0.1 < (error**2).mean()
    pooled = model.consulted_predictions(X)
    names = model.source_names_.tolist()
    k = np.array([names.index(name) for name in site])
    np.testing.assert_allclose(model.predict(X, site), pooled[k, np.arange(300)], rtol=1e-12)
    some = np.where(np.arange(300) % 3 == 0, site, None)
    partly = model.predict(X, sample_domain=some)
    np.testing.assert_allclose(partly[::3], model.predict(X, site)[::3], rtol=1e-12)
    np.testing.assert_allclose(partly[1::3], model.predict(X)[1::3], rtol=1e-12)
    with pytest.raises(ValueError, match=r"names 'nrth', which is not a source.*mean 'north'"):
        model.predict(X[:2], sample_domain=["nrth", None])
    with pytest.raises(ValueError, match="2 entries for 3 rows"):
        model.predict(X[:3], sample_domain=["north", None])


def test_known_sources_may_be_numbers_with_gaps():
    X, y, site = numbers()
    number = np.searchsorted(["a", "b", "c"], site)
    model = DistributionWeightedClassifier(random_state=0).fit(X, y, number)
    some = np.where(np.arange(N) % 2 == 0, number, np.nan)
    found = model.predict_proba(X, sample_domain=some)
    np.testing.assert_array_equal(found[::2], model.predict_proba(X, sample_domain=number)[::2])
    np.testing.assert_allclose(found[1::2], model.predict_proba(X)[1::2], rtol=1e-12)
