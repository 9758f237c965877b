"""Three sites with rows of their own, the folders of all sources, and a transport in process."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import Source, Tables
from anymix.cli import main
from anymix.densities import GaussianKDE
from anymix.engines.site import respond
from anymix.exchange import evaluate_site, pack_source, read_alike, read_site_rows
from tests.cli.organisations import NAMES, draw, label, write_csv
from tests.experiments.real_data import DATA


@dataclass(frozen=True)
class World:
    folder: Path
    names: tuple[str, ...]
    expected: dict[str, str]

    def node(self, name: str, **changed) -> dict:
        """The site's own configuration."""
        rows, sources = str(self.folder / f"{name}.csv"), str(self.folder / "sources")
        return {"site": name, "rows": rows, "sources": sources, **changed}

    def nodes(self, **changed) -> list[dict]:
        return [self.node(name, **changed) for name in self.names]

    def tables(self) -> Tables:
        """What a learner would see that has the rows of all sites."""
        received = read_alike([self.folder / "sources" / name for name in self.names])
        sites = [
            evaluate_site(received, name, *read_site_rows(self.node(name)["rows"], received, "y"))
            for name in self.names
        ]
        return Tables.concatenate([site.whole for site in sites])

    def rows(self):
        """The rows of all sites."""
        received = read_alike([self.folder / "sources" / name for name in self.names])
        parts = [read_site_rows(self.node(name)["rows"], received, "y") for name in self.names]
        n = [len(X) for X, _ in parts]
        return *map(np.concatenate, zip(*parts, strict=True)), np.repeat(np.arange(len(n)), n)


RUNS = count(1)


@dataclass
class InProcessSites:
    """A transport whose sites respond in this process, as they would anywhere else.

    `change(config, message, reply)` may replace the reply of a site: None is one that never comes.
    """

    expected: Mapping[str, str]
    configs: Sequence[Mapping[str, Any]]
    read_rows: Callable[..., Any] = read_site_rows
    change: Callable[..., bytes | str | None] = lambda config, message, reply: reply
    run: str = field(default_factory=lambda: str(next(RUNS)))
    asked: list[str] = field(default_factory=list)

    def nodes(self):
        return list(range(len(self.configs)))

    def send(self, message, nodes, patience):
        return {n: r for n in nodes if (r := self.respond(n, message)) is not None}

    def respond(self, node, message):
        config = self.configs[node]
        self.asked.append(config.get("site"))
        reply = respond(message, self.run, lambda: config, self.expected, self.read_rows)
        return self.change(config, message, reply)


def build(folder: Path, task: str, n: int = 120) -> World:
    rng = np.random.default_rng(1)
    for name in NAMES:
        X, y = draw(name, 200, rng)
        target = label(y) if task == "classification" else y
        model = LogisticRegression() if task == "classification" else Ridge()
        density = GaussianKDE(0.5).fit(X).shareable()
        source = Source(name, model.fit(X, target), density, feature_names=["a", "b"])
        pack_source(source, folder / "sources" / name)
        X, y = draw(name, n, rng)
        write_csv(folder / f"{name}.csv", X, label(y) if task == "classification" else y)
    return described(folder, NAMES)


def heart(folder: Path) -> World:
    """Four hospitals, gaps filled, columns scaled; half of the rows trains, half stays there."""
    pd = pytest.importorskip("pandas")
    path = DATA / "heart" / "heart_4_hospitals.csv"
    if not path.exists():
        pytest.skip(f"the heart data are not at {path}")
    quiet()
    frame = pd.read_csv(path)
    frame["y"] = (frame.pop("num") > 0).astype(int)
    frame = frame.fillna(frame.median(numeric_only=True)).sample(frac=1.0, random_state=0)
    columns = [name for name in frame if name not in ("hospital", "y")]
    frame[columns] = (frame[columns] - frame[columns].mean()) / frame[columns].std()
    names = sorted(frame["hospital"].unique())
    for name in names:
        rows = frame[frame["hospital"] == name].drop(columns="hospital")
        (folder / "train").mkdir(exist_ok=True)
        train = folder / "train" / f"{name}.csv"
        rows.iloc[::2].to_csv(train, index=False)
        rows.iloc[1::2].to_csv(folder / f"{name}.csv", index=False)
        words = ["--name", name, "--rows", str(train), "--task", "classification", "--quiet"]
        assert main(["source", "pack", *words, str(folder / "sources" / name)]) == 0
    return described(folder, names)


def described(folder: Path, names) -> World:
    received = read_alike([folder / "sources" / name for name in names])
    return World(folder, tuple(names), {one.manifest.name: one.sha256 for one in received})


def quiet() -> None:
    logging.getLogger("anymix").setLevel(logging.CRITICAL)
