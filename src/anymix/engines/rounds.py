"""Run several learners at once, and combine their queries into common rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Lock, Thread, local
from typing import Any, Generic, TypeVar

import numpy as np

from anymix.exceptions import InputError
from anymix.sources import Arrays
from anymix.storage import replacing

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


class Rounds(Generic[Q, A]):
    """Collects the queries of tasks; `send` takes those of a round and returns the responses."""

    def __init__(self, send: Callable[[list[Q]], Sequence[A]]) -> None:
        self.send = send
        self.n_rounds = 0
        self._lock, self._here = Lock(), local()
        self._running = 0
        self._waiting: list[tuple[Q, Future[A]]] = []

    def ask(self, question: Q) -> A:
        """Send one query; the last thread that calls sends the round."""
        answer: Future[A] = Future()
        self._step(0, (question, answer))
        return answer.result()

    def together(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run tasks, which may nest, in threads; raise the first error when all have ended."""
        inside = getattr(self._here, "inside", False)
        found: list[Future[T]] = [Future() for _ in tasks]
        # The task that waits for others is none that a round waits for.
        group = {"left": len(tasks)}
        with self._lock:
            self._running += len(tasks) - inside
        args = [(task, one, group, inside) for task, one in zip(tasks, found, strict=True)]
        threads = [Thread(target=self._run, args=given, daemon=True) for given in args]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not tasks and inside:
            self._step(1)
        return [one.result() for one in found]

    def _run(
        self, task: Callable[[], T], found: Future[T], group: dict[str, int], inside: bool
    ) -> None:
        self._here.inside = True
        try:
            found.set_result(task())
        # It is raised again where the task was given.
        except BaseException as error:  # noqa: BLE001
            found.set_exception(error)
        with self._lock:
            group["left"] -= 1
            # The last one leaves its place to the task that waits for it.
            stays = inside and group["left"] == 0
        self._step(0 if stays else -1)

    def _step(self, change: int, asked: tuple[Q, Future[A]] | None = None) -> None:
        """Count running and waiting threads; send what is waiting if no other runs."""
        with self._lock:
            self._running += change
            self._waiting += [] if asked is None else [asked]
            if not self._waiting or len(self._waiting) < self._running:
                return
            due, self._waiting = self._waiting, []
            self.n_rounds += 1
        try:
            answers = self.send([question for question, _ in due])
        # Every task that waits is to fail with it.
        except BaseException as error:  # noqa: BLE001
            for _, answer in due:
                answer.set_exception(error)
            return
        for (_, answer), value in zip(due, answers, strict=True):
            answer.set_result(value)


CHECKPOINT = "checkpoint.json"


def key_of(arrays: Arrays) -> str:
    """SHA-256 of a packed query: the same query has the same key."""
    found = sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        found.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def digest(content: bytes) -> str:
    """SHA-256 of a round, which is part of its file's name: a damaged file is not used."""
    return sha256(content).hexdigest()


class Journal:
    """Responses of all `sites`, in order, by the key of the query; in a folder or in memory."""

    def __init__(self, folder: str | Path | None, sites: Sequence[str]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.sites = list(sites)
        self.known: dict[str, list[Arrays]] = {}
        self.n_rounds = 0

    def resume(self) -> int:
        """Read the rounds that are there; return how many."""
        for path in sorted(self.folder.glob("round-*.npz")) if self.folder else []:
            content = path.read_bytes()
            if digest(content) != path.stem.rpartition("-")[2]:
                raise InputError(path, "is not what was written there; start anew (resume=false)")
            self._read(path, content)
            self.n_rounds += 1
        return self.n_rounds

    def _read(self, path: Path, content: bytes) -> None:
        with np.load(BytesIO(content), allow_pickle=False) as file:
            told = {name: file[name] for name in file.files}
        if told.pop("sites").tolist() != self.sites:
            raise InputError(path, "is of other sites; choose another folder, or start anew")
        for key in told.pop("keys").tolist():
            self.known[key] = [{} for _ in self.sites]
        for entry, array in told.items():
            key, site, name = entry.split(".", 2)
            self.known[key][int(site)][name] = array

    def clear(self) -> None:
        """Forget the rounds of an earlier fit."""
        if self.folder is not None:
            for path in [*self.folder.glob("round-*.npz"), self.folder / CHECKPOINT]:
                path.unlink(missing_ok=True)

    def add(self, answered: Mapping[str, list[Arrays]]) -> None:
        """Keep the responses of one round, whole or not at all."""
        self.n_rounds += 1
        self.known |= answered
        if self.folder is None:
            return
        told = {"sites": np.array(self.sites), "keys": np.array(list(answered))}
        for key, answers in answered.items():
            for site, arrays in enumerate(answers):
                told |= {f"{key}.{site}.{name}": array for name, array in arrays.items()}
        content = BytesIO()
        np.savez(content, allow_pickle=False, **told)
        name = f"round-{self.n_rounds:05d}-{digest(content.getvalue())}.npz"
        with replacing(self.folder / name) as temporary:
            temporary.write_bytes(content.getvalue())

    def note(self, state: Mapping[str, Any]) -> None:
        """Write the progress of the fit for people: rounds, the last z, why it ended."""
        if self.folder is not None:
            with replacing(self.folder / CHECKPOINT) as temporary:
                temporary.write_text(json.dumps({"rounds": self.n_rounds, **state}, indent=1))
