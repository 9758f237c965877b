"""The text of a table: its header, and blocks of whole rows as UTF-8."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anymix.exceptions import InputError
from anymix.tables.table_format import TableFormat

BLOCK_BYTES = 2**22
# A row of 100 000 numbers has 2 MB; a file without line breaks may have any number.
LINE_BYTES = 2**24
SAVE = "save the table as UTF-8, or name its encoding with --encoding"


class TextBlocks:
    """The text of an open table; `mark` separates its columns, "" if its name does not say so.

    Text is UTF-8; if the first line that is not ASCII is not, all of it is Windows-1252.  What is
    `blank` up to the end of the file is no row.  `row` is the number of the last row that was read.
    """

    def __init__(self, path: Path, lines: BinaryIO, mark: str, form: TableFormat):
        self.path, self.lines, self.mark, self.form = path, lines, mark, form
        self.encoding: str | None = None
        self.row, self.blank = 0, b"\r\n\x1a"
        self.block_bytes = BLOCK_BYTES
        self._rest, self._ended = b"", False

    def header(self) -> str:
        """Return the first line."""
        line = self.lines.readline(LINE_BYTES + 1)
        if len(line) > LINE_BYTES:
            raise self._too_long("the header")
        return "" if not line.strip(b"\r\n\x1a") else self._checked(line, "the header").decode()

    def block(self) -> bytes:
        """Return whole lines that end outside of quotes; b"" at the end."""
        self._read()
        end = len(self._rest) if self._ended else _end_of_rows(self._rest)
        while not end and not self._ended and len(self._rest) <= LINE_BYTES:
            self._read(len(self._rest) + self.block_bytes)
            end = len(self._rest) if self._ended else _end_of_rows(self._rest)
        where = f"row {self.row + 1}: the text"
        # A quote that nobody closes: csv will say so.
        end = end or self._rest.rfind(b"\n") + 1
        if not end and self._rest:
            raise self._too_long(where)
        block, self._rest = self._rest[:end], self._rest[end:]
        if len(block) > LINE_BYTES and b"\n" not in block[: LINE_BYTES + 1]:
            raise self._too_long(where)
        return self._checked(self._without_blank_end(block), where)

    def give_back(self, text: str) -> None:
        """Return unused lines to the buffer."""
        self._rest = text.encode() + self._rest

    def _read(self, n: int = 0) -> None:
        n = n or self.block_bytes
        parts, length = [self._rest], len(self._rest)
        while length < n and not self._ended:
            part = self.lines.read(n - length)
            parts.append(part)
            length += len(part)
            self._ended = not part
        self._rest = b"".join(parts)

    def _without_blank_end(self, block: bytes) -> bytes:
        """Leave out blank lines behind the last row; among rows they are a fault and stay."""
        body = block.rstrip(self.blank)
        tail = block[len(body) :]
        end = tail.find(b"\n") + 1 if body and not body.endswith(b"\n") else 0
        if not tail[end:]:
            return block
        while not self._ended and not self._rest.strip(self.blank):
            self._rest = b""
            self._read()
        if self._rest.strip(self.blank):
            return block
        self._rest = b""
        return body + tail[:end]

    def _checked(self, block: bytes, where: str) -> bytes:
        """Return text as UTF-8; where it is none, the error names the row."""
        if self.encoding is None and not block.isascii() and b"\0" not in block:
            line = next(line for line in block.split(b"\n") if not line.isascii())
            self.encoding = "cp1252"
            with suppress(UnicodeDecodeError):
                line.decode()
                self.encoding = "utf-8"
        try:
            if not block.isascii():
                text = block.decode(self.encoding or "utf-8")
                block = block if self.encoding in (None, "utf-8") else text.encode()
        except UnicodeDecodeError as error:
            cause = f"is not UTF-8, nor Latin-1 as a whole; {SAVE}"
            raise InputError(self._place(block, error.start, where), cause) from error
        if b"\0" in block:
            place = self._place(block, block.index(b"\0"), where)
            raise InputError(place, f"holds a NUL byte; {SAVE}")
        return block

    def _place(self, block: bytes, at: int, where: str) -> str:
        if where != "the header":
            return f"{self.path}, row {self.row + 1 + block.count(10, 0, at)}: the text"
        return f"{self.path}: {where}"

    def _too_long(self, where: str) -> InputError:
        between = ": " if where == "the header" else ", "
        cause = f"is over {LINE_BYTES >> 20} MB long; write a line for each row"
        return InputError(f"{self.path}{between}{where}", cause)


def _end_of_rows(text: bytes) -> int:
    """Return where the last line ends that does not end within quotes, 0 if there is none."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    symbols = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(symbols == ord("\n"))
    quotes = np.searchsorted(np.flatnonzero(symbols == ord('"')), ends)
    outside = ends[quotes % 2 == 0]
    return int(outside[-1]) + 1 if outside.size else 0
