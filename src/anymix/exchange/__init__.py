"""Exchange between organisations: source folders, site files and ONNX graphs.

The format is described in docs/format.md.
"""

from anymix.exceptions import AuditError
from anymix.exchange.conversion import (
    THAT_WORK,
    NoSafeGraph,
    as_one_graph,
    second_round_graph,
    second_round_of_labels,
)
from anymix.exchange.export_forms import (
    FLOAT32_TOLERANCE,
    MLFLOW_FILES,
    Float32Difference,
    by_columns,
    draws_of,
    float32_difference,
    mlflow_files,
)
from anymix.exchange.foreign_trees import is_estimator
from anymix.exchange.home_table import LEAST_LOGGED, HomeTable, home_folds, read_home
from anymix.exchange.label_leaks import (
    TELLS,
    commonest,
    groups_of_rows,
    labels_named,
    mean_of_rows,
)
from anymix.exchange.leak_report import check_structure
from anymix.exchange.manifest import (
    LIMITS,
    SOURCE_FILES,
    FileFacts,
    Manifest,
    OwnLoss,
    check_facts,
    facts_of,
    is_label,
    parse_json,
)
from anymix.exchange.onnx_graph import describe_graph, described_features, export_onnx, noted
from anymix.exchange.pack import pack_source
from anymix.exchange.read import (
    ReceivedSource,
    all_classes,
    check_alike,
    read_alike,
    read_source,
    read_sources,
)
from anymix.exchange.rounding import (
    bits_for_a_spy,
    is_rounded,
    round_outcomes,
)
from anymix.exchange.site_table import (
    MIN_ROWS,
    MOST_NUMBERS,
    SiteTable,
    evaluate_site,
    join_sites,
    read_site,
)
from anymix.exchange.source_names import check_different, check_name
from anymix.exchange.source_rows import read_site_rows, table_columns
from anymix.exchange.tensors import (
    DocumentDensity,
    Part,
    density_from_arrays,
    density_to_arrays,
    dump_arrays,
    dump_message,
    load_arrays,
    load_message,
    part_of,
)
from anymix.exchange.trees_of_source import received_trees

__all__ = [
    "FLOAT32_TOLERANCE",
    "LEAST_LOGGED",
    "LIMITS",
    "MIN_ROWS",
    "MLFLOW_FILES",
    "MOST_NUMBERS",
    "SOURCE_FILES",
    "TELLS",
    "THAT_WORK",
    "AuditError",
    "DocumentDensity",
    "FileFacts",
    "Float32Difference",
    "HomeTable",
    "Manifest",
    "NoSafeGraph",
    "OwnLoss",
    "Part",
    "ReceivedSource",
    "SiteTable",
    "all_classes",
    "as_one_graph",
    "bits_for_a_spy",
    "by_columns",
    "check_alike",
    "check_different",
    "check_facts",
    "check_name",
    "check_structure",
    "commonest",
    "density_from_arrays",
    "density_to_arrays",
    "describe_graph",
    "described_features",
    "draws_of",
    "dump_arrays",
    "dump_message",
    "evaluate_site",
    "export_onnx",
    "facts_of",
    "float32_difference",
    "groups_of_rows",
    "home_folds",
    "is_estimator",
    "is_label",
    "is_rounded",
    "join_sites",
    "labels_named",
    "load_arrays",
    "load_message",
    "mean_of_rows",
    "mlflow_files",
    "noted",
    "pack_source",
    "parse_json",
    "part_of",
    "read_alike",
    "read_home",
    "read_site",
    "read_site_rows",
    "read_source",
    "read_sources",
    "received_trees",
    "round_outcomes",
    "second_round_graph",
    "second_round_of_labels",
    "table_columns",
]
