"""The same work on rows that are too many for one array, or may not leave their sites.

A solver sees a problem only through sums over points, so that chunks on disk, a cluster and sites
are one problem in parts with another `map`.  Nothing heavy is imported here.
"""

from anymix.engines.certifying import certify_in_parts, usual_clip_in_parts
from anymix.engines.cluster import answering as answering
from anymix.engines.domains import FeaturePart, fit_domain_classifier
from anymix.engines.flower_app import ADDRESS as ADDRESS
from anymix.engines.flower_app import write_app as write_app
from anymix.engines.partitioned import PartitionedProblem
from anymix.engines.questions import Question, numbers_in
from anymix.engines.store import Store as Store
from anymix.engines.table_part import TablePart
from anymix.engines.tables import PartitionedTables, in_threads, learn_in_parts
from anymix.engines.teaching import Deal as Deal
from anymix.engines.teaching import TeachingInChunks as TeachingInChunks
from anymix.engines.threads import ThreadMap as ThreadMap

__all__ = [
    "FeaturePart",
    "PartitionedProblem",
    "PartitionedTables",
    "Question",
    "TablePart",
    "certify_in_parts",
    "fit_domain_classifier",
    "in_threads",
    "learn_in_parts",
    "numbers_in",
    "usual_clip_in_parts",
]
