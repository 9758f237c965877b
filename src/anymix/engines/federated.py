"""The server's side: connect, learn by rounds, write the model and what left each site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from anymix.engines.checks import Checks
from anymix.engines.journal import Journal
from anymix.engines.ledger import total
from anymix.engines.site import read_expected
from anymix.engines.sites import PATIENCE, SiteError, Sites
from anymix.exceptions import InputError
from anymix.models import reserved, write_taught
from anymix.sources import Blocks, Learned, LearningSettings, learn

# The loss of each task, as everywhere where sources come in folders.
LOSSES = {"regression": "squared", "classification": "cross_entropy"}


@dataclass(frozen=True)
class Settings:
    """What the server is told: where things are, what z is to achieve, how long to wait."""

    out: str = "model"
    sources: str = "sources"
    objective: str = "regret"
    eta: float = 1e-3
    confidence: float = 0.95
    calibrate: bool = True
    consult: bool = True
    resume: bool = False
    patience: float = PATIENCE

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Read the configuration of a run; what is not known is refused.

        >>> Settings.of({"objektive": "gamma"})
        Traceback (most recent call last):
        ...
        anymix.exceptions.InputError: the setting 'objektive' is unknown; there are calibrate,
        confidence, consult, eta, objective, out, patience, resume, sources.
        """
        known = cls.__dataclass_fields__
        for name in config:
            if name not in known:
                raise InputError(
                    f"the setting {name!r:.60}", f"is unknown; there are {', '.join(sorted(known))}"
                )
        return cls(**config)

    def goal(self, task: str, names: tuple[str, ...]) -> LearningSettings:
        """What is learned of sources of a task."""
        return LearningSettings(
            loss=LOSSES[task],
            eta=self.eta,
            objective=self.objective,
            confidence=self.confidence,
            calibrate=self.calibrate,
            consult=self.consult,
            names=names,
        )


class Federated(NamedTuple):
    """What sites have taught, and the sites, as they were asked."""

    taught: Learned
    sites: Sites


def federate(
    grid: Any, expected: Mapping[str, str], settings: Settings, say: Callable[[str], None]
) -> Federated:
    """Learn from the sites of a grid, and write the model folder.

    What was answered is kept beside it until it is written, so that a fit which was broken off can
    resume; sites are asked nothing twice.
    """
    received = read_expected(settings.sources, expected)
    goal = settings.goal(received[0].manifest.task, tuple(expected))
    journal = Journal(f"{settings.out}.rounds", list(expected))
    if settings.resume:
        say(f"resumes after {journal.resume()} rounds that were answered")
    else:
        journal.clear()
    checks = Checks(list(expected))
    sites = Sites(grid, list(expected), checks, journal, settings.patience)
    with reserved(settings.out) as place:
        try:
            rows = sites.connect()
            say(", ".join(f"{name} has {n} rows" for name, n in rows.items()))
            tables = Blocks(sites.names, map=sites, together=sites.together)
            taught = learn(tables, goal)
        except SiteError as error:
            journal.note({"z": sites.last_z(), "why": str(error)})
            raise
        say(what_left(sites))
        told = {"rounds": sites.n_rounds, "rows": rows, "left": sites.left}
        write_taught(place, received, goal, taught, told)
    journal.clear()
    return Federated(taught, sites)


def what_left(sites: Sites) -> str:
    """Say what left each site, as a table in Markdown."""
    verbs = sorted({verb for left in sites.left.values() for verb in left})
    lines = [f"| site | {' | '.join(verbs)} | all |", "|---" * (len(verbs) + 2) + "|"]
    for name, left in sites.left.items():
        cells = [str(left.get(verb, (0, 0))[1]) for verb in verbs]
        lines.append(f"| {name} | {' | '.join(cells)} | {total(left)} |")
    return "\n".join([f"numbers that left each site in {sites.n_rounds} rounds:", "", *lines])
