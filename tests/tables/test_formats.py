"""How cells are written: separators, decimals, thousands, markers of missing values."""

import csv
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.exceptions import InputError
from anymix.tables import (
    TableColumns,
    TableFormat,
    preview_table,
    read_chunks,
    read_rows,
    survey_columns,
)

NAN = np.nan
ANY = TableColumns(("a", "b"), categories=(None, None), gaps=(True, True))


def _read(path, text, encoding="utf-8", columns=ANY, **form):
    path.write_bytes(text.encode(encoding))
    return read_rows(path, replace(columns, form=TableFormat(**form)))[0].tolist()


@pytest.mark.parametrize(
    ("text", "form", "due"),
    [
        ("a:b\n1.5:2\n", {"sep": ":"}, [[1.5, 2]]),
        ("a,b\n1 234,2\n", {"decimal": "."}, [[1234, 2]]),
        ('a,b\n"1,234","12,345,678.5"\n', {"decimal": "."}, [[1234, 12345678.5]]),
        ('a,b\n"1,234.5","12,345,678"\n', {}, [[1234.5, 12345678]]),
        ("a,b\n1'234.5,-2\n", {"decimal": "."}, [[1234.5, -2]]),
        ('a,b\n"1,5","-0,25"\n', {"decimal": ","}, [[1.5, -0.25]]),
        ("a;b\n1.234;1 234,5\n", {"decimal": ","}, [[1234, 1234.5]]),
        ("a;b\n1.234.567,5;1,5e3\n", {}, [[1234567.5, 1500]]),
        ("a\tb\n1,5\t2,0\n", {"decimal": ","}, [[1.5, 2]]),
        ("a;b\n1,234.5;2\n", {}, [[1234.5, 2]]),
    ],
)
def test_numbers_as_people_write_them(tmp_path, text, form, due):
    assert _read(tmp_path / "t.csv", text, **form) == due


@pytest.mark.parametrize(
    ("text", "form", "says"),
    [
        ('a,b\n"1,234",1\n', {}, "row 1: column 'a' holds '1,234', which is not a number"),
        ("a;b\n1.234,5;1\n1.234;1\n", {}, "row 2: column 'a' holds '1.234', which is ambiguous"),
        ("a;b\n1,234.5;1\n1,234;1\n", {}, "row 2: column 'a' holds '1,234', which is ambiguous"),
        ("a;b\n3.5;1\n", {"decimal": ","}, "row 1: column 'a' holds '3.5', which is ambiguous"),
        ("a,b\n1 2345,1\n", {"decimal": "."}, "row 1: column 'a' holds '1 2345', which is not"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(tmp_path, text, form, says):
    with pytest.raises(InputError, match=says):
        _read(tmp_path / "t.csv", text, **form)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1), st.sampled_from([".", ","]))
def test_thousands_come_back_whole(tmp_path_factory, numbers, decimal):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    swap = {} if decimal == "." else {ord(","): ".", ord("."): ","}
    cells = [f"{n:,}.25".translate(swap) for n in numbers]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([cell, "0"] for cell in cells)])
    columns = TableColumns(("a", "b"), form=TableFormat(decimal=decimal))
    due = [float(f"{n}.25") for n in numbers]
    assert read_rows(path, columns)[0][:, 0].tolist() == due


def test_markers_of_missing_values(tmp_path):
    form = {"missing": ("-", "Unknown", "-999")}
    text = "a,b\n1, - \nunknown,2\n-999,NA\n"
    due = [[1, NAN], [NAN, 2], [NAN, NAN]]
    np.testing.assert_array_equal(_read(tmp_path / "t.csv", text, **form), due)
    words = TableColumns(("a", "b"), categories=(("-", "x"), None), gaps=(True, True))
    read = _read(tmp_path / "t.csv", "a,b\nx,1\n-,2\n", columns=words, **form)
    np.testing.assert_array_equal(read, [[1, 1], [NAN, 2]])
    table = pa.table({"a": [1.0, -999.0], "b": ["-", "2"]})
    pq.write_table(table, tmp_path / "t.parquet")
    form = TableFormat(**form)
    read = read_rows(tmp_path / "t.parquet", replace(ANY, form=form))
    np.testing.assert_array_equal(read[0], [[1, NAN], [NAN, 2]])


def test_encodings_are_taken_at_their_word(tmp_path):
    path = tmp_path / "t.csv"
    for encoding in ("latin-1", "utf-16-le", "cp850", "utf-8"):
        path.write_bytes("a,y\n1,é\n".encode(encoding))
        form = TableFormat(encoding=encoding)
        read = read_rows(path, TableColumns(("a",), "y", numeric_target=False, form=form))
        assert read[1].tolist() == ["é"]
    path.write_bytes("a,y\n1,é\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8 as a whole"):
        read_rows(path, TableColumns(("a",), "y", form=form))


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"sep": "::"}, "must be one character"),
        ({"decimal": ";"}, "must be '.' or ','"),
        ({"sep": ",", "decimal": ","}, "must be two characters"),
        ({"encoding": "klingon"}, "is no encoding that Python knows"),
    ],
)
def test_formats_that_no_table_has(form, says):
    with pytest.raises(InputError, match=says):
        TableFormat(**form).check()


def test_what_was_detected_is_reported(tmp_path):
    path, said = tmp_path / "t.csv", []
    path.write_bytes("a;b\n1,5;é\n".encode("cp1252"))
    form = TableFormat(report=said.append)
    columns = TableColumns(("a", "b"), categories=(None, ("é",)), gaps=(True, True), form=form)
    assert read_rows(path, columns)[0].tolist() == [[1.5, 0]]
    assert said == [f"{path}: detected --sep ';' --decimal ',' --encoding cp1252"]
    path.write_text("a,b\n1.5,é\n")
    read_rows(path, columns)
    assert len(said) == 1


# --- what is a column ---------------------------------------------------------------------------


def _survey(tmp_path, cells, **options):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["c", "d"], *([cell, 0] for cell in cells)])
    return survey_columns(path, ["c"], **options)[0]


MARKERS = ["-", ".", "unknown", "missing", "#N/A", "#DIV/0!", "n.a."]


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("share", [10, 2])
def test_a_marker_of_missing_values_never_makes_words_of_numbers(tmp_path, marker, share):
    """However often it stands there, and whether or not the numbers are often the same."""
    for cells in (range(1000, 1300), [i % 60 for i in range(300)], [i % 3 for i in range(300)]):
        cells = [marker if i % share == 1 else str(n) for i, n in enumerate(cells)]
        with pytest.raises(
            InputError, match=r"row 2: column 'c' holds .* with --missing"
        ) as refused:
            _survey(tmp_path, cells)
        assert f'--missing "{marker}"' in str(refused.value)
        survey = _survey(tmp_path, cells, form=TableFormat(missing=(marker,)))
        assert survey.column.categories is None
        assert survey.numbers == sum(cell != marker for cell in cells)


def test_codes_and_words_are_categories(tmp_path):
    cells = ["0", "1", "2", "3+"] * 10
    assert _survey(tmp_path, cells).column.categories == ("0", "1", "2", "3+")
    cells = [str(20000 + i % 30) for i in range(300)] + ["abroad"] * 20
    with pytest.raises(InputError, match="name the column with --categories"):
        _survey(tmp_path, cells)
    survey = _survey(tmp_path, cells, categories=["c"])
    assert len(survey.column.categories) == 31
    survey = _survey(tmp_path, [str(i % 3) for i in range(30)], categories=["c"])
    assert survey.column.categories == ("0", "1", "2")


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("{}.5%", "numbers with a unit, such as '1000.5%' in row 1, '1001.5%' in row 2"),
        ("€{}", "numbers with a unit, such as '€1000' in row 1"),
        ("{} $", "numbers with a unit"),
        ("1,{}", "row 1: column 'c' holds '1,1000'|say with --decimal"),
        ("12,{:03}", "numbers with commas or blanks, such as '12,1000'"),
    ],
)
def test_numbers_with_units_or_commas_are_refused_with_the_first(tmp_path, cell, says):
    with pytest.raises(InputError, match=says):
        _survey(tmp_path, [cell.format(i) for i in range(1000, 1100)])


@pytest.mark.parametrize("cell", ["{}y", "{} EUR", "EUR {}", "{}.5 kg"])
def test_letters_of_units_are_refused_where_values_are_many(tmp_path, cell):
    many = [cell.format(i % 60) for i in range(600)]
    with pytest.raises(InputError, match="numbers with a unit"):
        _survey(tmp_path, many)
    few = [cell.format(i % 6) for i in range(60)]
    assert len(_survey(tmp_path, few).column.categories) == 6
    assert len(_survey(tmp_path, many, categories=["c"]).column.categories) == 60
    codes = [f"c{i % 60}" for i in range(600)]
    assert len(_survey(tmp_path, codes).column.categories) == 60


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Patients,,\na,b,c\n1,2,3\n", "the first line names no columns; remove the lines above"),
        ("# made today\na,b\n1,2\n", "row 1: 2 fields .* remove the lines above the header"),
    ],
)
def test_lines_above_the_header_are_named(tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=says):
        preview_table(tmp_path / "t.csv")


def test_quoted_names_between_semicolons(tmp_path):
    """As write.csv2 of R writes them."""
    text = '"";"a";"b"\n"1";1,5;"x"\n'
    columns = TableColumns(("a", "b"), categories=(None, ("x",)), gaps=(True, True))
    assert _read(tmp_path / "t.csv", text, columns=columns) == [[1.5, 0]]


def test_the_preview_advises(tmp_path):
    path = tmp_path / "t.csv"
    rows = [["-999", "01067", "Yes"], ["4", "80331", "yes "], ["5", "20095", "no"]] * 5
    path.write_text("\n".join(map(",".join, [["a", "zip", "w"], *rows])) + "\n")
    said = [column.warnings for column in preview_table(path).columns]
    assert said == [
        ("column 'a': -999 may mark missing values; if so, add --missing=-999.",),
        ("column 'zip': '01067' may be a code; name the column with --categories if it is.",),
        ("column 'w': 'Yes', 'yes ' differ in capitals or blanks alone.",),
    ]


def test_thousands_are_numbers(tmp_path):
    survey = _survey(tmp_path, [f"{n:,}.88" for n in range(0, 10**6, 9999)])
    assert survey.column.categories is None
    assert survey.numbers == 101


# --- quotes, line breaks and blocks --------------------------------------------------------------


cell = st.text(st.sampled_from(list('ab",;\n\r é')), max_size=6)


@given(
    st.lists(st.tuples(cell, cell), min_size=1, max_size=30),
    st.integers(1, 7),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.booleans(),
)
def test_quoted_text_comes_back_whole(tmp_path_factory, rows, size, quoting, windows):
    """By pyarrow or by Python's csv, in blocks that end anywhere."""
    returns = "\r" if quoting == csv.QUOTE_ALL else ""
    rows = [tuple(text.replace("\r", returns) for text in ("x" + a, b)) for a, b in rows]
    path = tmp_path_factory.mktemp("t") / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        end = "\r\n" if windows else "\n"
        csv.writer(file, lineterminator=end, quoting=quoting).writerows([("a", "b"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anymix.tables.text_blocks.BLOCK_BYTES", 16)
        columns = TableColumns(("a",), id="b", text=True)
        chunks = list(read_chunks(path, columns, size))
    assert [text for chunk in chunks for text in chunk.X] == [a for a, _ in rows]
    assert [text for chunk in chunks for text in chunk.ids.to_pylist()] == [b for _, b in rows]
    assert all(len(chunk.X) == size for chunk in chunks[:-1])
