"""Files on disk: atomic writes, locks, JSON and YAML text; no domain logic."""

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
from anymix.storage.yaml_text import to_yaml

__all__ = [
    "DEEPEST",
    "LOCK",
    "MOST_MARKS",
    "TEMPORARY",
    "check_new",
    "check_open",
    "is_standard_output",
    "is_stream",
    "locked",
    "plain_json",
    "read_file",
    "read_folder",
    "replacing",
    "to_yaml",
    "write_folder",
]
