"""Federated learning over Flower: a ClientApp for each site, a ServerApp that learns.

Flower only carries the messages of `wire`; `federation` and `site` are the same for all transports.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from anymix.engines.federation import Settings, federate
from anymix.engines.site import ReadRows, respond
from anymix.engines.wire import LOG
from anymix.exceptions import not_installed
from anymix.exchange import read_site_rows

# The record of a message, and its only entry: the bytes of `wire`.
RECORD, BODY = "anymix", "message"


def client_app(expected: Mapping[str, str], read_rows: ReadRows = read_site_rows) -> Any:
    """Return the ClientApp of a site.

    Parameters
    ----------
    expected : mapping
        The sources, in order, with the SHA-256 of their manifests: the same at all sites.
    read_rows : callable
        read_rows(path, received, target) gives the features and targets of the site's table.

    Where rows and folders are is said by the node, at the site: `site`, `rows` and `sources`, and
    perhaps `target` ("y"), `state` (a folder) and `min-rows` (20), which a server cannot change.
    """
    app = need_flower()
    from flwr.clientapp import ClientApp

    client = ClientApp()

    @client.query()
    def query(message: Any, context: Any) -> Any:
        body, run = _body(message.content), str(context.run_id)
        reply = respond(body, run, lambda: context.node_config, expected, read_rows)
        return app.Message(_content(reply), reply_to=message)

    return client


def server_app(expected: Mapping[str, str]) -> Any:
    """Return the ServerApp: it waits for all sites, learns by rounds, and writes the model.

    Parameters
    ----------
    expected : mapping
        The sources, in order, with the SHA-256 of their manifests; there is a site for each.

    The run states the folders and the objective of z; see `Settings`.
    """
    need_flower()
    from flwr.serverapp import ServerApp

    server = ServerApp()

    @server.main()
    def learn(grid: Any, context: Any) -> None:
        federate(FlowerTransport(grid), expected, Settings.of(context.run_config), LOG.info)

    # Flower looks at the annotations, which here are strings.
    return server


class FlowerTransport:
    """The SuperNodes of a Flower grid."""

    def __init__(self, grid: Any) -> None:
        self.grid = grid

    def nodes(self) -> list[Any]:
        """The nodes that are connected now, by their ids."""
        return list(self.grid.get_node_ids())

    def send(self, message: bytes, nodes: Sequence[Any], patience: float) -> dict[Any, bytes | str]:
        """Send a message to nodes; return the replies that came in time."""
        app = need_flower()
        messages = [app.Message(_content(message), node, "query") for node in nodes]
        replies = self.grid.send_and_receive(messages, timeout=patience)
        return {reply.metadata.src_node_id: _reply(reply) for reply in replies}


def need_flower() -> Any:
    """Import Flower, or say how to install it."""
    try:
        with warnings.catch_warnings():
            # Users of anymix can do nothing about warnings of Flower's own imports.
            warnings.simplefilter("ignore")
            import flwr.app
            import flwr.clientapp
            import flwr.serverapp
    except ImportError as error:
        raise not_installed("flwr", "flower") from error
    # Processes of its apps show what its own logger gets.
    LOG.parent = logging.getLogger("flwr")
    return flwr.app


def _content(message: bytes) -> Any:
    app = need_flower()
    return app.RecordDict({RECORD: app.ConfigRecord({BODY: message})})


def _body(content: Any) -> bytes:
    """The message in the content of Flower's; what is none is empty, and `wire` refuses it."""
    record = content.config_records.get(RECORD, {})
    body = record.get(BODY, b"")
    return body if isinstance(body, bytes) else b""


def _reply(reply: Any) -> bytes | str:
    if reply.has_error():
        return str(reply.error.reason or f"error {reply.error.code}")
    return _body(reply.content)
