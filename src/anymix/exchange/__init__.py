"""What travels: source folders that may be handed to strangers, and taken from them.

The format is described in docs/format.md.
"""

from anymix.exceptions import AuditError
from anymix.exchange._optional import need as need
from anymix.exchange.column_form import by_columns as by_columns
from anymix.exchange.conversion import THAT_WORK as THAT_WORK
from anymix.exchange.conversion import NoSafeGraph as NoSafeGraph
from anymix.exchange.features import gaps_of as gaps_of
from anymix.exchange.labels import all_classes as all_classes
from anymix.exchange.manifest import LIMITS as LIMITS
from anymix.exchange.manifest import FileFacts as FileFacts
from anymix.exchange.manifest import Manifest, OwnLoss
from anymix.exchange.manifest import check_facts as check_facts
from anymix.exchange.manifest import facts_of as facts_of
from anymix.exchange.manifest import is_label as is_label
from anymix.exchange.manifest import is_text as is_text
from anymix.exchange.manifest import parse_json as parse_json
from anymix.exchange.mlflow_folder import MLFLOW_FILES as MLFLOW_FILES
from anymix.exchange.mlflow_folder import mlflow_files as mlflow_files
from anymix.exchange.names import check_different as check_different
from anymix.exchange.names import check_name as check_name
from anymix.exchange.narrowing import TOLERANCE as TOLERANCE
from anymix.exchange.narrowing import Narrowed as Narrowed
from anymix.exchange.narrowing import draws_of as draws_of
from anymix.exchange.narrowing import narrowed as narrowed
from anymix.exchange.notes import describe_graph
from anymix.exchange.notes import described_features as described_features
from anymix.exchange.notes import noted as noted
from anymix.exchange.onnx_graph import export_onnx as export_onnx
from anymix.exchange.pack import pack_source
from anymix.exchange.read import ReceivedSource, read_source, read_sources
from anymix.exchange.read import check_alike as check_alike
from anymix.exchange.read import read_alike as read_alike
from anymix.exchange.rounding import bits_for_a_spy as bits_for_a_spy
from anymix.exchange.rounding import is_rounded as is_rounded
from anymix.exchange.rounding import round_outcomes as round_outcomes
from anymix.exchange.rounding import round_responsibilities as round_responsibilities
from anymix.exchange.second_round import as_one_graph as as_one_graph
from anymix.exchange.second_round import second_round_graph as second_round_graph
from anymix.exchange.site import MIN_ROWS as MIN_ROWS
from anymix.exchange.site import MOST_NUMBERS as MOST_NUMBERS
from anymix.exchange.site import SiteTable, evaluate_site, join_sites, read_site
from anymix.exchange.tensors import Part as Part
from anymix.exchange.tensors import density_from_arrays as density_from_arrays
from anymix.exchange.tensors import density_to_arrays as density_to_arrays
from anymix.exchange.tensors import dump as dump
from anymix.exchange.tensors import load as load
from anymix.exchange.tensors import part_of as part_of

__all__ = [
    "AuditError",
    "Manifest",
    "OwnLoss",
    "ReceivedSource",
    "SiteTable",
    "describe_graph",
    "evaluate_site",
    "join_sites",
    "pack_source",
    "read_site",
    "read_source",
    "read_sources",
]
