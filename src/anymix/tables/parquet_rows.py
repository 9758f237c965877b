"""Read rows of Parquet files; values that float64 would change are refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from anymix.exceptions import InputError, one_line
from anymix.storage import need
from anymix.tables.cells import LONGEST_LABEL, TOO_LONG
from anymix.tables.table_columns import TableColumns, check_there
from anymix.tables.table_files import check_swelling, open_table

# Runs of equal values take next to nothing in a Parquet file, so an honest one may swell a lot.
PARQUET_SWELLING = 1000
# Text is read as that of CSV is: as numbers, as categories or as labels.
NUMBERS = ("numbers", "decimals", "booleans", "nulls", "text")
LABELS = NUMBERS
IDS = (*LABELS, "dates or times")
# Kinds of columns, by pyarrow's own names of the tests.
COLUMN_KINDS = {
    "numbers": ("integer", "floating"),
    "decimals": ("decimal",),
    "booleans": ("boolean",),
    "nulls": ("null",),
    "text": ("string", "large_string", "string_view"),
    "dates or times": ("temporal",),
    "lists or structs": ("nested",),
    "bytes": ("binary", "large_binary", "fixed_size_binary"),
}
REMEDIES = {
    "dates or times": "; turn them into numbers first, such as days since a day of your choice",
    "lists or structs": "; give each of their parts a column of its own",
}


@contextmanager
def open_parquet(path: Path, texts: Sequence[str] = ()) -> Iterator[Any]:
    """Open a Parquet file; an error says what is wrong with it.

    The columns `texts` are read as dictionaries, so repeated texts are not unpacked for each row.
    """
    pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    with open_table(path) as file:
        try:
            # With buffers all that was read would stay in memory until the end.
            opened = parquet.ParquetFile(file, read_dictionary=list(texts), pre_buffer=False)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(
                path, "is not a Parquet file; write it anew, or name it by what it is"
            ) from error
        yield opened


def read_parquet(
    path: Path, columns: TableColumns, size: int
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield columns by name, for up to `size` rows, and the share of the file that is read.

    Categorical features keep their dictionary; other columns are unpacked after a size check.
    """
    with open_table(path) as opened:
        on_disk = os.fstat(opened.fileno()).st_size
    with open_parquet(path) as file:
        there = file.schema_arrow.names
        parts = {name: word for name, word in parts_of(path).items() if name not in there}
        check_there(path, columns.wanted, [*there, *parts], columns.target)
        texts = _texts(path, columns, file.schema_arrow)
        wanted = [name for name in columns.wanted if name not in parts]
        parts = {name: word for name, word in parts.items() if name in columns.wanted}
    with open_parquet(path, texts) as file:
        n_rows, done = max(file.metadata.num_rows, 1), 0
        n_bytes = 8 * n_rows * len(columns.wanted)
        check_swelling(path, n_bytes // 8, on_disk, PARQUET_SWELLING)
        for batch in _batches(path, file, size, wanted):
            n_bytes += _length_of_texts(columns, batch)
            longest = _longest_label(path, columns, batch)
            # An array of labels gives each the room of the longest, 4 bytes for a character.
            room = n_bytes // 8 + n_rows * longest // 2
            check_swelling(path, room, on_disk, PARQUET_SWELLING)
            done += batch.num_rows
            kept = set(() if columns.text else columns.features)
            yield (
                {
                    name: column.dictionary_decode()
                    if need("pyarrow").types.is_dictionary(column.type) and name not in kept
                    else column
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                }
                | {name: _repeated(word, batch.num_rows) for name, word in parts.items()},
                done / n_rows,
            )


def parts_of(path: Path) -> dict[str, str]:
    """Return the columns that are given by folder names, as in day=1/part.parquet.

    Examples
    --------
    >>> parts_of(Path("rows/day=1/ward=intensive%20care/a.parquet"))
    {'day': '1', 'ward': 'intensive care'}
    """
    named = (part.partition("=") for part in path.parts[:-1])
    return {name: unquote(word) for name, equals, word in named if name and equals}


def _repeated(word: str, n: int) -> Any:
    """Return a column that holds a word n times; Hive writes a missing one by this name."""
    pyarrow = need("pyarrow")
    words = pyarrow.array([None if word == "__HIVE_DEFAULT_PARTITION__" else word], "string")
    indices = pyarrow.array([0] * n, pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(indices, words)


def _texts(path: Path, columns: TableColumns, schema: Any) -> list[str]:
    """Name the columns that hold text; one of a kind that cannot be used is never unpacked."""
    features: tuple[str, ...] = ("text",) if columns.text else NUMBERS
    allowed = dict.fromkeys(columns.features, features)
    allowed |= {} if columns.target is None else {columns.target: LABELS}
    allowed |= {name: IDS for name in (columns.id, columns.domain) if name is not None}
    texts = []
    for name, kinds in allowed.items():
        if name not in schema.names:
            continue
        kind = _kind(schema.field(name).type)
        if kind not in kinds:
            wanted = "text" if kinds == ("text",) else "numbers or labels"
            remedy = REMEDIES.get(kind, "")
            raise InputError(
                f"{path}: column {name!r}", f"does not hold {wanted} but {kind}{remedy}"
            )
        texts += [name] * (kind == "text")
    return texts


def _kind(arrow_type: Any) -> str:
    """Say what a type of pyarrow is, or what its dictionary holds."""
    types = need("pyarrow").types
    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    tests = ((kind, test) for kind, names in COLUMN_KINDS.items() for test in names)
    there = ((kind, getattr(types, f"is_{test}", None)) for kind, test in tests)
    return next((kind for kind, test in there if test and test(arrow_type)), "values")


def _batches(path: Path, file: Any, size: int, names: list[str]) -> Iterator[Any]:
    try:
        yield from file.iter_batches(batch_size=size, columns=names)
    except (need("pyarrow").ArrowException, OSError) as error:
        cause = one_line(str(error).strip().split("\n")[0])[:200].rstrip(".")
        raise InputError(path, f"cannot be read as Parquet: {cause}; write it anew") from error


def _length_of_texts(columns: TableColumns, batch: Any) -> int:
    """Return how many bytes the documents and ids of a batch would take."""
    compute, total = need("pyarrow.compute"), 0
    for name in (columns.features[0] if columns.text else None, columns.id, columns.domain):
        if name in batch.schema.names and _is_text_dictionary(column := batch.column(name)):
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            total += compute.sum(lengths).as_py() or 0
    return total


def _longest_label(path: Path, columns: TableColumns, batch: Any) -> int:
    """Return how many characters the longest label has, if labels are text."""
    there = columns.target in batch.schema.names
    if not there or not _is_text_dictionary(batch.column(columns.target)):
        return 0
    compute, labels = need("pyarrow.compute"), batch.column(columns.target).dictionary
    longest = int(compute.max(compute.utf8_length(labels)).as_py() or 0)
    if longest > LONGEST_LABEL:
        raise InputError(f"{path}: column {columns.target!r}", TOO_LONG)
    return longest


def _is_text_dictionary(column: Any) -> bool:
    return need("pyarrow").types.is_dictionary(column.type) and _kind(column.type) == "text"
