"""Sources of tables with words and gaps: their manifests, what they reveal, what fits together."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from anymix import Source
from anymix.densities import ContrastiveDensity, GaussianKDE, Reference
from anymix.exceptions import AuditError, InputError
from anymix.exchange import pack_source, read_source
from anymix.exchange.leak_report import rare_categories
from anymix.exchange.manifest import parse_manifest, shortened
from anymix.exchange.read import check_alike, read_sources
from anymix.exchange.row_leaks import contained_rows, rows_beyond_chance
from anymix.tables import Column, Columns
from tests.exchange.mixed_manifests import manifest_with

CODING = Columns((Column("age"), Column("sex", ("f", "m"))))
NAN = np.nan


def _draw(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50, 9, n).round(2), rng.integers(0, 2, n)]).astype(float)
    X[rng.random(X.shape) < 0.1] = NAN
    return X, np.where(np.nan_to_num(X[:, 0], nan=50.0) > 50, "ill", "well")


def _source(name="north", coding=CODING, seed=0):
    X, y = _draw(seed=seed)
    trees = HistGradientBoostingClassifier(max_iter=10, categorical_features=[False, True])
    reference = Reference.of(_draw(seed=9)[0], "marginals", columns=coding)
    density = ContrastiveDensity(reference=reference, random_state=0).fit(X)
    return Source(name, trees.fit(X, y), density, n_rows=len(X), columns=coding), X, y


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    source, X, y = _source()
    folder = tmp_path_factory.mktemp("packed") / "north"
    manifest = pack_source(source, folder, rows=X, targets=y, held_out=(X, y))
    return folder, manifest, source


def test_what_is_packed_comes_back(packed):
    folder, manifest, source = packed
    again, (X, _) = read_source(folder), _draw(seed=3)
    X = np.concatenate([X, [[NAN, NAN], [50.0, 7.0]]])
    classes = np.array(["ill", "well"])
    assert again.columns == CODING == manifest.columns
    assert [feature.gaps for feature in manifest.features] == [True, True]
    due = source.predict_proba(X, classes)
    np.testing.assert_allclose(again.predict_proba(X, classes), due, atol=1e-5)
    np.testing.assert_allclose(again.log_density(X), source.log_density(X), atol=1e-9)


def test_frames_with_words_and_gaps_are_encoded(packed):
    import pandas

    again = read_source(packed[0])
    frame = pandas.DataFrame({"more": [1, 2, 3], "sex": ["m", None, "x"], "age": [50.0, 40, None]})
    coded = np.array([[50.0, 1.0], [40.0, NAN], [NAN, NAN]])
    np.testing.assert_array_equal(again.log_density(frame), again.log_density(coded))
    classes = np.array(["ill", "well"])
    np.testing.assert_array_equal(
        again.predict_proba(frame, classes), again.predict_proba(coded, classes)
    )
    with pytest.raises(InputError, match="has no column 'age'"):
        again.log_density(frame[["sex"]])


def test_gaps_are_allowed_where_both_parts_have_an_answer(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0].round(1)
    tree = DecisionTreeRegressor(min_samples_leaf=20).fit(X, y)
    coding = Columns((Column("a"), Column("b")))
    source = Source("north", tree, GaussianKDE(0.5).fit(X), columns=coding)
    manifest = pack_source(source, tmp_path / "s", rows=X, targets=y)
    assert [feature.gaps for feature in manifest.features] == [False, False]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"categories": ["f", "f"], "gaps": True}, "has a category twice"),
        ({"categories": ["f", 1], "gaps": True}, "has an invalid category"),
        ({"categories": [""], "gaps": True}, "has an invalid category"),
        ({"categories": ["a\x1b"], "gaps": True}, "has an invalid category"),
        ({"categories": ["x" * 201], "gaps": True}, "has an invalid category"),
        ({"categories": "fm", "gaps": True}, "must list at most 200 categories"),
        ({"categories": {"f": 0}, "gaps": True}, "must list at most 200 categories"),
        ({"categories": [f"{i}" for i in range(201)], "gaps": True}, "must list at most 200"),
        ({"categories": None, "gaps": 1}, "does not say of a feature whether it has missing"),
        ({"categories": None, "gaps": None}, "does not say of a feature whether it has missing"),
        ({"categories": None}, "lacks"),
        ({"gaps": True}, "lacks"),
        ({"categories": None, "gaps": True, "more": 1}, "has the unknown entries"),
        ({"categories": None, "gaps": True, "dtype": "string"}, "in a column of documents"),
    ],
)
def test_strange_features_are_refused(entry, words):
    with pytest.raises(AuditError, match=words):
        parse_manifest(manifest_with([{"name": "a", "dtype": "float32", **entry}]))


def test_words_of_all_columns_have_a_budget():
    words = [f"w{i}" for i in range(200)]
    features = [
        {"name": f"c{j}", "dtype": "float32", "categories": words, "gaps": False}
        for j in range(101)
    ]
    assert len(parse_manifest(manifest_with(features[:100])).features) == 100
    with pytest.raises(AuditError, match="lists 20200 categories, where 20000 are allowed"):
        parse_manifest(manifest_with(features))


def test_rare_words_are_refused_without_a_reference(tmp_path):
    X, y = np.zeros((20, 2)), np.tile(["ill", "well"], 10)
    X[:, 0], X[:2, 1] = np.arange(20), 1.0
    assert rare_categories(CODING, X) == 1
    trees = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5).fit(X, y)
    source = Source("north", trees, GaussianKDE(1.0).fit(X), columns=CODING)
    with pytest.raises(AuditError, match="lists 1 categories that fewer than 5 training rows have"):
        pack_source(source, tmp_path / "s", rows=X, targets=y)
    manifest = pack_source(source, tmp_path / "s", rows=X, targets=y, reveals_rows=True)
    assert "categories of 1 column, 1 met by fewer than 5 training rows." in manifest.reveals


def test_sources_must_code_alike(packed, tmp_path):
    others = {
        "words": Columns((Column("age"), Column("sex", ("a", "f")))),
        "kinds": Columns((Column("age"), Column("sex"))),
    }
    words = {"words": "has other categories than", "kinds": "holds numbers, in the first"}
    for name, coding in others.items():
        source, X, y = _source("south", coding, seed=1)
        pack_source(source, tmp_path / name, rows=X, targets=y)
        received = read_sources([packed[0], tmp_path / name])
        with pytest.raises(InputError, match=f"column 'sex' {words[name]}"):
            check_alike(received)


def test_a_density_of_other_columns_than_the_manifest_is_refused(packed, tmp_path):
    import json
    import shutil

    shutil.copytree(packed[0], tmp_path / "s")
    path = tmp_path / "s" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["features"][1]["categories"] = ["m", "f"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(AuditError, match="has other columns or categories than the manifest"):
        read_source(tmp_path / "s")


def test_predictor_and_density_must_be_coded_alike(tmp_path):
    source, X, y = _source()
    other = replace(source, columns=Columns((Column("age"), Column("sex", ("m", "f")))))
    with pytest.raises(InputError, match="has a density of other categories"):
        pack_source(other, tmp_path / "s", rows=X, targets=y)


# --- rows with gaps, looked for in arrays -------------------------------------------------------


def test_a_gap_stands_for_any_number():
    rows = np.array([[1.25, NAN, 7.5], [2.5, 3.75, NAN], [9.25, 9.5, 9.75], [NAN, NAN, NAN]])
    array = np.array([0.0, 1.25, 3.0, 7.5, 2.5, 3.75, 8.0, 0.0])
    assert contained_rows(rows, [array]).tolist() == [True, True, False, False]


def test_rows_with_gaps_are_found_as_brute_force_finds_them():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, size=(60, 3)) + 0.5
    rows[rng.random(rows.shape) < 0.3] = NAN
    line = rng.integers(0, 3, size=40) + 0.5
    windows = np.lib.stride_tricks.sliding_window_view(line, 3)
    due = [
        bool((np.isnan(row) | (np.abs(windows - row) < 1e-9)).all(axis=1).any())
        and not np.isnan(row).all()
        for row in rows
    ]
    assert contained_rows(rows, [line]).tolist() == due


def test_rows_of_many_patterns_are_looked_for_where_all_are_known():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 8))
    rows[:, :6][rng.random((300, 6)) < 0.5] = NAN
    filled = np.where(np.isnan(rows), 0.0, rows)
    assert contained_rows(rows, [filled]).all()
    assert not contained_rows(rows, [filled + 0.1]).any()


def test_packed_rows_with_gaps_count_and_rows_that_many_share_do_not():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 4))
    rows[rng.random(rows.shape) < 0.2] = NAN
    assert rows_beyond_chance(rows, [np.nan_to_num(rows)]) >= 99
    assert rows_beyond_chance(rows, [np.nan_to_num(rows) + 0.1]) == 0
    codes = np.tile([[NAN, 1.0, 0.0], [2.0, 1.0, 0.0]], (50, 1))
    assert rows_beyond_chance(codes, [np.array([5.0, 1.0, 0.0])]) == 0


def test_trees_that_hold_rows_with_gaps_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = NAN
    y = rng.normal(size=40)
    deep = HistGradientBoostingRegressor(learning_rate=1.0, min_samples_leaf=1, max_iter=50)
    source = Source("north", deep.fit(X, y), None, columns=Columns.of(X), n_rows=40)
    with pytest.raises(AuditError, match=r"targets as they are|target of a single row"):
        pack_source(source, tmp_path / "s", rows=X, targets=y, without_density=True)


def test_long_sayings_are_cut_at_a_sentence():
    assert shortened("One. " * 300).endswith("One. And so on.")
    assert len(shortened("One. " * 300)) < 520
