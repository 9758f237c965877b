"""Engines for rows that exceed memory or stay at their sites: blocks with a `map`."""

from anymix.engines.chunks import (
    ChunkedTrainingRows,
    RowSplit,
    ThreadMap,
    ask_in_chunks,
    parquet_tables,
    problem_in_chunks,
)
from anymix.engines.cluster import ENGINES, map_here, map_on_cluster
from anymix.engines.domains import FeaturePart, fit_domain_classifier
from anymix.engines.job_files import ADDRESSES, prepare_kit, write_app
from anymix.engines.store import Store
from anymix.sources import PartitionedProblem

__all__ = [
    "ADDRESSES",
    "ENGINES",
    "ChunkedTrainingRows",
    "FeaturePart",
    "PartitionedProblem",
    "RowSplit",
    "Store",
    "ThreadMap",
    "ask_in_chunks",
    "fit_domain_classifier",
    "map_here",
    "map_on_cluster",
    "parquet_tables",
    "prepare_kit",
    "problem_in_chunks",
    "write_app",
]
