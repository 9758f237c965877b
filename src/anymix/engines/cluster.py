"""Dask clusters: the given one, the current one, or one on this machine's cores."""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from anymix.exceptions import InputError
from anymix.storage import need

# One thread each, as Python's own lock would let threads wait; and pages for this machine alone.
LOCAL = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
# A scheduler that is there answers at once.
SECONDS = 10
# Items that wait for each thread while it works.
AHEAD = 3


def dask(module: str = "") -> Any:
    """Return dask, or a module of it; without the extra, say how to get it."""
    return need(f"dask.{module}" if module else "dask", "dask")


def current() -> Any:
    """Return the client that dask itself would use, or None."""
    try:
        return need("distributed", "dask").Client.current()
    except ValueError:
        return None


@contextmanager
def connected(client: Any = None) -> Iterator[Any]:
    """Yield a client: the given one, that of an address, the current one, or a new one."""
    distributed = need("distributed", "dask")
    with ExitStack() as opened:
        if client is None and (client := current()) is None:
            cluster = opened.enter_context(distributed.LocalCluster(**LOCAL))
            client = opened.enter_context(distributed.Client(cluster, set_as_default=False))
        elif isinstance(client, str):
            try:
                found = distributed.Client(client, timeout=SECONDS, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{client!r}",
                    "is not the address of a Dask scheduler that answers; start one with: dask "
                    "scheduler",
                ) from error
            client = opened.enter_context(found)
        yield client


def sent(thing: Any, client: Any = None) -> Any:
    """Return a thing as a task that is sent once to each worker; the scheduler keeps its bytes."""
    protocol = need("distributed.protocol.serialize", "dask")
    content = protocol.serialize_bytes(thing)
    if client is None:
        return dask().delayed(protocol.deserialize_bytes, pure=False)(content)
    return submit(client, protocol.deserialize_bytes, content)


def submit(client: Any, function: Callable[..., Any], *given: Any) -> Any:
    """Return the future of a call; Dask would warn of large arguments, and advise to send them."""
    with dask().config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
        return client.submit(function, *given, pure=False)


def mapping(client: Any) -> Callable[..., list[Any]]:
    """Return `map` on a cluster, of futures; results of a lost worker are recomputed elsewhere."""
    ask_all = keeping(client)
    return lambda ask, *parts: list(client.gather(ask_all(ask, *parts)))


def keeping(client: Any) -> Callable[..., list[Any]]:
    """Return `map` on a cluster whose results stay on the workers: futures, in order."""
    return lambda ask, *parts: list(client.map(ask, *map(list, parts), pure=False))


@contextmanager
def map_on_cluster(model: Any, client: Any = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield map(ask, items), which calls ask(model, item) on workers, in order and few at a time.

    Warnings of a worker are raised here.
    """
    with connected(client) as opened:
        whole = sent(model, opened)

        def ask_all(ask: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            most = AHEAD * sum(opened.nthreads().values())
            waiting: deque[Any] = deque()
            for item in items:
                waiting.append(submit(opened, _with_warnings, ask, whole, item))
                if len(waiting) > most:
                    yield _warned(*waiting.popleft().result())
            yield from (_warned(*each.result()) for each in waiting)

        yield ask_all


def _with_warnings(ask: Callable[..., Any], model: Any, item: Any) -> tuple[Any, list[Warning]]:
    """Answer, and return what was warned of."""
    with warnings.catch_warnings(record=True, action="default") as seen:
        answer = ask(model, item)
    return answer, [one.message for one in seen if isinstance(one.message, Warning)]


def _warned(answer: Any, messages: list[Warning]) -> Any:
    for message in messages:
        warnings.warn(message, stacklevel=3)
    return answer


@contextmanager
def map_here(model: Any, address: str | None = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield map(ask, items), which calls ask(model, item) in this process."""
    yield lambda ask, items: (ask(model, item) for item in items)


# How each engine that a command knows by name evaluates a model; others than `map_here` take an
# address.
ENGINES: dict[str, Callable[..., AbstractContextManager[Callable[..., Iterator[Any]]]]] = {
    "auto": map_here,
    "memory": map_here,
    "chunks": map_here,
    "dask": map_on_cluster,
}
