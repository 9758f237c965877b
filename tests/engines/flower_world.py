"""Three sites with rows of their own, the folders of all sources, and a grid in this process."""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from anymix import Source, Tables
from anymix.cli import main
from anymix.cli.federate_command import read_rows
from anymix.densities import GaussianKDE
from anymix.exchange import evaluate_site, pack_source, read_alike
from tests.cli.organisations import NAMES, draw, label, write_csv
from tests.experiments.real_data import DATA


@dataclass(frozen=True)
class World:
    folder: Path
    names: tuple[str, ...]
    expected: dict[str, str]

    def node(self, name: str, **changed) -> dict:
        """The configuration that a SuperNode would be started with."""
        rows, sources = str(self.folder / f"{name}.csv"), str(self.folder / "sources")
        return {"site": name, "rows": rows, "sources": sources, **changed}

    def nodes(self, **changed) -> list[dict]:
        return [self.node(name, **changed) for name in self.names]

    def tables(self) -> Tables:
        """What a learner would see that has the rows of all sites."""
        received = read_alike([self.folder / "sources" / name for name in self.names])
        sites = [
            evaluate_site(received, name, *read_rows(self.node(name)["rows"], received, "y"))
            for name in self.names
        ]
        return Tables.concatenate([site.whole for site in sites])

    def rows(self):
        """The rows of all sites."""
        received = read_alike([self.folder / "sources" / name for name in self.names])
        parts = [read_rows(self.node(name)["rows"], received, "y") for name in self.names]
        n = [len(X) for X, _ in parts]
        return *map(np.concatenate, zip(*parts, strict=True)), np.repeat(np.arange(len(n)), n)


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
    logging.getLogger("flwr").setLevel(logging.ERROR)
