"""A world of honest organisations, and thousands of things that strangers might hand to it.

Every case is a command on something damaged or made to harm.  `cases` draws them by number, so
that one that fails can be made again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import Source
from anymix.densities import GaussianKDE, GaussianMixtureDensity
from anymix.exchange import pack_source
from tests.cli.odd_tables import ask, odd_tables
from tests.cli.odd_tables import commands as table_commands
from tests.hostile.graphs import hostile_graph
from tests.hostile.records import damaged_model, damaged_site
from tests.hostile.tables import damaged_table

Rng = np.random.Generator
CENTRES = {"north": -2.0, "south": 2.0}


class Case(NamedTuple):
    """What was done, and the command that meets it."""

    kind: str
    arguments: list[str]


def _world(folder: Path, task: str) -> SimpleNamespace:
    """Two organisations with two features: sources, tables, site files, a model with records."""
    rng, sites = np.random.default_rng(0), []
    sources = [str(folder / name) for name in CENTRES]
    for name, centre in CENTRES.items():
        X, y = _draw(centre, 120, task, rng)
        model = (LogisticRegression() if task == "c" else Ridge()).fit(X, y)
        density = GaussianKDE(0.7) if name == "north" else GaussianMixtureDensity(2)
        source = Source(name, model, density.fit(X), feature_names=["a", "b"])
        pack_source(source, folder / name)
        for part in ("", "_new"):
            X, y = _draw(centre, 60, task, rng)
            rows = zip(*X.T.tolist(), y.tolist(), strict=True)
            lines = ["a,b,y", *(",".join(map(str, row)) for row in rows)]
            (folder / f"{name}{part}.csv").write_text("\n".join(lines) + "\n")
    held, new = ([f"{n}={folder / n}{part}.csv" for n in CENTRES] for part in ("", "_new"))
    for name in CENTRES:
        sites.append(str(folder / f"{name}.site"))
        rows = ["--site", name, "--rows", str(folder / f"{name}.csv")]
        assert _run("site", "evaluate", *sources, *rows, "--out", sites[-1]) == 0
    model = str(folder / "model")
    assert _run("fit", *sources, "--held-out", *held, "--out", model) == 0
    assert _run("certify", model, "--held-out", *new, "--save") == 0
    assert (folder / "model" / "certificate.json").exists()
    return SimpleNamespace(sources=sources, held=held, sites=sites, model=model, folder=folder)


def _draw(centre: float, n: int, task: str, rng: Rng) -> tuple[Any, Any]:
    X = rng.normal(centre, size=(n, 2))
    value = X[:, 0] * np.sign(centre) + 0.1 * rng.normal(size=n)
    return X, np.where(value > 2, "yes", "no") if task == "c" else value


def _run(*arguments: str) -> int:
    return ask([*arguments])[0]


class UntrustedFolders:
    """Draws cases; each is made in a folder of its own, which is cleared before the next."""

    def __init__(self, folder: Path):
        self.worlds = [_world(folder / task, task) for task in ("c", "r")]
        self.place = folder / "case"
        self.tables = [table for table in odd_tables() if not table.dear]
        self.kinds: list[Callable[[Any, Rng], Iterator[Case]]] = [
            self._source,
            self._graph,
            self._model,
            self._model,
            self._site,
            self._odd_table,
            self._table,
        ]

    def cases(self, n: int, seed: int = 0) -> Iterator[Case]:
        """Yield n cases."""
        for i in range(n):
            rng = np.random.default_rng([seed, i])
            shutil.rmtree(self.place, ignore_errors=True)
            self.place.mkdir()
            yield from self.kinds[i % len(self.kinds)](self.worlds[i // len(self.kinds) % 2], rng)

    def _source(self, world: Any, rng: Rng) -> Iterator[Case]:
        from tests.exchange.hostile_folders import ATTACKS

        folder = self.place / "north"
        shutil.copytree(world.sources[0], folder)
        attack = ATTACKS[rng.integers(len(ATTACKS))]
        attack(folder, rng)
        yield Case(attack.__name__, self._use(world, folder, rng))

    def _graph(self, world: Any, rng: Rng) -> Iterator[Case]:
        folder = self.place / "north"
        shutil.copytree(world.sources[0], folder)
        yield Case(hostile_graph(folder, rng), self._use(world, folder, rng))

    def _use(self, world: Any, folder: Path, rng: Rng) -> list[str]:
        """Check a source folder, or learn from it."""
        if rng.random() < 0.7:
            return ["source", "check", str(folder)]
        out = str(self.place / "out")
        return ["fit", str(folder), world.sources[1], "--held-out", *world.held, "--out", out]

    def _model(self, world: Any, rng: Rng) -> Iterator[Case]:
        folder = self.place / "model"
        shutil.copytree(world.model, folder)
        kind, table = damaged_model(folder, rng), f"{world.folder}/north.csv"
        uses = [
            ["predict", str(folder), table, "--out", str(self.place / "p.csv"), "--weights"],
            ["certify", str(folder)],
            ["certify", str(folder), "--held-out", *world.held],
            ["compare", str(folder), "--held-out", *world.held],
            ["report", str(folder), "--out", str(self.place / "r.html")],
            ["monitor", str(folder), table],
            ["export", str(folder), str(self.place / "m.onnx")],
            ["fit", *world.sources, "--held-out", *world.held, "--out", str(folder)],
        ]
        yield Case(kind, uses[rng.integers(len(uses))])

    def _site(self, world: Any, rng: Rng) -> Iterator[Case]:
        path = self.place / "north.site"
        shutil.copy(world.sites[0], path)
        kind, out = damaged_site(path, rng), str(self.place / "out")
        sites = ["--from-sites", str(path), world.sites[1]]
        yield Case(kind, ["fit", *world.sources, *sites, "--out", out])

    def _odd_table(self, world: Any, rng: Rng) -> Iterator[Case]:
        table = self.tables[rng.integers(len(self.tables))]
        path = table.make(self.place / "in")
        ways = list(table_commands(world, path, self.place))
        yield Case(f"odd table {table.suffix}", ways[rng.integers(len(ways))])

    def _table(self, world: Any, rng: Rng) -> Iterator[Case]:
        kind, path = damaged_table(Path(world.folder / "north.csv"), self.place, rng)
        ways = list(table_commands(world, path, self.place))
        yield Case(kind, ways[rng.integers(len(ways))])
