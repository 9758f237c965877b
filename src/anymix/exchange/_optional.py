"""Libraries that only the exchange of sources needs are entered here, when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str) -> Any:
    """Import an optional library, or say how to get it.

    Examples
    --------
    >>> need("json").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module.split('.')[0]} is not installed; install it with: "
            "pip install 'anymix[exchange]'."
        ) from error
