"""Which engine does the work: the one of a name, on a cluster that an address may tell."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

from anymix.engines import ENGINES, map_here


class Engine(NamedTuple):
    """An engine and, for a cluster that is there, its address."""

    name: str
    address: str | None = None

    def __str__(self) -> str:
        return self.name if self.address is None else f"{self.name}={self.address}"


def engine(text: str, names: tuple[str, ...]) -> Engine:
    """Read NAME or, for a cluster, NAME=ADDRESS.

    Examples
    --------
    >>> engine("dask=tcp://10.0.0.7:8786", ("chunks", "dask"))
    Engine(name='dask', address='tcp://10.0.0.7:8786')
    """
    name, equals, address = text.partition("=")
    if name not in names:
        raise ArgumentTypeError(f"it must be {' or '.join(names)}, but is {text!r}")
    if equals and not (ENGINES[name] is not map_here and address):
        raise ArgumentTypeError(
            f"an address is that of a scheduler, as in dask=HOST:8786: {text!r}"
        )
    return Engine(name, address or None)


DASK = "on a Dask cluster of this machine's cores, or on the one of dask=ADDRESS"


def add_engine(parser: ArgumentParser, meanings: dict[str, str]) -> None:
    """Add --engine; the first of the engines, each with what it does, is the default."""
    known = "; ".join(f"{name}: {meaning}" for name, meaning in meanings.items())
    parser.add_argument(
        "--engine",
        type=partial(engine, names=tuple(meanings)),
        default=Engine(next(iter(meanings))),
        help=known,
    )


def asked(engine: Engine | None, whom: Any) -> AbstractContextManager[Callable[..., Iterator[Any]]]:
    """Return what asks a model, or sources, about items: here, or by the workers of a cluster."""
    if engine is None:
        return map_here(whom)
    return ENGINES[engine.name](whom, engine.address)
