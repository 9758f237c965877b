"""Flower's grid in one process: the same apps and messages, without servers and sockets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from anymix.engines.flower import need_flower

SERVER, RUNS = 1, count(1)


def in_process_grid(
    client_app: Any,
    nodes: Sequence[Mapping[str, Any]],
    run_config: Mapping[str, Any] | None = None,
) -> Any:
    """Return a grid of sites in this process, one for each configuration of a node.

    It is Flower's `Grid`: what a `ServerApp` does with it is what it does with a SuperLink.  An
    error of a site comes back as an error message, as it does from a SuperNode.
    """
    app, run = need_flower(), next(RUNS)

    # Flower sets it when it starts the process of an app; a message cannot be made without.
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = run, SERVER, SERVER
    contexts = {
        i + 2: app.Context(run, i + 2, dict(node), app.RecordDict(), dict(run_config or {}))
        for i, node in enumerate(nodes)
    }
    return _grid_class()(client_app, contexts, run)


def _grid_class() -> Any:
    app = need_flower()
    from flwr.serverapp import Grid
    from flwr.supercore.run import Run

    class InProcessGrid(Grid):
        """Runs the ClientApp of a node when a message is sent to it."""

        def __init__(self, client_app: Any, contexts: Mapping[int, Any], run: int) -> None:
            self.client_app, self.contexts = client_app, contexts
            self._run = Run.create_empty(run)
            self._replies: dict[str, Any] = {}
            self._sent = 0

        def set_run(self, run: Any) -> None:
            self._run = run

        @property
        def run(self) -> Any:
            return self._run

        def create_message(self, content: Any, message_type: str, *given: Any, **named: Any) -> Any:
            raise NotImplementedError("Flower has deprecated it: make a flwr.app.Message.")

        def get_node_ids(self) -> Iterable[int]:
            return list(self.contexts)

        def push_messages(self, messages: Iterable[Any]) -> Iterable[str]:
            return [self._push(message) for message in messages]

        def _push(self, message: Any) -> str:
            self._sent += 1
            number = message.metadata.__dict__["_message_id"] = str(self._sent)
            try:
                reply = self.client_app(message, self.contexts[message.metadata.dst_node_id])
            # As a SuperNode does: whatever happened at the site is an error message.
            except Exception as error:  # noqa: BLE001
                reply = app.Message(app.Error(2, f"{type(error)}:<'{error}'>"), reply_to=message)
            self._replies[number] = reply
            return number

        def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Any]:
            return [self._replies.pop(i) for i in list(message_ids) if i in self._replies]

        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Iterable[Any]:
            return self.pull_messages(self.push_messages(messages))

    return InProcessGrid
