"""The same work on rows that are too many for one array, or may not leave their sites.

A solver sees a problem only through sums over points, so that chunks on disk, a cluster and sites
are blocks of one problem with another `map`.  Nothing heavy is imported here.
"""

from anymix.engines.cluster import answering as answering
from anymix.engines.domains import FeaturePart, fit_domain_classifier
from anymix.engines.flower_app import ADDRESS as ADDRESS
from anymix.engines.flower_app import write_app as write_app
from anymix.engines.store import Store as Store
from anymix.engines.teaching import Deal as Deal
from anymix.engines.teaching import TeachingInChunks as TeachingInChunks
from anymix.engines.threads import ThreadMap as ThreadMap
from anymix.sources import PartitionedProblem

__all__ = [
    "FeaturePart",
    "PartitionedProblem",
    "fit_domain_classifier",
]
