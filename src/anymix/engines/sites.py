"""The sites of a grid as a `map`: what is asked goes to all of them, and comes back in order.

One round is one message to each site.  A site that is late is waited for; one that fails, or
whose answer cannot be, is named, and nothing is learned from that round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from anymix.engines.answering import NEVER, RECORDS, spread
from anymix.engines.journal import Journal, key_of
from anymix.engines.ledger import Counts, added, counted
from anymix.engines.messages import Refusal, ask_records, need_flower, read_reply
from anymix.engines.rounds import Rounds
from anymix.engines.wire import pack, unpack
from anymix.exceptions import InputError, one_line
from anymix.sources import Arrays, Query

# Seconds: a site that has not answered by then is taken for dead.
PATIENCE = 600.0
HELLO = Query("count", {}, {"folds": np.array(1)})
Check = Callable[[Query, str, Any], None]
Packed = Mapping[str, Any]
T = TypeVar("T")


class SiteError(InputError):
    """A site that failed, or whose answer cannot be used; `where` names it."""


class Sites:
    """One round for each question, or for the questions of several learners at once.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    names : the sites, each with the rows of the source of that name, in order
    check : called with question, site, answer; raises `SiteError` for what cannot be
    journal : answers that are known already
    patience : seconds that a site is waited for
    """

    def __init__(
        self,
        grid: Any,
        names: Sequence[str],
        check: Check,
        journal: Journal | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.grid, self.names, self.check = grid, list(names), check
        self.journal = Journal(None, names) if journal is None else journal
        self.patience = patience
        self.rounds: Rounds[Query, list[Arrays]] = Rounds(self._send)
        self.n_rounds = 0
        self.left: dict[str, Counts] = {name: {} for name in names}
        self._nodes: dict[int, str] = {}
        self._last: list[Any] = []

    def __call__(self, question: Any, parts: Iterable[Any], /) -> list[Arrays]:
        """Ask every site, about all of its rows; the answers come in the order of the sites."""
        # Few rows take a round as all of them do, and no site answers for few.
        asked = {name: a for name, a in question.arrays.items() if name not in NEVER}
        found = self.rounds.ask(replace(question, arrays=asked))
        if question.name != "evaluate":
            return found
        return [spread(one, k) for k, one in enumerate(found)]

    def together(self, function: Callable[[Any], T], given: Iterable[Any], /) -> list[T]:
        """Learn several things at once: what all of them ask is one round."""
        return self.rounds.together([partial(function, one) for one in given])

    def connect(self) -> dict[str, int]:
        """Wait until as many nodes as sites are there, and ask who they are; return their rows."""
        self._wait_for_nodes()
        found: dict[str, int] = {}
        told: dict[str, Packed] = {}
        hello = pack(HELLO, RECORDS)
        for node, reply in self._replies([hello], "node {}".format).items():
            name, answers = _read(reply, f"node {node}", 1)
            if name not in self.names:
                raise SiteError(f"node {node}", f"says that it is the site {name!r:.60}, unknown")
            if name in found:
                raise SiteError(f"site {name!r}", "is served by two nodes; stop one of them")
            self._nodes[node] = name
            (said,) = self._take([HELLO], name, answers)
            found[name], told[name] = int(said["rows"].sum()), answers[0]
        self.n_rounds += 1
        self._check_resumed(hello)
        if key_of(hello) not in self.journal.known:
            self.journal.add({key_of(hello): [told[name] for name in self.names]})
        return {name: found[name] for name in self.names}

    def _check_resumed(self, hello: Packed) -> None:
        """Rows that have changed since an earlier run cannot go on where it stopped."""
        known = self.journal.known.get(key_of(hello), [])
        for name, arrays in zip(self.names, known, strict=False):
            self.check(HELLO, name, unpack(arrays, RECORDS))

    def last_z(self) -> list[Any]:
        """Return the stacks of z that the last answered round was about."""
        return [np.asarray(Z).tolist() for Z in self._last]

    def _wait_for_nodes(self) -> None:
        end = time.monotonic() + self.patience
        while len(nodes := list(self.grid.get_node_ids())) < len(self.names):
            if time.monotonic() > end:
                raise SiteError(
                    f"{len(nodes)} of {len(self.names)} sites",
                    f"have connected within {self.patience:g} s; start the others' SuperNodes",
                )
            time.sleep(0.2)
        if len(nodes) > len(self.names):
            raise SiteError(
                f"{len(nodes)} nodes", f"are connected where {len(self.names)} sites are expected"
            )
        self._nodes = {node: f"node {node}" for node in nodes}

    def _send(self, questions: list[Query]) -> list[list[Arrays]]:
        """Send one round of what is not known yet; answer all of it."""
        packed = [pack(question, RECORDS) for question in questions]
        keys = [key_of(arrays) for arrays in packed]
        new = {k: i for i, k in enumerate(keys) if k not in self.journal.known}
        if new:
            asked = {key: questions[i] for key, i in new.items()}
            self.journal.add(self._round(asked, [packed[i] for i in new.values()]))
            self._last = [q.arrays["Z"] for q in asked.values() if "Z" in q.arrays] or self._last
        known = self.journal.known
        return [[unpack(arrays, RECORDS) for arrays in known[key]] for key in keys]

    def _round(self, asked: Mapping[str, Query], packed: list[Packed]) -> Any:
        replies = self._replies(packed, lambda node: f"site {self._nodes[node]!r}")
        by_site = {}
        for node, reply in replies.items():
            name = self._nodes[node]
            said, answers = _read(reply, f"site {name!r}", len(packed))
            if said != name:
                raise SiteError(f"site {name!r}", f"now says that it is {said!r:.60}")
            by_site[name] = answers
            self._take(list(asked.values()), name, answers)
        self.n_rounds += 1
        return {key: [by_site[name][i] for name in self.names] for i, key in enumerate(asked)}

    def _take(self, asked: list[Query], name: str, answers: list[Packed]) -> list[Any]:
        """Count what has left the site, whatever becomes of it; then look whether it can be."""
        values = []
        for arrays in answers:
            try:
                values.append(unpack(arrays, RECORDS))
            except InputError as error:
                raise SiteError(f"site {name!r}", f"sent what {error.cause}") from error
        self.left[name] = added(self.left[name], counted(asked, values))
        for question, value in zip(asked, values, strict=True):
            self.check(question, name, value)
        return values

    def _replies(self, packed: list[Packed], called: Callable[[int], str]) -> dict[int, Any]:
        """Send the questions to all nodes, and wait for all of them."""
        app = need_flower()
        messages = [app.Message(ask_records(packed), node, "query") for node in self._nodes]
        found = {
            reply.metadata.src_node_id: reply
            for reply in self.grid.send_and_receive(messages, timeout=self.patience)
        }
        for node in self._nodes:
            if node not in found:
                raise SiteError(
                    called(node),
                    f"has not answered within {self.patience:g} s; start it again, then resume",
                )
        return found


def _read(reply: Any, who: str, n: int) -> tuple[str, list[Packed]]:
    """Return the name of a site and its answers; whatever else it sent is said in a sentence."""
    if reply.has_error():
        why = one_line(reply.error.reason or f"error {reply.error.code}")[:300].rstrip(".")
        raise SiteError(who, f"failed: {why}; mend it there, then resume")
    try:
        return read_reply(reply.content, n)
    except Refusal as refusal:
        raise SiteError(who, f"refuses to answer: {str(refusal).rstrip('.')}") from refusal
    except (InputError, ValueError, TypeError) as error:
        raise SiteError(who, f"sent what cannot be read: {str(error).rstrip('.')}") from error
