"""Fitted models in folders: everything that was learned, written whole and read like a stranger's.

The format is described in docs/format.md.
"""

from anymix.models.folder import SavedModel, load, read_model, read_record
from anymix.models.folder import check_several as check_several
from anymix.models.folder import read_certificate as read_certificate
from anymix.models.folder import summarise_folder as summarise_folder
from anymix.models.place import Place as Place
from anymix.models.place import check_place
from anymix.models.place import held as held
from anymix.models.place import reserved as reserved
from anymix.models.saved_records import add_record as add_record
from anymix.models.seen_rows import note_on as note_on
from anymix.models.serving import Exported as Exported
from anymix.models.serving import card_facts as card_facts
from anymix.models.serving import export_model
from anymix.models.sites import certify_sites as certify_sites
from anymix.models.sites import compare_sites as compare_sites
from anymix.models.sites import fit_folder as fit_folder
from anymix.models.tables_file import rows_that_fit as rows_that_fit
from anymix.models.taught import BESIDE as BESIDE
from anymix.models.taught import write_taught as write_taught
from anymix.models.writing import save

__all__ = ["SavedModel", "check_place", "export_model", "load", "read_model", "read_record", "save"]
