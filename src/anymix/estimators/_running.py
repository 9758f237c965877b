"""Run work in parallel, with limited threads, and each warning once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from anymix.estimators._rows import Rows


def side_by_side(
    work: Callable[..., Any], items: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[Any]:
    """[work(*item) for item in items] with this many jobs in parallel; the results are the same.

    None is one at a time, unless joblib's `parallel_config` sets another number; −1 is all cores.
    Threads do not copy rows, and most learners release the interpreter lock.  Warnings of
    processes (`parallel_config("loky")`) are repeated here.
    """
    pool = Parallel(n_jobs=n_jobs, prefer="threads")
    if pool.n_jobs == 1:
        return [work(*item) for item in items]
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"]
    told = os.getpid(), min(pools, default=None)
    done = pool(delayed(_elsewhere)(*told, work, item) for item in items)
    for message in (message for _, said in done for message in said):
        warnings.warn(message, stacklevel=2)
    return [found for found, _ in done]


def _elsewhere(
    here: int, threads: int | None, work: Callable[..., Any], item: tuple[Any, ...]
) -> tuple[Any, list[Warning | str]]:
    """Return what was found and, from another process, what was warned of.

    Trees grow in as many threads as they would have where the work was given out.
    """
    with threadpool_limits(threads, user_api="openmp"):
        if os.getpid() == here:
            return work(*item), []
        with warnings.catch_warnings(record=True) as seen:
            found = work(*item)
        return found, [warning.message for warning in seen]


def step(model: Any, message: str) -> AbstractContextManager[None]:
    """Print the time of a block of work, if the model is verbose."""
    said = message if model.verbose else None
    found: AbstractContextManager[None] = _print_elapsed_time(type(model).__name__, said)
    return found


@contextmanager
def warnings_once() -> Iterator[None]:
    """Collect the warnings of a block, then issue each once, at the caller's caller."""
    held: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as held:
            yield
    finally:
        for message in {str(warning.message): warning.message for warning in held}.values():
            # A message that is a Warning brings its category along; contextlib adds a frame.
            warnings.warn(message, stacklevel=4)


@contextmanager
def names_checked(model: Any) -> Iterator[None]:
    """Suppress repeated warnings of inner models about feature names."""
    with warnings.catch_warnings():
        if "feature_names_in_" in vars(model):
            warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


# Trees of fewer rows are grown faster than work is handed to several threads; and threads that
# wait for each other on a busy machine take ten times as long.
FEW_ROWS = 50_000


@contextmanager
def one_thread(rows: Rows) -> Iterator[None]:
    """Train trees in one thread if there are few rows."""
    limits = 1 if rows.y.size < FEW_ROWS else None
    with threadpool_limits(limits=limits, user_api="openmp"):
        yield
