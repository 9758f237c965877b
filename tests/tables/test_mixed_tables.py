"""Tables with words and gaps: read by the manifest, coded alike from every kind of file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.exceptions import AuditError
from anymix.exchange import table_columns
from anymix.exchange.manifest import Feature, parse_manifest
from anymix.tables import (
    CategoryWarning,
    Column,
    Encoder,
    TableColumns,
    read_chunks,
    read_rows,
    survey_columns,
)

NAN = np.nan
WANTED = TableColumns(("age", "sex"), categories=(None, ("f", "m")), gaps=(True, True))
STRICT = TableColumns(("age", "sex"), categories=(None, ("f", "m")), gaps=(False, False))
DUE = [[41.5, 0.0], [NAN, 1.0], [7.0, NAN]]


def _csv(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_every_kind_of_file_is_coded_alike(tmp_path):
    _csv(tmp_path, "sex,age,more\nf,41.5,x\nm,,x\n ,7,x\n")
    sexes = pa.array(["f", "m", None])
    table = pa.table({"age": [41.5, None, 7.0], "sex": sexes})
    pq.write_table(table, tmp_path / "t.parquet")
    pq.write_table(table.set_column(1, "sex", sexes.dictionary_encode()), tmp_path / "d.parquet")
    np.savez(tmp_path / "text.npz", X=np.array([["41.5", "f"], ["NA", "m"], ["7", ""]]))
    np.savez(tmp_path / "codes.npz", X=np.array(DUE))
    for name in ("t.csv", "t.parquet", "d.parquet", "text.npz", "codes.npz"):
        X, _ = read_rows(tmp_path / name, WANTED)
        np.testing.assert_array_equal(X, DUE, name)


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9) | st.none(), st.sampled_from(["f", "m", ""]))),
    st.integers(1, 4),
)
def test_chunks_change_nothing_and_numbers_come_back_whole(tmp_path_factory, rows, size):
    rows = [*rows, (1.0, "f")]
    text = "".join(f"{'' if a is None else repr(a)},{sex}\n" for a, sex in rows)
    path = _csv(tmp_path_factory.mktemp("t"), f"age,sex\n{text}")
    due = [[NAN if a is None else a, {"f": 0, "m": 1, "": NAN}[sex]] for a, sex in rows]
    parts = [chunk.X for chunk in read_chunks(path, WANTED, size)]
    np.testing.assert_array_equal(np.concatenate(parts), due)
    assert all(len(part) == size for part in parts[:-1])


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "NaN", "null", "None", "?"])
def test_what_is_a_gap_among_numbers(tmp_path, cell):
    path = _csv(tmp_path, f"age,sex\n1,f\n{cell},m\n")
    np.testing.assert_array_equal(read_rows(path, WANTED)[0], [[1, 0], [NAN, 1]])
    with pytest.raises(ValueError, match="row 2: column 'age' has no number; fill it in or"):
        read_rows(path, STRICT)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("old,f", "row 2: column 'age' holds 'old', which is not a number"),
        ("1_000,f", "row 2: column 'age' holds '1_000', which is not a number"),
        ("inf,f", "row 2: column 'age' holds a number that is infinite"),
        ("9007199254740993,f", "row 2: column 'age' holds '9007199254740993', a whole number of"),
        ("1,f,9", "row 2: 3 fields where the header has 2"),
    ],
)
def test_what_was_refused_among_numbers_still_is(tmp_path, line, words):
    with pytest.raises(ValueError, match=words):
        read_rows(_csv(tmp_path, f"age,sex\n1,f\n{line}\n"), WANTED)


def test_words_that_were_never_seen_are_gaps_and_said_once(tmp_path):
    path = _csv(tmp_path, "age,sex\n1,f\n2,x\n3,y\n")
    with pytest.warns(CategoryWarning) as warned:
        chunks = list(read_chunks(path, STRICT, 1))
    np.testing.assert_array_equal([c.X[0, 1] for c in chunks], [0, NAN, NAN])
    (said,) = (str(each.message) for each in warned)
    assert "column 'sex' has 2 cells with a word that is no category of it, such as 'x'" in said
    with pytest.raises(ValueError, match="row 1: column 'sex' has no word"):
        read_rows(_csv(tmp_path, "age,sex\n1,\n"), STRICT)


def test_booleans_and_whole_numbers_as_words(tmp_path):
    wanted = TableColumns(("b", "code"), categories=(None, ("1", "2")), gaps=(True, True))
    path = _csv(tmp_path, "b,code\nTrue,1\nfalse,2.0\nTRUE,\n")
    np.testing.assert_array_equal(read_rows(path, wanted)[0], [[1, 0], [0, 1], [1, NAN]])
    pq.write_table(pa.table({"b": [True, None], "code": [2, 1]}), tmp_path / "t.parquet")
    found = read_rows(tmp_path / "t.parquet", wanted)[0]
    np.testing.assert_array_equal(found, [[1, 1], [NAN, 0]])


@pytest.mark.parametrize("code", [2.0, -1.0, 0.5])
def test_codes_that_are_none_are_refused(tmp_path, code):
    np.savez(tmp_path / "t.npz", X=np.array([[1.0, 0.0], [2.0, code]]))
    with pytest.raises(ValueError, match=r"column 'sex' holds .* not the code of one of its"):
        read_rows(tmp_path / "t.npz", WANTED)


def test_a_long_text_that_many_rows_share_is_not_unpacked(tmp_path):
    """Once for all its rows: the same object, however often the file repeats it."""
    from anymix.tables.parquet_rows import read_parquet

    long = pa.array(["x" * 1000] * 50).dictionary_encode()
    pq.write_table(pa.table({"age": [1.0] * 50, "sex": long}), tmp_path / "t.parquet")
    ((cells, _),) = read_parquet(tmp_path / "t.parquet", WANTED, 100)
    assert len(cells["sex"].dictionary) == 1


# --- kinds of the columns of a training table ---------------------------------------------------


def _kinds(tmp_path, cells, **options):
    path = _csv(tmp_path, "c\n" + "".join(f"{cell}\n" for cell in cells))
    (survey,) = survey_columns(path, ["c"], **options)
    return survey


@pytest.mark.parametrize(
    ("cells", "categories"),
    [
        (["1", "2.5", "-3e2"], None),
        (["1", '""', "2"], None),
        (["true", "False", "true"], None),
        (["f"] * 5 + ["m"] * 5, ("f", "m")),
        (["f"] * 5 + ["m"] * 4, ("f",)),
        (["1"] * 5 + ["2"] * 5 + ["3+"] * 5, ("1", "2", "3+")),
        (["a", "b", "c"], ()),
        (['""', '""'], None),
    ],
)
def test_kinds_of_columns(tmp_path, cells, categories):
    assert _kinds(tmp_path, cells).column == Column("c", categories)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1", "2", "oops", "4"], "row 3: column 'c' holds 'oops', which is not a number"),
        (["2024-01-31"] * 6, "holds dates or times, such as '2024-01-31' in row 1; turn them into"),
        (["31.12.2024 10:00"] * 6, "holds dates or times"),
        (["12:30"] * 6, "holds dates or times"),
        (["true", "1", "false"], "holds true and false among numbers"),
        (["inf", "1"], "row 1: column 'c' holds a number that is infinite"),
        (["9007199254740993", "1"], "more than 53 bits"),
    ],
)
def test_columns_that_are_neither_numbers_nor_words(tmp_path, cells, words):
    with pytest.raises(ValueError, match=words):
        _kinds(tmp_path, cells)


def test_columns_that_say_nothing_are_noted(tmp_path):
    assert _kinds(tmp_path, ['""', "NA"]).notes() == ["column 'c' is empty in all rows."]
    assert _kinds(tmp_path, ["3", "3.0"]).notes() == [
        "column 'c' is the same in all rows that have it.",
    ]
    (note,) = _kinds(tmp_path, ["f"] * 5 + ["m"] * 5 + ["rare", "rarer"]).notes()
    assert note.startswith("column 'c' has 2 categories of fewer than 5 rows, which are not listed")
    assert not _kinds(tmp_path, ["f"] * 2 + ["m"] * 2, least=2).notes()


# --- the manifest -------------------------------------------------------------------------------


def test_sentences_name_the_column(tmp_path):
    encoder = Encoder(tmp_path / "t.csv", WANTED)
    encoder.encode({"age": pa.array(["1"]), "sex": pa.array(["x"])}, 1)
    with pytest.warns(CategoryWarning) as warned:
        encoder.warn()
    assert [str(each.message) for each in warned] == [
        f"{tmp_path / 't.csv'}: column 'sex' has 1 cell with a word that is no category of it, "
        "such as 'x'; read as empty."
    ]


def test_columns_are_those_that_all_sources_allow():
    from tests.exchange.mixed_manifests import manifest_with

    plain = [{"name": "a", "dtype": "float32"}]
    open_, shut = ([{**plain[0], "categories": None, "gaps": gaps}] for gaps in (True, False))
    parsed = [parse_manifest(manifest_with(features)) for features in (open_, shut, plain)]
    assert not table_columns([parsed[2]]).gaps
    assert table_columns([parsed[0]]).gaps == (True,)
    for others in ([parsed[1]], [parsed[2]]):
        found = table_columns([parsed[0], *others])
        assert (found.gaps, found.categories) == ((False,), (None,))
    assert parsed[2].features == (Feature("a", "float32"),)
    assert parsed[0].features == (Feature("a", "float32", None, True),)
    with pytest.raises(AuditError, match="lacks"):
        parse_manifest(manifest_with([*open_, {"name": "b", "dtype": "float32"}]))
