"""The server: connect, learn in rounds, write the model and what left each site."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np

from anymix.core import TASK_LOSSES, Loss, get_loss
from anymix.engines.account import Counts, add_counts, total
from anymix.engines.generalist import (
    GENERAL,
    LINEAR,
    PREDICT,
    Columns,
    columns_of,
    expected_shapes,
    learn_generalist,
)
from anymix.engines.rounds import Journal, Rounds, key_of
from anymix.engines.site import read_expected, spread
from anymix.engines.site_queries import NEVER
from anymix.engines.wire import Refusal, dump_queries, load_reply, pack
from anymix.exceptions import AuditError, InputError, one_line
from anymix.exchange import ReceivedSource, all_classes
from anymix.models import reserved, write_taught
from anymix.sources import (
    N_FOLDS,
    PROBABILITY_FLOOR,
    Arrays,
    Blocks,
    FitResult,
    GeneralistRecord,
    LearningSettings,
    Query,
    Source,
    learn,
)

# Seconds: a site that has not answered by then is taken for dead.
PATIENCE = 600.0
HELLO = Query("count", {}, {"folds": np.array(1)})
# Sums of many rows may miss a bound by rounding.
SLACK = 1e-9
# What no rows give: of sources without rows at a site, and of theorems that were not asked for.
MAY_BE_INFINITE = {
    "count": {"lightest"},
    "evidence": {"least", "largest"},
    "theorems": {"lowest", "largest", "floor", "disagreement"},
    "quantiles": {"quantiles"},
}
# What of the settings says how z is learned.
AIMS = ("eta", "objective", "confidence", "calibrate", "consult")
LOSSES = {"evaluate": "losses", "baseline": "own_losses"}
T = TypeVar("T")


class SiteError(InputError):
    """A site that failed, or whose response cannot be used; `where` names it."""


def _fail(site: str, what: str) -> NoReturn:
    raise SiteError(f"site {site!r}", f"{what}; nothing was learned from this round")


class Transport(Protocol):
    """The interface that carries messages to sites: a small adapter for each engine."""

    def nodes(self) -> Sequence[Any]:
        """Return a handle of each connected site; a str is its certified name."""

    def send(
        self, message: bytes, nodes: Sequence[Any], patience: float
    ) -> Mapping[Any, bytes | str]:
        """Send a message to nodes, and return their replies.

        A node that has not replied within `patience` seconds is left out; a str says how it failed.
        """


class Sites:
    """One round of messages for each query, or for the queries of several learners at once.

    `names` are the sites in order; each may take `patience` seconds to reply.
    """

    def __init__(
        self,
        transport: Transport,
        names: Sequence[str],
        journal: Journal | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.transport, self.names, self.patience = transport, list(names), patience
        self.journal = Journal(None, names) if journal is None else journal
        self.rounds: Rounds[Query, list[Arrays]] = Rounds(self._send)
        self.n_rounds, self.seconds = 0, 0.0
        self.left: dict[str, Counts] = {name: {} for name in names}
        # The number of the generalist that sites may consult, and the shapes of what it asks for.
        self.general: int | None = None
        self.shapes: Callable[[Query], dict[str, tuple[int, ...]]] | None = None
        # How many rows each site has said that it has.
        self.rows: dict[str, int] = {}
        # The stacks of z that the last round was about.
        self.last_z: list[Any] = []
        # The site that a node serves; "" before it has said so.
        self._nodes: dict[Any, str] = {}

    def __call__(self, question: Any, parts: Iterable[Any], /) -> list[Arrays]:
        """Query every site about all of its rows; the responses are in the order of the sites."""
        # Few rows take a round as all of them do, and no site answers for few.
        asked = {name: a for name, a in question.arrays.items() if name not in NEVER}
        if self.general is not None and question.name not in (*LINEAR, PREDICT):
            asked[GENERAL] = np.array(self.general)
        query = replace(question, arrays=asked)
        # What is known need not wait for a round.
        found = self._known(query) or self.rounds.ask(query)
        if question.name != "evaluate":
            return found
        return [spread(one, k) for k, one in enumerate(found)]

    def together(self, function: Callable[[Any], T], given: Iterable[Any], /) -> list[T]:
        """Learn several things at once: the queries of all of them are one round."""
        return self.rounds.together([partial(function, one) for one in given])

    def _known(self, query: Query) -> list[Arrays] | None:
        """What sites have responded with in this run, or in one that was resumed."""
        found = self.journal.known.get(key_of(pack(query)))
        # What an earlier run has left on disk is checked as what a site sends.
        for name, response in zip(self.names, found or (), strict=False):
            self._check(query, name, response)
        return found

    def connect(self, first: Sequence[Query] = ()) -> dict[str, int]:
        """Wait until as many nodes as sites are connected, and identify them; return their rows.

        The first queries are sent with it.
        """
        hello = [HELLO, *first]
        self._wait_for_nodes()
        told: dict[str, list[Arrays]] = {}
        for node, reply in self._replies(hello).items():
            name, answers = _read(reply, self._who(node), len(hello))
            if name not in self.names or (isinstance(node, str) and name != node):
                raise SiteError(self._who(node), f"claims to be the unknown site {name!r:.60}")
            if name in told:
                raise SiteError(f"site {name!r}", "is served by two nodes; stop one of them")
            self._nodes[node] = name
            self._take(hello, name, answers)
            told[name] = answers
        self.n_rounds += 1
        new = {}
        for i, query in enumerate(hello):
            # Rows that have changed since an earlier run cannot go on where it stopped.
            if self._known(query) is None:
                new[key_of(pack(query))] = [told[name][i] for name in self.names]
        if new:
            self.journal.add(new)
        return {name: self.rows[name] for name in self.names}

    def _who(self, node: Any) -> str:
        name = node if isinstance(node, str) else self._nodes[node]
        return f"site {name!r}" if name else f"node {node}"

    def _wait_for_nodes(self) -> None:
        end = time.monotonic() + self.patience
        while len(nodes := list(self.transport.nodes())) < len(self.names):
            if time.monotonic() > end:
                raise SiteError(
                    f"{len(nodes)} of {len(self.names)} sites",
                    f"have connected within {self.patience:g} s; start the others",
                )
            time.sleep(0.2)
        if len(nodes) > len(self.names):
            raise SiteError(
                f"{len(nodes)} nodes", f"are connected where {len(self.names)} sites are expected"
            )
        self._nodes = dict.fromkeys(nodes, "")

    def _send(self, questions: list[Query]) -> list[list[Arrays]]:
        """Send one round of what is not known yet; return all responses."""
        keys = [key_of(pack(question)) for question in questions]
        asked = dict(zip(keys, questions, strict=True))
        self.journal.add(dict(zip(asked, self._round(list(asked.values())), strict=True)))
        stacks = [q.arrays["Z"].tolist() for q in asked.values() if "Z" in q.arrays]
        self.last_z = stacks or self.last_z
        return [self.journal.known[key] for key in keys]

    def _round(self, asked: list[Query]) -> list[list[Arrays]]:
        by_site = {}
        for node, reply in self._replies(asked).items():
            name = self._nodes[node]
            said, by_site[name] = _read(reply, f"site {name!r}", len(asked))
            if said != name:
                raise SiteError(f"site {name!r}", f"now says that it is {said!r:.60}")
            self._take(asked, name, by_site[name])
        self.n_rounds += 1
        found = [[by_site[name][i] for name in self.names] for i in range(len(asked))]
        for query, responses in zip(asked, found, strict=True):
            self._check_alike(query, responses)
        return found

    def _check_alike(self, query: Query, responses: list[Arrays]) -> None:
        """Raise `SiteError` for a response of other arrays than most sites have sent."""
        forms = [frozenset((name, a.shape) for name, a in one.items()) for one in responses]
        ((usual, _),) = Counter(forms).most_common(1)
        for name, form in zip(self.names, forms, strict=True):
            if form != usual:
                other = self.names[forms.index(usual)]
                what = f"arrays of other names or shapes than {other!r}"
                _fail(name, f"sent {what} when it was asked for {query.name}")

    def _take(self, asked: list[Query], name: str, answers: list[Arrays]) -> None:
        """Record what has left the site, then check it."""
        add_counts(self.left[name], asked, answers)
        for question, answer in zip(asked, answers, strict=True):
            self._check(question, name, answer)

    def _replies(self, asked: list[Query]) -> Mapping[Any, bytes | str]:
        """Send the queries to all nodes, and wait for all of them."""
        began = time.monotonic()
        found = self.transport.send(dump_queries(asked), list(self._nodes), self.patience)
        self.seconds += time.monotonic() - began
        for node in self._nodes:
            if node not in found:
                raise SiteError(
                    self._who(node),
                    f"has not answered within {self.patience:g} s; start it again, then resume",
                )
        return found

    def _check(self, question: Query, site: str, answer: Arrays) -> None:
        """Raise `SiteError` for a response that cannot be."""
        may = MAY_BE_INFINITE.get(question.name, set())
        for name, array in answer.items():
            if np.isnan(array).any() or (name not in may and not np.isfinite(array).all()):
                _fail(
                    site, f"sent {name} that are not finite when it was asked for {question.name}"
                )
        if self.shapes is not None and question.name in (*LINEAR, PREDICT):
            _check_shapes(site, answer, self.shapes(question))
        if question.name == "count":
            self._check_rows(site, answer)
        if question.name == "evaluate":
            _check_sums(question, site, answer)
        if question.name in LOSSES:
            losses = answer[LOSSES[question.name]]
            least, largest = np.min(losses), np.max(losses)
            low, high = bounds(get_loss(question.options["loss"]))
            if least < low - SLACK:
                _fail(site, f"sent a loss of {least:.3g}, below the least one, {low:.3g}")
            if largest > high * (1 + SLACK):
                _fail(site, f"sent a loss of {largest:.3g}, above the largest one, {high:.3g}")

    def _check_rows(self, site: str, answer: Arrays) -> None:
        """A site's rows are all of its own source, and as many as they were."""
        rows = answer["rows"].sum(axis=0) if "rows" in answer else np.zeros(0)
        if rows.shape != (len(self.names),):
            _fail(site, f"counts rows of {rows.size} sources where there are {len(self.names)}")
        n, own = int(rows.sum()), int(rows[self.names.index(site)])
        if n != own or n < 1:
            _fail(site, f"says that it has {n} rows, {own} of its own source")
        if self.rows.setdefault(site, n) != n:
            _fail(site, f"has {n} rows where it had {self.rows[site]} before")


def _check_sums(question: Query, site: str, answer: Arrays) -> None:
    s, p = question.arrays["Z"].shape
    expected = {"losses": (s,), "slopes": (s, p)}
    if "multipliers" in question.arrays:
        expected["hessians"] = (s, p, p)
    _check_shapes(site, answer, expected)


def _check_shapes(site: str, answer: Arrays, expected: Mapping[str, tuple[int, ...]]) -> None:
    if set(answer) != set(expected):
        _fail(site, f"sent {', '.join(sorted(answer))} where {', '.join(expected)} are expected")
    for name, shape in expected.items():
        if answer[name].shape != shape:
            _fail(site, f"sent {name} of shape {answer[name].shape} where {shape} is expected")


def _read(reply: bytes | str, who: str, n: int) -> tuple[str, list[Arrays]]:
    """Return the name of a site and its responses."""
    if isinstance(reply, str):
        why = one_line(reply)[:300].rstrip(".")
        raise SiteError(who, f"failed: {why}; fix it there, then resume")
    try:
        return load_reply(reply, n)
    except Refusal as refusal:
        raise SiteError(who, f"refuses to answer: {refusal}") from refusal
    except (InputError, AuditError, ValueError, TypeError) as error:
        raise SiteError(who, f"sent what cannot be read: {str(error).rstrip('.')}") from error


def bounds(loss: Loss) -> tuple[float, float]:
    """The least and the largest loss that a mean over rows can have."""
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    if loss.takes == "vector":
        return float(loss.value(one, one)[0]), float(loss.value(one, other)[0])
    if loss.takes == "label":
        h = np.array([1.0, PROBABILITY_FLOOR])
        best, worst = loss.value(h, h)
        return float(best), float(worst)
    right = np.array([1.0, 2.0])
    return (0.0 if not loss.value(right, right).any() else -np.inf), np.inf


@dataclass(frozen=True)
class Settings:
    """The server's settings: folders, the objective of z, time limits."""

    out: str = "model"
    sources: str = "sources"
    objective: str = "regret"
    eta: float = 1e-3
    confidence: float = 0.95
    calibrate: bool = True
    consult: bool = True
    generalist: bool = True
    resume: bool = False
    patience: float = PATIENCE

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Read the configuration of a run; unknown keys are refused."""
        known = cls.__dataclass_fields__
        for name in config:
            if name not in known:
                raise InputError(
                    f"the setting {name!r:.60}", f"is unknown; there are {', '.join(sorted(known))}"
                )
        return cls(**config)

    @property
    def wants_generalist(self) -> bool:
        """Whether there is a generalist: only sources that consult use it."""
        return self.generalist and self.consult

    def goal(self, task: str, names: tuple[str, ...]) -> LearningSettings:
        """The learning settings for a task."""
        aims = {name: getattr(self, name) for name in AIMS}
        return LearningSettings(loss=TASK_LOSSES[task], names=names, **aims)


def federate(
    transport: Transport,
    expected: Mapping[str, str],
    settings: Settings,
    say: Callable[[str], None],
) -> tuple[FitResult, Sites]:
    """Learn from sites that keep their rows, and write the model folder; a journal resumes."""
    received = read_expected(settings.sources, expected)
    goal = settings.goal(received[0].manifest.task, tuple(expected))
    journal = Journal(f"{settings.out}.rounds", list(expected))
    if settings.resume:
        say(f"resumes after {journal.resume()} rounds that were answered")
    else:
        journal.clear()
    sites = Sites(transport, list(expected), journal, settings.patience)
    with reserved(settings.out) as place:
        try:
            columns = columns_of(received) if settings.wants_generalist else None
            result, generalist, rows = _learn(sites, received, goal, columns, say)
        except SiteError as error:
            journal.note({"z": sites.last_z, "why": str(error)})
            raise
        except (ArithmeticError, LookupError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            # Numbers that pass every check, and that no rows give, end in one of these.
            cause = one_line(f"cannot be of real rows ({type(error).__name__}: {error})")
            journal.note({"z": sites.last_z, "why": cause})
            raise SiteError("the responses of the sites", cause) from error
        say(what_left(sites))
        left = {
            "rounds": sites.n_rounds,
            "seconds": round(sites.seconds, 3),
            "rows": rows,
            "left": sites.left,
        }
        write_taught(place, received, goal, result, left, generalist)
    journal.clear()
    return result, sites


def _learn(
    sites: Sites,
    received: Sequence[ReceivedSource],
    goal: LearningSettings,
    columns: Columns | None,
    say: Callable[[str], None],
) -> tuple[FitResult, Source | None, dict[str, int]]:
    """Learn the generalist, if there are columns for it, and everything else; count the rows."""
    first = first_queries(goal, len(sites.names))
    rows = sites.connect(() if columns else first)
    say(", ".join(f"{name} has {n} rows" for name, n in rows.items()))
    generalist = None
    if columns is not None:
        generalist, record = _generalist(sites, received, columns)
        sites.together(lambda query: sites(query, sites.names), [HELLO, *first])
    tables = Blocks(sites.names, map=sites, together=sites.together, ahead=True)
    result = learn(tables, goal)
    if generalist is not None and result.evidence is not None:
        result = replace(result, evidence=replace(result.evidence, generalist=record))
    return result, generalist, rows


def _generalist(
    sites: Sites, received: Sequence[ReceivedSource], columns: Columns
) -> tuple[Source, GeneralistRecord]:
    """Learn the predictor of all rows that sources may consult."""
    classes, d = all_classes(received), len(received[0].manifest.features)
    c = 0 if classes is None else len(classes)
    sites.shapes = partial(
        expected_shapes, columns=columns, n_features=d, outputs=c if c > 2 else 1
    )
    model, sites.general, record = learn_generalist(sites, sites.names, columns, received)
    return model, record


def first_queries(goal: LearningSettings, p: int) -> list[Query]:
    """The first queries of learning, which depend on no response: see `Blocks` and `learn`."""
    count = {"folds": np.array(N_FOLDS), "spread": np.zeros(p, dtype=bool)}
    check = Query("check", {"loss": goal.loss, "rule": goal.rule})
    floors = [
        Query("floor", {}, {"aside": np.zeros(p, dtype=bool), **count, "without": np.array(t)})
        for t in range(N_FOLDS)
    ]
    return [Query("count", {}, count), check, *(floors if goal.calibrate else ())]


def what_left(sites: Sites) -> str:
    """Return a table of the numbers sent by each site, in Markdown."""
    verbs = sorted({verb for left in sites.left.values() for verb in left})
    lines = [f"| site | {' | '.join(verbs)} | all |", "|---" * (len(verbs) + 2) + "|"]
    for name, left in sites.left.items():
        cells = [str(left.get(verb, (0, 0))[1]) for verb in verbs]
        lines.append(f"| {name} | {' | '.join(cells)} | {total(left)} |")
    return "\n".join([f"numbers that left each site in {sites.n_rounds} rounds:", "", *lines])
