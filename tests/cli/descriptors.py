"""Files in the place of descriptors of this process, as a shell would put them."""

import os
from contextlib import contextmanager

APPEND = os.O_WRONLY | os.O_APPEND
WRITE = os.O_WRONLY | os.O_CREAT


@contextmanager
def descriptor(number, path, flags=os.O_RDONLY):
    """Let a file be a descriptor, such as 0 for standard input, until the block ends."""
    kept = os.dup(number) if number in (0, 1, 2) else None
    opened = os.open(path, flags, 0o666)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    try:
        yield
    finally:
        if kept is None:
            os.close(number)
        else:
            os.dup2(kept, number)
            os.close(kept)


@contextmanager
def piped_in(content):
    """Let a few bytes come by a pipe to standard input."""
    end, start = os.pipe()
    os.write(start, content)
    os.close(start)
    try:
        with descriptor(0, f"/dev/fd/{end}"):
            yield
    finally:
        os.close(end)
