"""Processes of a test: whatever is started here is ended here, grandchildren too."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Processes:
    """Processes that have a mark in their environment, which their children have, too."""

    def __init__(self, home: Path, **env: str) -> None:
        self.home, self.started = home, []
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        marked = {"ANYMIX_TEST_HOME": str(home), "OPENBLAS_NUM_THREADS": "1", "PATH": path}
        self.env = os.environ | marked | env

    def start(self, name: str, *words: str) -> None:
        with open(self.home.parent / f"{name}.log", "wb") as log:
            given = {"stdout": log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
            program = BIN / words[0]
            first = str(program) if program.exists() else words[0]
            self.started.append(subprocess.Popen([first, *words[1:]], env=self.env, **given))

    def left(self) -> list[int]:
        """Processes that have the mark, by their ids; not this one."""
        found = []
        mark = f"ANYMIX_TEST_HOME={self.home}".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return [pid for pid in found if pid != os.getpid()]

    def end(self) -> list[int]:
        for stop in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.left():
                try:
                    os.kill(pid, stop)
                except ProcessLookupError:
                    continue
            for process in self.started:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    continue
            time.sleep(1)
        return self.left()


def wait_for(there, seconds: float, logs: Path, every: float = 1.0) -> None:
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            tails = [
                f"{p.name}:\n{p.read_text(errors='replace')[-3000:]}" for p in logs.glob("*.log")
            ]
            pytest.fail("it took too long.\n" + "\n".join(tails))
        time.sleep(every)


def is_open(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0
