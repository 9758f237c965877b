"""A map by threads: results in order, few parts at a time, one thread of BLAS for each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any

from threadpoolctl import ThreadpoolController

# Parts that are begun before the result of the first is taken, beyond one a thread.
AHEAD = 2


def n_cores() -> int:
    """How many cores this process may use, where the system tells; else, how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadMap:
    """`map` by some threads, for the parts of a problem.

    Parameters
    ----------
    n_threads : int, optional
        By default as many as this process may use cores.
    progress : callable, optional
        Told after every part how many maps were begun, this one included, and the share of this
        one that is done, 0 to 1; of an iterable without a length it is told nothing.

    Examples
    --------
    >>> list(ThreadMap(2)(abs, [-1, -2, 3]))
    [1, 2, 3]
    """

    def __init__(
        self, n_threads: int | None = None, progress: Callable[[int, float], None] | None = None
    ):
        self.n_threads = n_threads
        self.progress = progress
        self.passes = 0

    def __call__(self, function: Callable[..., Any], *parts: Iterable[Any]) -> Iterator[Any]:
        """Yield function(part) for each part; the next ones are under way meanwhile."""
        self.passes += 1
        total = next((len(each) for each in parts if isinstance(each, Sized)), 0)
        with self._libraries.limit(limits=1, user_api="blas"):
            for done, found in enumerate(self._results(function, parts), 1):
                if self.progress is not None and total:
                    self.progress(self.passes, done / total)
                yield found

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        # To look for them takes as long as a small problem does.
        return ThreadpoolController()

    def _results(
        self, function: Callable[..., Any], parts: tuple[Iterable[Any], ...]
    ) -> Iterator[Any]:
        n = self.n_threads or n_cores()
        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(n) as pool:
            try:
                for given in zip(*parts, strict=True):
                    waiting.append(pool.submit(function, *given))
                    if len(waiting) >= n + AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
