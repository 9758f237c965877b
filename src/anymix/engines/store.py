"""Arrays on disk: written once, read whenever they are asked for, gone with the process.

The file has no name.  Whatever ends the process, an error or a kill, its room is free again.  What
is read is a copy: pages of the file are the system's, and never count as memory of the process.
"""

from __future__ import annotations

import errno
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anymix.exceptions import InputError

# Every array begins at a multiple of it.
ALIGNED = 64


@dataclass(frozen=True)
class Kept:
    """Where some named arrays stand in the file of a store."""

    file: BinaryIO
    offset: int
    layout: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]

    def read(self) -> dict[str, NDArray[Any]]:
        """Return the arrays."""
        sizes = [_aligned(dtype.itemsize * math.prod(shape)) for _, dtype, shape in self.layout]
        content, found, start = self._bytes(sum(sizes)), {}, 0
        for (name, dtype, shape), size in zip(self.layout, sizes, strict=True):
            n_bytes = dtype.itemsize * math.prod(shape)
            found[name] = content[start : start + n_bytes].view(dtype).reshape(shape)
            start += size
        return found

    def _bytes(self, n: int) -> Any:
        # At a place, and not after the last read: several threads read at once.
        content: Any = np.empty(n, dtype=np.uint8)
        done = 0
        while done < n:
            got = os.preadv(self.file.fileno(), [content[done:]], self.offset + done)
            if not got:
                raise OSError("the temporary file is shorter than what was written to it.")
            done += got
        return content


class Store:
    """A temporary file of arrays, in float32 unless another type of numbers is asked for.

    Parameters
    ----------
    dtype : "float32" or "float64"
        Of numbers that `keep` rounds.
    folder : path, optional
        Where the file is; by default where temporary files are, which TMPDIR says.

    Examples
    --------
    >>> with Store() as store:
    ...     kept = store.keep(x=np.arange(3.0), n=np.arange(2))
    ...     kept.read()
    {'x': array([0., 1., 2.], dtype=float32), 'n': array([0, 1])}
    """

    def __init__(self, dtype: DTypeLike = "float32", folder: str | Path | None = None):
        self.dtype = dtype
        self.folder = folder
        self.size = 0

    def __enter__(self) -> Self:
        self._file: Any = tempfile.TemporaryFile(dir=self.folder, buffering=0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def keep(self, **arrays: NDArray[Any]) -> Kept:
        """Write arrays, those of fractions rounded, and return what reads them again."""
        rounded = {
            name: np.ascontiguousarray(a, dtype=self.dtype if a.dtype.kind == "f" else a.dtype)
            for name, a in arrays.items()
        }
        layout = tuple((name, a.dtype, a.shape) for name, a in rounded.items())
        kept = Kept(self._file, self.size, layout)
        for array in rounded.values():
            self._write(array.reshape(-1).view(np.uint8))
        return kept

    def _write(self, content: Any) -> None:
        try:
            done = 0
            while done < content.size:
                done += os.pwrite(self._file.fileno(), content[done:], self.size + done)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise InputError(
                f"the folder of temporary files {self.folder or tempfile.gettempdir()}",
                f"has no room beside {self.size / 1e9:.3g} GB of tables; set TMPDIR to a folder on "
                "a larger disk",
            ) from error
        self.size += _aligned(content.size)
        # A hole is nothing to be written, but the file must reach behind the last one.
        os.ftruncate(self._file.fileno(), self.size)


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNED) * ALIGNED
