"""Excel workbooks, and folders of Parquet files that name columns."""

import datetime
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anymix.exceptions import InputError
from anymix.tables import (
    TableColumns,
    TableFormat,
    count_rows,
    names_in,
    preview_table,
    read_chunks,
    read_rows,
    survey_columns,
)

NAN = np.nan
MIXED = TableColumns(("age", "sex"), "y", numeric_target=False, categories=(None, ("f", "m")))
OPEN = {"gaps": (True, True)}


def workbook(path, sheets):
    """Write a workbook by hand: numbers, text, booleans, and a date by its number and style."""
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}"/>' for i, name in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{office}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    links += f'<Relationship Id="s" Type="{office}/styles" Target="styles.xml"/>'
    styles = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}'
        "</Relationships>",
        "xl/styles.xml": f"<styleSheet {main}>{styles}</styleSheet>",
    }
    for i, rows in enumerate(sheets.values(), 1):
        lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f"<worksheet {main}><sheetData>{lines}</sheetData></worksheet>"
        )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, head + text)
    return path


def _cell(value):
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime.date):
        return f'<c s="1"><v>{(value - datetime.date(1899, 12, 30)).days}</v></c>'
    if isinstance(value, str) and value.startswith("#"):
        return f'<c t="e"><v>{value}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


@pytest.fixture
def excel():
    pytest.importorskip("python_calamine")


def test_a_workbook_is_read_as_csv_is(tmp_path, excel):
    rows = [
        ["age", "sex", "y", "more"],
        [41.5, "f", 1, None],
        [None, "m", 0, True],
        [7, None, 1, 2],
    ]
    path = workbook(tmp_path / "t.xlsx", {"people": rows, "other": [["a"], [1]]})
    said = []
    columns = replace(MIXED, form=TableFormat(report=said.append), **OPEN)
    X, y = read_rows(path, columns)
    np.testing.assert_array_equal(X, [[41.5, 0], [NAN, 1], [7, NAN]])
    assert y.tolist() == ["1", "0", "1"]
    assert said == [f"{path}: detected --sheet 'people', the first of 2 sheets"]
    assert (names_in(path), count_rows(path)) == (["age", "sex", "y", "more"], 3)
    assert [len(chunk.X) for chunk in read_chunks(path, columns, 2)] == [2, 1]
    other = TableColumns(("a",), form=TableFormat(sheet="other"))
    assert read_rows(path, other)[0].tolist() == [[1]]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([datetime.date(2024, 1, d) for d in range(1, 7)], "holds dates or times, such as '2024"),
        ([1.5, 2.5, "-", 3.5], "row 3: column 'c' holds '-', which is not a number"),
    ],
)
def test_cells_that_are_no_numbers(tmp_path, excel, cells, says):
    rows = [["c", "d"], *([cell, 0] for cell in cells)]
    with pytest.raises(InputError, match=says):
        survey_columns(workbook(tmp_path / "t.xlsx", {"s": rows}), ["c"])


def test_faults_of_workbooks(tmp_path, excel):
    columns = TableColumns(("a",), form=TableFormat(sheet="b"))
    path = workbook(tmp_path / "t.xlsx", {"s": [["a"], [1]], "empty": []})
    with pytest.raises(InputError, match="has no sheet 'b'; it has 's', 'empty'"):
        read_rows(path, columns)
    with pytest.raises(InputError, match="has an empty sheet 'empty'"):
        read_rows(path, TableColumns(("a",), form=TableFormat(sheet="empty")))
    (tmp_path / "u.xlsx").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is not an Excel workbook"):
        read_rows(tmp_path / "u.xlsx", columns)
    with zipfile.ZipFile(tmp_path / "v.xlsx", "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(InputError, match="is not a sound Excel workbook"):
        read_rows(tmp_path / "v.xlsx", columns)


def test_folders_name_columns(tmp_path):
    for day, ward, ages in (("1", "intensive%20care", [1.0, 2.0]), ("2", "day", [3.0])):
        folder = tmp_path / "rows" / f"day={day}" / f"ward={ward}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"age": ages}), folder / "part-0.parquet")
    hidden = tmp_path / "rows" / "_temporary"
    hidden.mkdir()
    (hidden / "half.parquet").write_bytes(b"PAR1")
    path = tmp_path / "rows"
    assert names_in(path) == ["age", "day", "ward"]
    assert count_rows(path) == 3
    columns = TableColumns(
        ("age", "day", "ward"),
        categories=(None, None, ("day", "intensive care")),
        gaps=(True,) * 3,
    )
    due = [[1, 1, 1], [2, 1, 1], [3, 2, 0]]
    np.testing.assert_array_equal(read_rows(path, columns)[0], due)
    np.testing.assert_array_equal(
        read_rows(path / "day=2" / "ward=day" / "part-0.parquet", columns)[0], due[2:]
    )
    found = survey_columns(path, ["age", "day", "ward"], least=1)
    assert [survey.column.categories for survey in found] == [None, None, ("day", "intensive care")]
    (folder / "part-1.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match=r"part-1\.parquet is not a Parquet file"):
        read_rows(path, columns)


def test_a_preview_says_what_is_understood(tmp_path):
    path = tmp_path / "t.csv"
    lines = [
        f"{i},{'NA' if i < 3 else i / 2},{'day' if i % 2 else 'night'},{i}%," for i in range(12)
    ]
    path.write_text("\n".join(["n,half,ward,rate,none", *lines]) + "\n")
    preview = preview_table(path)
    assert preview.n_rows == 12
    by_name = {column.name: column for column in preview.columns}
    kinds = [column.type for column in preview.columns]
    assert kinds == ["number", "number", "category", "refused", "empty"]
    assert (by_name["half"].missing, by_name["half"].minimum) == (0.25, 1.5)
    assert by_name["half"].examples == ("NA", "1.5", "2.0")
    assert by_name["ward"].categories == ("day", "night")
    assert by_name["n"].maximum == 11
    (warning,) = by_name["rate"].warnings
    assert "numbers with a unit, such as '0%' in row 1" in warning
    assert "rate    refused " in preview.text()
    # A column that is shown as refused is refused by training too, and no other.
    for name in by_name:
        if by_name[name].type == "refused":
            with pytest.raises(InputError):
                survey_columns(path, [name])
        else:
            assert survey_columns(path, [name])[0].column.categories == by_name[name].categories
