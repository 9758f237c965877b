"""Fitted models in folders, written atomically and read as untrusted; see docs/format.md."""

from anymix.models.model_folder import (
    SavedModel,
    check_several,
    load,
    read_certificate,
    read_model,
    read_record,
    summarise_folder,
)
from anymix.models.saved_records import add_record
from anymix.models.serving import Exported, card_facts, export_model
from anymix.models.site_models import (
    certify_sites,
    compare_sites,
    fit_folder,
    joined_novelty,
    note_on,
)
from anymix.models.tables_file import rows_that_fit
from anymix.models.target_folder import ReservedFolder, check_place, held, reserved
from anymix.models.writing import BESIDE, save, share, write_taught

__all__ = [
    "BESIDE",
    "Exported",
    "ReservedFolder",
    "SavedModel",
    "add_record",
    "card_facts",
    "certify_sites",
    "check_place",
    "check_several",
    "compare_sites",
    "export_model",
    "fit_folder",
    "held",
    "joined_novelty",
    "load",
    "note_on",
    "read_certificate",
    "read_model",
    "read_record",
    "reserved",
    "rows_that_fit",
    "save",
    "share",
    "summarise_folder",
    "write_taught",
]
