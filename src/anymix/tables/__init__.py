"""Read tables: column types, categories and missing values of frames and files."""

from anymix.tables.cells import NO_ROWS, check_once, is_missing, is_text, whole_labels
from anymix.tables.column_types import FEW, FEWEST_ROWS, ColumnSurvey, survey_columns
from anymix.tables.columns import MOST_CATEGORIES, Column, Columns, numbers_of, words_of
from anymix.tables.feature_codes import encode
from anymix.tables.frames import as_rows, is_text_column, like, named_column, texts_of
from anymix.tables.preview import ColumnPreview, TablePreview, preview_table
from anymix.tables.table_columns import CategoryWarning, Encoder, TableColumns, check_there
from anymix.tables.table_files import STANDARD_INPUT, holding_input, kind_of
from anymix.tables.table_format import TableFormat
from anymix.tables.table_reader import (
    CHUNK_ROWS,
    Chunk,
    count_rows,
    names_in,
    read_chunks,
    read_rows,
)
from anymix.tables.table_writer import TableWriter

__all__ = [
    "CHUNK_ROWS",
    "FEW",
    "FEWEST_ROWS",
    "MOST_CATEGORIES",
    "NO_ROWS",
    "STANDARD_INPUT",
    "CategoryWarning",
    "Chunk",
    "Column",
    "ColumnPreview",
    "ColumnSurvey",
    "Columns",
    "Encoder",
    "TableColumns",
    "TableFormat",
    "TablePreview",
    "TableWriter",
    "as_rows",
    "check_once",
    "check_there",
    "count_rows",
    "encode",
    "holding_input",
    "is_missing",
    "is_text",
    "is_text_column",
    "kind_of",
    "like",
    "named_column",
    "names_in",
    "numbers_of",
    "preview_table",
    "read_chunks",
    "read_rows",
    "survey_columns",
    "texts_of",
    "whole_labels",
    "words_of",
]
