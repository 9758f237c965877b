"""How many threads training may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from anymix.estimators._rows import Rows

# Trees of fewer rows are grown faster than several threads can be told what to do; and threads that
# wait for each other on a busy machine take ten times as long.
FEW_ROWS = 50_000


@contextmanager
def one_thread(rows: Rows) -> Iterator[None]:
    """Let trees grow in one thread if there are few rows."""
    limits = 1 if rows.y.size < FEW_ROWS else None
    with threadpool_limits(limits=limits, user_api="openmp"):
        yield
