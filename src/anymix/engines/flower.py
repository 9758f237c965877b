"""Sites that keep their rows, asked through Flower: a ClientApp for each, a ServerApp that learns.

The learner owns the loop.  What it asks goes to all sites in one round of messages, and comes back
as sums over their rows; rows, and what sources say of a row, never leave a site.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anymix.engines.flower_messages import (
    LOG,
    Refusal,
    add_counts,
    check_refusals,
    need_flower,
    read_questions,
    record_left,
    record_refusal,
    refusal_records,
    refusing,
    reply_records,
    total,
)
from anymix.engines.flower_server import Settings, federate
from anymix.engines.flower_site import ReadRows, Site, answer


def client_app(expected: Mapping[str, str], read_rows: ReadRows) -> Any:
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
        try:
            with refusing("fault"):
                content = _answers(message.content, context, expected, read_rows)
        except Refusal as refusal:
            content = refusal_records(refusal.kind)
        return app.Message(content, reply_to=message)

    return client


def server_app(expected: Mapping[str, str]) -> Any:
    """Return the ServerApp: it waits for all sites, learns by rounds, and writes the model.

    Parameters
    ----------
    expected : mapping
        The sources, in order, with the SHA-256 of their manifests; there is a site for each.

    The run says where folders are and what z is to achieve; see `Settings`.
    """
    need_flower()
    from flwr.serverapp import ServerApp

    server = ServerApp()

    @server.main()
    def learn(grid: Any, context: Any) -> None:
        federate(grid, expected, Settings.of(context.run_config), LOG.info)

    # Flower looks at the annotations, which here are strings.
    return server


def _answers(content: Any, context: Any, expected: Mapping[str, str], read_rows: ReadRows) -> Any:
    """Respond to the queries of one round; record and log what leaves before it does."""
    with refusing("setup"):
        site = Site.of(context.node_config, expected)
    check_refusals(site.ledger)
    try:
        part = site.part(read_rows)
        with refusing("query"):
            questions = read_questions(content)
        answers = [answer(question, part) for question in questions]
        n, run, all_runs = record_left(site.ledger, context.run_id, questions, answers)
    except Refusal as refusal:
        record_refusal(site.ledger, context.run_id, refusal.kind)
        raise
    left = add_counts({}, questions, answers)
    what = ", ".join(f"{numbers} of {verb}" for verb, (_, numbers) in left.items())
    LOG.info(
        "site %s, round %d: %d numbers leave (%s), of %d rows; %d in this run, %d ever",
        *(site.name, n, total(left), what, part.tables.n_points, run, all_runs),
    )
    return reply_records(site.name, answers)
