"""The option --engine: the name of an engine and, for a cluster, its address."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from anymix.engines import ENGINES, map_here

DASK = "on a Dask cluster of the local cores, or on the cluster at dask=ADDRESS"


def engine(text: str, names: tuple[str, ...]) -> str:
    """Check NAME or, for a cluster, NAME=ADDRESS."""
    name, equals, address = text.partition("=")
    if name not in names:
        raise ArgumentTypeError(f"it must be {' or '.join(names)}, but is {text!r}")
    if equals and not (ENGINES[name] is not map_here and address):
        raise ArgumentTypeError(f"an address names a scheduler, as in dask=HOST:8786; got {text!r}")
    return text


def add_engine(parser: ArgumentParser, meanings: dict[str, str]) -> None:
    """Add --engine with the engines and their descriptions; the first is the default."""
    names = tuple(meanings)
    known = "; ".join(f"{name}: {meaning}" for name, meaning in meanings.items())
    kind = partial(engine, names=names)
    parser.add_argument("--engine", type=kind, default=names[0], help=known)


def map_by(engine: str, asked: Any) -> AbstractContextManager[Callable[..., Iterator[Any]]]:
    """Return map(ask, items) over a model or sources, in this process or on a cluster."""
    name, _, address = engine.partition("=")
    return ENGINES[name](asked, address or None)
