"""Find the files of a data set in a folder, or download them from their publishers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Published(NamedTuple):
    """A file as its publisher offers it: name, address, and pooch's checksum if one is known."""

    name: str
    address: str
    checksum: str | None = None


class DataNotFoundError(ValueError):
    """A data file is not in the folder and cannot be downloaded."""


def find(data: Path | None, names: Sequence[str]) -> Path | None:
    """Return the first of the named files that lies in the folder or in a folder of it."""
    if data is None:
        return None
    if not data.is_dir():
        raise DataNotFoundError(f"{data} is not a folder; name the one that holds the data files.")
    found = (path for name in names for path in [data / name, *sorted(data.glob(f"*/{name}"))])
    return next((path for path in found if path.is_file()), None)


def obtain(data: Path | None, file: Published) -> Path:
    """Return the published file from the folder; without a folder, download it once and check it.

    The download needs pooch, shows a progress bar, and lands in pooch's cache.
    """
    path = find(data, [file.name])
    if path is not None:
        return path
    if data is not None:
        raise DataNotFoundError(f"{file.name} is not in {data}; {_remedy(file)}.")
    try:
        pooch = import_module("pooch")
    except ImportError:
        raise DataNotFoundError(
            f"{file.name} is not here and pooch is not installed; `pip install pooch tqdm`, or "
            f"{_remedy(file)}."
        ) from None
    return _download(pooch, file)


def cache_folder() -> Path:
    """Return where downloads and trained networks are kept: ANYMIX_CACHE, or pooch's place."""
    named = os.environ.get("ANYMIX_CACHE")
    return Path(named) if named else Path(import_module("pooch").os_cache("anymix"))


def _download(pooch: Any, file: Published) -> Path:
    try:
        return Path(
            pooch.retrieve(
                file.address,
                known_hash=file.checksum,
                fname=file.name,
                path=cache_folder(),
                progressbar=True,
            )
        )
    # OSError covers every failure of the network, requests' own errors included.
    except OSError as error:
        raise DataNotFoundError(
            f"{file.name} could not be downloaded ({type(error).__name__}); {_remedy(file)}."
        ) from error


def _remedy(file: Published) -> str:
    return (
        f"get it from {file.address} and put it into a folder that you name with --data or in "
        "ANYMIX_DATA"
    )
