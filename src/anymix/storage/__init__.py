"""Files on disk and optional libraries: atomic writes, locks, JSON and YAML; no domain logic."""

from anymix.storage.files import (
    TEMPORARY,
    check_new,
    check_open,
    is_standard_output,
    is_stream,
    read_file,
    read_folder,
    replacing,
    write_folder,
)
from anymix.storage.json_text import DEEPEST, MOST_MARKS, plain_json
from anymix.storage.locks import LOCK, locked
from anymix.storage.optional_libraries import installed, need
from anymix.storage.yaml_text import to_yaml

__all__ = [
    "DEEPEST",
    "LOCK",
    "MOST_MARKS",
    "TEMPORARY",
    "check_new",
    "check_open",
    "installed",
    "is_standard_output",
    "is_stream",
    "locked",
    "need",
    "plain_json",
    "read_file",
    "read_folder",
    "replacing",
    "to_yaml",
    "write_folder",
]
