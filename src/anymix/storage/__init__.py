"""Files on disk: atomic writes, locks, hashing, JSON and YAML text; no domain logic."""

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
from anymix.storage.hashing import Twins, content_of, digest, mixed, more_than_chance
from anymix.storage.json_text import DEEPEST, MOST_MARKS, plain_json
from anymix.storage.locks import LOCK, locked
from anymix.storage.yaml_text import to_yaml

__all__ = [
    "DEEPEST",
    "LOCK",
    "MOST_MARKS",
    "TEMPORARY",
    "Twins",
    "check_new",
    "check_open",
    "content_of",
    "digest",
    "is_standard_output",
    "is_stream",
    "locked",
    "mixed",
    "more_than_chance",
    "plain_json",
    "read_file",
    "read_folder",
    "replacing",
    "to_yaml",
    "write_folder",
]
