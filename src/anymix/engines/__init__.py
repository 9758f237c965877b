"""The same work on rows that are too many for one array, or may not leave their sites.

A solver sees a problem only through sums over points, so that chunks on disk, a cluster and sites
are one problem in parts with another `map`.  Nothing heavy is imported here.
"""

from anymix.engines.partitioned import PartitionedProblem

__all__ = ["PartitionedProblem"]
