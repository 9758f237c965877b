"""kill -9 during `anymix fit` and `anymix predict`: outputs are old or new, never half of one.

    python -m benchmarks.kills [50]

Two kinds of strikes: at random moments of a run, and just before each call that touches the disk
(so that every gap between two of them is tried).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TOUCHES = ("replace", "rename", "unlink", "chmod", "write_bytes", "write_text")


def victim(arguments: list[str], strike_at: int) -> None:
    """Run a command, and die before the strike_at-th call that touches the disk."""
    from anymix.cli import main

    left = [strike_at]

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    if strike_at > 0:
        for name in TOUCHES:
            setattr(Path, name, deadly(getattr(Path, name)))
        os.fsync, shutil.rmtree = deadly(os.fsync), deadly(shutil.rmtree)
    os._exit(main(arguments))


def start(arguments: list[str], strike_at: int = 0) -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["anymix.cli.fit", "anymix.cli.predict"])
    process = context.Process(target=victim, args=(arguments, strike_at))
    process.start()
    return process


def strike_before(arguments: list[str], call: int) -> bool:
    """Kill before a call; False if the run ended before it."""
    process = start(arguments, call)
    process.join(120)
    return bool(process.exitcode == -signal.SIGKILL)


def strike_after(arguments: list[str], seconds: float) -> bool:
    process = start(arguments)
    process.join(seconds)
    process.kill()
    process.join()
    return bool(process.exitcode == -signal.SIGKILL)


def check_model(folder: Path) -> str:
    """Read all of a model folder, but run no graph of it, and return its objective."""
    from anymix._files import read_folder
    from anymix.exchange import LIMITS, FileFacts, check_facts, facts_of
    from anymix.models import read_record, summarise_folder

    record = read_record(folder)
    summarise_folder(folder)
    for entry in record["sources"]:
        content = read_folder(folder / "sources" / entry["folder"], LIMITS)
        assert facts_of(content["manifest.json"]).sha256 == entry["sha256"]
        for name, facts in entry["files"].items():
            check_facts(folder / name, content[name], FileFacts(**facts))
    return str(record["settings"]["objective"])


def prepare(folder: Path, n_rows: int) -> tuple[list[str], list[str]]:
    """Make two sources, tables and a model; return the commands to be struck."""
    from sklearn.linear_model import Ridge

    from anymix import Source
    from anymix.cli import main
    from anymix.densities import GaussianKDE
    from anymix.exchange import pack_source

    rng, held = np.random.default_rng(0), []
    for name, centre in (("north", -1.0), ("south", 1.0)):
        X = rng.normal(centre, size=(100, 2))
        model = Ridge().fit(X, X[:, 0] * centre)
        pack_source(Source(name, model, GaussianKDE(0.5).fit(X)), folder / name)
        np.savez(folder / f"{name}.npz", X=rng.normal(centre, size=(60, 2)), y=rng.normal(size=60))
        held.append(f"{name}={folder / name}.npz")
    sources = [str(folder / "north"), str(folder / "south")]
    fit = ["fit", *sources, "--held-out", *held, "--out", str(folder / "model"), "--quiet"]
    assert main(fit) == 0
    np.savez(folder / "rows.npz", X=rng.normal(size=(n_rows, 2)))
    out = str(folder / "out.csv")
    predict = ["predict", str(folder / "model"), str(folder / "rows.npz"), "--out", out]
    predict += ["--quiet", "--chunk-rows", "500"]
    assert main(predict) == 0
    return [*fit, "--objective", "robust"], predict


class Scene:
    """A folder with a good model and good predictions, restored before each strike."""

    def __init__(self, folder: Path, n_rows: int = 20_000):
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.fit, self.predict = prepare(self.work, n_rows)
        self.new = (self.work / "out.csv").read_bytes()
        (self.work / "out.csv").write_bytes(b"old")
        self.good = folder / "good"
        shutil.copytree(self.work, self.good)

    def restore(self) -> None:
        shutil.rmtree(self.work)
        shutil.copytree(self.good, self.work)

    def check(self) -> str:
        """Return which outputs are new; raise if one is neither old nor new."""
        objective = check_model(self.work / "model")
        assert objective in ("regret", "robust")
        content = (self.work / "out.csv").read_bytes()
        return json.dumps([objective == "robust", content != b"old" and self.is_whole(content)])

    def is_whole(self, content: bytes) -> bool:
        """Compare with predictions that were left in peace; threads may move the last digits."""
        found, due = (np.loadtxt(part.decode().splitlines()[1:]) for part in (content, self.new))
        assert content.endswith(b"\n"), "the last line is cut"
        assert found.shape == due.shape, f"{found.shape} rows of {due.shape}"
        np.testing.assert_allclose(found, due, rtol=1e-9)
        return True


def main(n: int = 50) -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder))
        for name in ("fit", "predict"):
            arguments, struck, call = getattr(scene, name), 0, 1
            scene.restore()
            begun = time.perf_counter()
            start(arguments).join()
            whole = time.perf_counter() - begun
            while struck < n // 2:
                scene.restore()
                struck += strike_after(arguments, float(rng.uniform(0, whole)))
                scene.check()
            scene.restore()
            while strike_before(arguments, call):
                scene.check()
                scene.restore()
                call += 1
            print(f"{name}: {struck} kills at random moments, {call - 1} before a call; all whole")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
