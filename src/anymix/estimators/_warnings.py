"""Say a thing once, though many models inside say it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class OnceEach:
    """Hold the warnings of a block back, then give each sentence once, to the caller's caller.

    Examples
    --------
    >>> def work():
    ...     with OnceEach():
    ...         for _ in range(3):
    ...             warnings.warn("three times", stacklevel=1)
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     work()
    >>> len(seen)
    1
    """

    def __enter__(self) -> None:
        self._held = warnings.catch_warnings(record=True)
        self._seen = self._held.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._held.__exit__(*exception)
        for message in {str(w.message): w.message for w in self._seen or []}.values():
            # A message that is a Warning brings its category along.
            warnings.warn(message, stacklevel=3)


@contextmanager
def names_checked(model: Any) -> Iterator[None]:
    """Let no model inside repeat what the outer one has said of rows without feature names."""
    if not hasattr(model, "feature_names_in_"):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield
