"""Errors with place and cause as attributes, so that no code has to parse their sentences."""

from __future__ import annotations

from typing import Any


def visible(text: object) -> str:
    r"""Escape all invisible characters.

    Control characters, line breaks, marks that turn the direction of text and halves of
    characters could otherwise forge output lines or control a terminal.

    Examples
    --------
    >>> print(visible("north\x1b[2J\u202e\n"))
    north\x1b[2J\u202e\n
    """
    found = str(text)
    if found.isprintable():
        return found
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in found)


def quoted(value: object) -> str:
    """Quote an untrusted value, shortened.

    Examples
    --------
    >>> quoted("age"), len(quoted("a" * 1000))
    ("'age'", 60)
    """
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(text: object) -> str:
    r"""Join the lines of a message, and escape invisible characters.

    Examples
    --------
    >>> print(one_line("it failed\n  because of \x07 this"))
    it failed because of \x07 this
    """
    return visible(" ".join(str(text).split()))


def not_installed(library: str, extra: str) -> ImportError:
    """Return the error that says which extra of anymix brings a library.

    Examples
    --------
    >>> print(not_installed("onnx", "exchange"))
    onnx is not installed; it comes with anymix's extra 'exchange':
    pip install '.[exchange]' in a checkout.
    """
    return ImportError(
        f"{library} is not installed; it comes with anymix's extra {extra!r}: "
        f"pip install '.[{extra}]' in a checkout."
    )


class UsageError(ValueError):
    """An invalid command line, whatever the content of the files."""


class ParameterError(ValueError):
    """An invalid parameter or argument, whatever the rows."""


class _Located(ValueError):
    """`where` and `cause`, which together are a sentence without its full stop."""

    def __init__(self, where: Any, cause: str):
        super().__init__(where, cause)
        self.where = visible(where)
        self.cause = one_line(cause)

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


class PredictorError(AuditError):
    """A predictor from elsewhere that fails at a row; `row` counts from 0, None if not known.

    Examples
    --------
    >>> print(PredictorError("the predictor of 'north'", "fails", 7).moved(100))
    the predictor of 'north' fails at row 107.
    """

    def __init__(self, where: Any, cause: str, row: int | None = None):
        super().__init__(where, cause)
        self.row = row

    def moved(self, start: int) -> PredictorError:
        """Return the same error with shifted row numbers."""
        row = None if self.row is None else self.row + start
        return PredictorError(self.where, self.cause, row)

    def __str__(self) -> str:
        at = "" if self.row is None else f" at row {self.row}"
        return f"{self.where} {self.cause}{at}."


class MissingError(AuditError):
    """A file or folder that does not exist, most likely because of a mistyped name.

    Examples
    --------
    >>> print(MissingError("nroth", "does not exist; give a folder that is there"))
    nroth does not exist; give a folder that is there.
    """


class InputError(_Located):
    """Unusable rows, labels or options, and their place.

    Examples
    --------
    >>> print(InputError("rows.csv, row 7, column 'age'", "holds 'old', which is not a number"))
    rows.csv, row 7, column 'age' holds 'old', which is not a number.
    """
