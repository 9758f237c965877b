"""Texts that stand in a Parquet file once, and are said to be those of every row."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anymix.exceptions import AuditError, InputError
from anymix.tables import TableColumns, read_chunks, read_rows

LABELS = TableColumns(("a",), "y", numeric_target=False)
DOCUMENTS = TableColumns(("t",), text=True)


def repeated(word, n, path, name, stored=True):
    """Write one word n times; Parquet keeps it once."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([word]))
    table = pa.table({"a": np.zeros(n), name: column})
    pq.write_table(table, path, compression="zstd", store_schema=stored)
    return path


@pytest.mark.parametrize("stored", [True, False])
def test_a_long_label_is_refused_before_it_is_unpacked(tmp_path, stored):
    path = repeated("w" * 2_000_000, 20_000, tmp_path / "t.parquet", "y", stored)
    assert path.stat().st_size < 300_000
    with pytest.raises(InputError, match=r"column 'y' holds a label of over 200 characters"):
        next(read_chunks(path, LABELS))


def test_labels_of_many_rows_are_weighed(tmp_path):
    path = repeated("w" * 200, 1_000_000, tmp_path / "t.parquet", "y")
    with pytest.raises(AuditError, match="would unpack its"):
        next(read_chunks(path, LABELS))


@pytest.mark.parametrize("stored", [True, False])
def test_documents_are_weighed_before_they_are_unpacked(tmp_path, stored):
    path = repeated("w" * 2_000_000, 20_000, tmp_path / "t.parquet", "t", stored)
    with pytest.raises(AuditError, match="would unpack its"):
        next(read_chunks(path, DOCUMENTS))


def test_a_list_of_any_length_is_never_unpacked(tmp_path):
    lists = pa.ListArray.from_arrays(np.arange(0, 10_000_001, 5_000_000), np.zeros(10_000_000))
    pq.write_table(pa.table({"a": lists, "y": ["b", "c"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="does not hold numbers or labels but lists or structs"):
        read_rows(tmp_path / "t.parquet", LABELS)


def test_sound_words_are_read_as_they_are(tmp_path):
    words = ["é" * 200, "b", "b"]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        table = pa.table({"a": [1.0, 2.0, 3.0], "y": pa.array(words).cast(kind), "t": words})
        pq.write_table(table, tmp_path / "t.parquet")
        assert read_rows(tmp_path / "t.parquet", LABELS)[1].tolist() == words
        assert read_rows(tmp_path / "t.parquet", DOCUMENTS)[0] == words


def test_one_long_label_takes_no_room_for_all(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,b\n2," + "w" * 201 + "\n")
    with pytest.raises(InputError, match="row 2: column 'y' holds a label of over 200 characters"):
        read_rows(tmp_path / "t.csv", LABELS)
