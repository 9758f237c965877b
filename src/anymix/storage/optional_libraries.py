"""Import optional libraries when they are needed."""

from __future__ import annotations

import signal
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from anymix.exceptions import not_installed


def need(module: str, extra: str = "exchange") -> Any:
    """Import an optional library; the error names the extra of anymix that installs it.

    Examples
    --------
    >>> need("json").dumps([1])
    '[1]'
    """
    # Signals wait: a library whose loading is broken off fails strangely, or crashes.
    waiting: list[Any] = []
    usual = {}
    if module not in sys.modules and threading.current_thread() is threading.main_thread():
        numbers = (signal.SIGINT, signal.SIGTERM)
        usual = {n: signal.getsignal(n) for n in numbers if callable(signal.getsignal(n))}
    for number in usual:
        signal.signal(number, lambda *signals: waiting.append(signals))
    try:
        return import_module(module)
    except ImportError as error:
        raise not_installed(module.split(".")[0], extra) from error
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for number, frame in waiting[:1]:
            usual[number](number, frame)  # type: ignore[operator, misc]


def installed(*modules: str) -> None:
    """Say how to install a missing library, without importing any.

    Examples
    --------
    >>> installed("json", "re")
    """
    for module in modules:
        if find_spec(module) is None:
            raise not_installed(module, "exchange")
