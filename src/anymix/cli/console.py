"""What a command says: text or JSON on standard output, progress and complaints on the other."""

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
    """Where results and progress go."""

    def __init__(self, as_json: bool = False, quiet: bool = False):
        self.as_json = as_json
        self.quiet = quiet

    def result(self, text: str | Callable[[], str], record: Any, out: str | None = None) -> None:
        """Say the result, as text or as one JSON object; a function of it is called if it is said.

        If the output itself has gone to standard output, nothing may be added to it there.
        """
        tell = whisper if out is not None and is_standard_output(out) else say
        if self.as_json:
            # json leaves DEL alone, which some terminals obey
            record = record() if callable(record) else record
            whole = json.dumps(plain(record), allow_nan=False).replace("\x7f", "\\u007f")
            tell(whole + "\n")
        elif not self.quiet:
            tell(legible(text() if callable(text) else text) + "\n")

    @contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Report a task of unknown progress until the block ends."""
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
    """Time left: one moving line on a terminal, a plain line now and then elsewhere.

    Nothing is printed in the first two seconds, so that short tasks stay silent.
    """

    def __init__(self, task: str, silent: bool = False):
        self.task = task
        self.silent = silent
        self.started = time.monotonic()
        self.next_word = self.started + QUIET_SECONDS
        self.spoken = False

    def update(self, share: float) -> None:
        """Report that this share, 0 to 1, is done."""
        now = time.monotonic()
        if self.silent or now < self.next_word or share <= 0:
            return
        left = (now - self.started) * (1 - share) / share
        self._tell(f"{self.task}: {100 * share:.0f} %, {{}} left", left, now)

    def again(self, task: str) -> None:
        """Begin the next of several tasks; it is not spoken of sooner than the last would be."""
        self.task, self.started = task, time.monotonic()

    def tick(self, ended: threading.Event) -> None:
        """Report now and then how long the task has taken, until it has ended."""
        while not ended.wait(max(self.next_word - time.monotonic(), 0.0)):
            if self.silent:
                return
            now = time.monotonic()
            self._tell(f"{self.task}: for {{}} by now", now - self.started, now)

    def _tell(self, text: str, seconds: float, now: float) -> None:
        duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
        text = text.format(duration)
        moving = sys.stderr is not None and sys.stderr.isatty()
        whisper(f"\r{text:<78}" if moving else text + "\n")
        self.spoken = self.spoken or moving
        self.next_word = now + (0.2 if moving else LINE_SECONDS)

    def done(self) -> float:
        """End the line, and return the seconds that the task took."""
        if self.spoken:
            whisper("\r" + " " * 78 + "\r")
        return time.monotonic() - self.started
