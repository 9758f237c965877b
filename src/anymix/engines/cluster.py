"""A Dask cluster: the one that is given, the one that is there, or one of this machine's cores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from anymix._errors import InputError
from anymix.exchange import need

# One thread each, as Python's own lock would let threads wait; and pages for this machine alone.
LOCAL = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
# A scheduler that is there answers at once.
SECONDS = 10


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
    """Yield a client: the one given, that of an address, the current one, or one of a new cluster.

    What is opened here is closed at the end; a client that was given stays open.
    """
    distributed = need("distributed", "dask")
    with ExitStack() as opened:
        if client is None and (client := current()) is None:
            cluster = opened.enter_context(distributed.LocalCluster(**LOCAL))
            client = opened.enter_context(distributed.Client(cluster, set_as_default=False))
        elif isinstance(client, str):
            client = opened.enter_context(_at(distributed, client))
        yield client


def _at(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{address!r}",
            "is not the address of a Dask scheduler that answers; start one with: dask scheduler",
        ) from error


def sent(thing: Any, client: Any = None) -> Any:
    """Return a thing as one task of a graph: written once here, and sent once to each worker.

    Its bytes stay with the scheduler, so that it outlives every worker.
    """
    protocol = need("distributed.protocol.serialize", "dask")
    read = dask().delayed(protocol.deserialize_bytes, pure=False)
    whole = read(protocol.serialize_bytes(thing))
    if client is None:
        return whole
    # Dask would warn of a large graph, and advises what is done here.
    with dask().config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
        return whole.persist(scheduler=client)


def mapping(client: Any) -> Callable[..., list[Any]]:
    """Return `map` on a cluster: parts are futures, and what is asked of them comes back in order.

    Wherever a part lies, the question goes there; if its worker dies, it is made anew elsewhere.
    """

    def on_workers(ask: Callable[..., Any], *parts: Iterable[Any]) -> list[Any]:
        return list(client.gather(client.map(ask, *map(list, parts), pure=False)))

    return on_workers
