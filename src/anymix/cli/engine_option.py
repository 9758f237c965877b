"""Which engine does the work: its name, and the address of a cluster if that is running."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from anymix.engines import ENGINES, map_here

DASK = "on a Dask cluster of this machine's cores, or on the one of dask=ADDRESS"


def engine(text: str, names: tuple[str, ...]) -> str:
    """Check NAME or, for a cluster, NAME=ADDRESS."""
    name, equals, address = text.partition("=")
    if name not in names:
        raise ArgumentTypeError(f"it must be {' or '.join(names)}, but is {text!r}")
    if equals and not (ENGINES[name] is not map_here and address):
        raise ArgumentTypeError(
            f"an address is that of a scheduler, as in dask=HOST:8786: {text!r}"
        )
    return text


def add_engine(parser: ArgumentParser, meanings: dict[str, str]) -> None:
    """Add --engine; the first of the engines, each with what it does, is the default."""
    names = tuple(meanings)
    known = "; ".join(f"{name}: {meaning}" for name, meaning in meanings.items())
    kind = partial(engine, names=names)
    parser.add_argument("--engine", type=kind, default=names[0], help=known)


def map_by(engine: str, asked: Any) -> AbstractContextManager[Callable[..., Iterator[Any]]]:
    """Return map(ask, items) over a model, or over sources: here, or by workers of a cluster."""
    name, _, address = engine.partition("=")
    return ENGINES[name](asked, address or None)
