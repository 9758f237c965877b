"""Output of a command: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anymix.cli.streams import legible, say, whisper
from anymix.core import plain
from anymix.storage import is_standard_output

QUIET_SECONDS = 2.0
LINE_SECONDS = 10.0


class Console:
    """Print results and progress."""

    def __init__(self, as_json: bool = False, quiet: bool = False):
        self.as_json = as_json
        self.quiet = quiet

    def result(self, text: str | Callable[[], str], record: Any, out: str | None = None) -> None:
        """Print the result, as text or as one JSON object; a callable is only evaluated if needed.

        Nothing is printed if the command's table went to standard output.
        """
        tell = whisper if out is not None and is_standard_output(out) else say
        if self.as_json:
            # json does not escape DEL, which some terminals interpret
            record = record() if callable(record) else record
            whole = json.dumps(plain(record), allow_nan=False).replace("\x7f", "\\u007f")
            tell(whole + "\n")
        elif not self.quiet:
            tell(legible(text() if callable(text) else text) + "\n")

    @contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Show that a task is running until the block ends."""
        progress, ended = Progress(task, silent=self.quiet), threading.Event()
        thread = threading.Thread(target=progress.tick, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            progress.done()


class Progress:
    """Remaining time: one updated line on a terminal, occasional plain lines elsewhere.

    Nothing is printed in the first two seconds, so short tasks stay silent.
    """

    def __init__(self, task: str, silent: bool = False):
        self.task = task
        self.silent = silent
        self.started = time.monotonic()
        self.next_word = self.started + QUIET_SECONDS
        self.spoken = False

    def update(self, share: float) -> None:
        """Report the finished share, 0 to 1."""
        now = time.monotonic()
        if self.silent or now < self.next_word or share <= 0:
            return
        left = (now - self.started) * (1 - share) / share
        self._tell(f"{self.task}: {100 * share:.0f} %, {{}} left", left, now)

    def again(self, task: str) -> None:
        """Start the next of several tasks, with the same delay before its first line."""
        self.task, self.started = task, time.monotonic()

    def tick(self, ended: threading.Event) -> None:
        """Report the elapsed time now and then until the task ends."""
        while not ended.wait(max(self.next_word - time.monotonic(), 0.0)):
            if self.silent:
                return
            now = time.monotonic()
            self._tell(f"{self.task}: {{}} so far", now - self.started, now)

    def _tell(self, text: str, seconds: float, now: float) -> None:
        duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
        text = text.format(duration)
        moving = sys.stderr is not None and sys.stderr.isatty()
        whisper(f"\r{text:<78}" if moving else text + "\n")
        self.spoken = self.spoken or moving
        self.next_word = now + (0.2 if moving else LINE_SECONDS)

    def done(self) -> float:
        """End the line and return the elapsed seconds."""
        if self.spoken:
            whisper("\r" + " " * 78 + "\r")
        return time.monotonic() - self.started
