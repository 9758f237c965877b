"""Several learners at once, and one round of questions for what all of them ask.

A round is dear where it crosses a network: learners that need nothing of each other, such as those
of the folds, run in threads, and a round is sent when every one of them waits for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread, local
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


class Rounds(Generic[Q, A]):
    """Collects what tasks ask; `send` takes the questions of a round and returns their answers.

    Examples
    --------
    Two tasks of three questions each need three rounds:

    >>> rounds = Rounds(lambda questions: [q * 10 for q in questions])
    >>> task = lambda: sum(rounds.ask(q) for q in (1, 2, 3))
    >>> rounds.together([task, task]), rounds.n_rounds
    ([60, 60], 3)
    """

    def __init__(self, send: Callable[[list[Q]], Sequence[A]]) -> None:
        self.send = send
        self.n_rounds = 0
        self._lock, self._here = Lock(), local()
        self._running = 0
        self._waiting: list[tuple[Q, Future[A]]] = []

    def ask(self, question: Q) -> A:
        """Ask one question; whoever is the last to ask sends the round."""
        answer: Future[A] = Future()
        self._step(0, (question, answer))
        return answer.result()

    def together(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run tasks at once, each in a thread, and return what they found, in order.

        A task may itself run tasks together.  The first error, in the order of the tasks, is
        raised when all of them have ended.
        """
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
        """Count who runs and who waits; send what is waiting if nobody else runs."""
        with self._lock:
            self._running += change
            self._waiting += [] if asked is None else [asked]
            if not self._waiting or len(self._waiting) < self._running:
                return
            due, self._waiting = self._waiting, []
            self.n_rounds += 1
        self._answer(due)

    def _answer(self, due: list[tuple[Q, Future[A]]]) -> None:
        try:
            answers = self.send([question for question, _ in due])
        # Every task that waits must hear of it.
        except BaseException as error:  # noqa: BLE001
            for _, answer in due:
                answer.set_exception(error)
            return
        for (_, answer), value in zip(due, answers, strict=True):
            answer.set_result(value)
