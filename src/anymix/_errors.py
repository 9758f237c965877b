"""Errors that know where and why: a sentence is for people, and no code takes it apart again."""

from __future__ import annotations

from typing import Any


class _Located(ValueError):
    """`where` and `cause`, which together are a sentence without its full stop."""

    def __init__(self, where: Any, cause: str):
        super().__init__(where, cause)
        self.where = str(where)
        self.cause = cause

    def __str__(self) -> str:
        return f"{self.where} {self.cause}."


class AuditError(_Located):
    """A file or folder that is not what it claims to be, or that is not allowed.

    Examples
    --------
    >>> error = AuditError("north/manifest.json", "has schema 99; this version reads 1")
    >>> print(error)
    north/manifest.json has schema 99; this version reads 1.
    >>> error.where
    'north/manifest.json'
    """


class InputError(_Located):
    """Rows, labels or options that cannot be used, and where they stand.

    Examples
    --------
    >>> print(InputError("rows.csv, row 7, column 'age'", "holds 'old', which is not a number"))
    rows.csv, row 7, column 'age' holds 'old', which is not a number.
    """
