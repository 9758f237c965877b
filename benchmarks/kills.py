"""Strike every command that writes: its outputs are old or new, never half of one, never lost.

    python -m benchmarks.kills [500]

kill -9 at random moments and just before each call that touches the disk (so that every gap between
two of them is tried), SIGTERM, a full disk, a folder that may not be written, a reader that has
gone, and two writers at once.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

# Calls by which anything on the disk changes or comes into being.
TOUCHES = ("open", "link", "replace", "rename", "unlink", "chmod", "mkdir", "rmdir", "fsync")
# The exchange of two folders goes past os: it is struck after the calls before and behind it.
NOBODY = 65534
INPUTS = "*.csv", "*.json", "north/*", "south/*"
OUTPUTS = ("model/*.json", "out/*", *(f"out/{name}/*" for name in ("mlflow", "kept", "app")))
OUTPUTS += ("out/shared/*.json",)
SMALL = 600  # bytes that a file may have on the full disk

Commands = dict[str, list[str]]


def victim(arguments: list[str], log: str, strike_at: int, plight: str) -> None:
    """Run a command in some plight, and die before the strike_at-th call that touches the disk."""
    # With a group of its own, so that what it starts does not outlive it.
    os.setpgid(0, 0)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(said, 2)
    _bring_about(plight)
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
            setattr(os, name, deadly(getattr(os, name)))
    os._exit(main(arguments))


def _bring_about(plight: str) -> None:
    if plight == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))
    if plight == "read-only" and os.getuid() == 0:
        codecs.lookup("cp437")  # of zipfile, which may lie where nobody may read
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if plight == "closed pipe":
        gone, pipe = os.pipe()
        os.close(gone)
        os.dup2(pipe, 1)


class Run:
    """A command that runs in a process of its own, and what it says."""

    def __init__(self, arguments: list[str], strike_at: int = 0, plight: str = ""):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["anymix.cli.fit_command", "anymix.cli.predict_command", "anymix.cli.site_command"]
        )
        self.log = tempfile.NamedTemporaryFile(prefix="said-")  # noqa: SIM115
        os.chmod(self.log.name, 0o666)
        given = (arguments, self.log.name, strike_at, plight)
        self.process = context.Process(target=victim, args=given)
        self.process.start()

    def wait(self, seconds: float = 120.0) -> int | None:
        self.process.join(seconds)
        return self.process.exitcode

    def strike(self, how: signal.Signals = signal.SIGKILL) -> int | None:
        """End it and, with SIGKILL, all that it has started."""
        with suppress(ProcessLookupError):
            if how == signal.SIGKILL:
                os.killpg(int(self.process.pid or 0), how)
            else:
                os.kill(int(self.process.pid or 0), how)
        return self.wait()

    @property
    def said(self) -> str:
        return Path(self.log.name).read_text()


def strike_before(arguments: list[str], call: int) -> bool:
    """Kill before a call; False if the run ended before it."""
    return Run(arguments, call).wait() == -signal.SIGKILL


def strike_after(arguments: list[str], seconds: float) -> bool:
    run = Run(arguments)
    run.wait(seconds)
    return run.strike() == -signal.SIGKILL


def commands(work: Path) -> Commands:
    """Every command that writes; each replaces what an earlier run has made."""
    names = ("north", "south")
    held = ["--held-out", *(f"{name}={work / name}.csv" for name in names)]
    model, sources = str(work / "model"), [str(work / name) for name in names]
    rows, out = str(work / "rows.csv"), str(work / "out")
    summaries = [str(work / f"{name}.json") for name in names]
    here, west = str(work / "north.csv"), ["--name", "west", "--task", "regression"]
    given = ["--onnx", str(work / "north" / "predictor.onnx"), "--density", "mixture"]
    made: Commands = {
        "pack": ["source", "pack", out + "/packed", *west, "--rows", here, *given],
        "fit": ["fit", *sources, *held, "--out", model, "--objective", "robust", "--force"],
        "certify": ["certify", model, *held, "--save"],
        "compare": ["compare", model, *held, "--save"],
        "monitor": ["monitor", model, rows, "--save"],
        "export": ["export", model, out + "/model.onnx", "--force"],
        "mlflow": ["export", model, "--mlflow", out + "/mlflow", "--force"],
        "card": ["export", model, "--card", out + "/card.md", "--force"],
        "report": ["report", model, "--out", out + "/page.html", "--force"],
    }
    kept = ["source", "pack", out + "/kept", "--home", out + "/kept.home", *west, "--rows", here]
    summary = ["--name", "north", "--target", "y", "--out", out + "/north.json", "--force"]
    made |= {
        "repack": [*kept, "--density", "mixture", "--force"],
        "shareable": ["export", model, "--shareable", out + "/shared", "--force"],
        "app": ["federate", *sources, "--out", out + "/app", "--force"],
        "summary": ["reference", "summary", here, *summary],
        "join": ["reference", "join", *summaries, "--out", out + "/reference.json", "--force"],
    }
    site = ["--site", "north", "--rows", here, "--out", out + "/north.site", "--force"]
    made["site"] = ["site", "evaluate", *sources, *site]
    for kind in ("csv", "npz", "parquet"):
        made[f"predict {kind}"] = ["predict", model, rows, "--out", f"{out}/p.{kind}", "--force"]
    return made


def prepare(work: Path, n_rows: int) -> None:
    """Make two sources, tables, a model, and each output once."""
    from sklearn.linear_model import Ridge

    from anymix import Source
    from anymix.cli import main
    from anymix.densities import GaussianKDE
    from anymix.exchange import pack_source

    rng = np.random.default_rng(0)
    for name, centre in (("north", -1.0), ("south", 1.0)):
        X = rng.normal(centre, size=(100, 2))
        predictor = Ridge().fit(X, X[:, 0] * centre)
        source = Source(name, predictor, GaussianKDE(0.5).fit(X), feature_names=["a", "b"])
        pack_source(source, work / name)
        write_csv(work / f"{name}.csv", rng.normal(centre, size=(60, 2)), rng.normal(size=60))
        rows = ["--name", name, "--target", "y", "--out", str(work / f"{name}.json"), "--quiet"]
        assert main(["reference", "summary", str(work / f"{name}.csv"), *rows]) == 0
    write_csv(work / "rows.csv", rng.normal(size=(n_rows, 2)), np.zeros(n_rows))
    (work / "out").mkdir()
    made = commands(work)
    first = [word for word in made["fit"] if word not in ("--objective", "robust")]
    for words in (first, *(words for name, words in made.items() if name not in ("fit", "pack"))):
        assert main([*words, "--quiet"]) in (0, 1), words


def write_csv(path: Path, X: Any, y: Any) -> None:
    np.savetxt(path, np.c_[X, y], delimiter=",", header="a,b,y", comments="")


class Scene:
    """A folder with a good model and good outputs, restored before each strike."""

    def __init__(self, folder: Path, n_rows: int = 4000):
        self.work, self.good, self.n_rows = folder / "work", folder / "good", n_rows
        self.work.mkdir(parents=True)
        prepare(self.work, n_rows)
        self.commands = {name: [*words, "--quiet"] for name, words in commands(self.work).items()}
        self.inputs = self._digests(*INPUTS)
        self.old = self._digests(*OUTPUTS)
        shutil.copytree(self.work, self.good)

    def _digests(self, *patterns: str) -> dict[str, str]:
        files = (path for pattern in patterns for path in sorted(self.work.glob(pattern)))
        return {
            str(path.relative_to(self.work)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
            if path.is_file() and not path.name.startswith(".")
        }

    def restore(self) -> None:
        shutil.rmtree(self.work)
        shutil.copytree(self.good, self.work)

    def left_over(self) -> list[str]:
        names = (str(p.relative_to(self.work)) for p in self.work.rglob(".*"))
        return sorted(names)

    def check(self) -> str:
        """Return which outputs are new; raise if one is lost, half of one, or an input changed."""
        from anymix.exchange import read_home, read_site
        from anymix.models import summarise_folder

        assert self._digests(*INPUTS) == self.inputs, "an input was changed"
        out, now = self.work / "out", self._digests(*OUTPUTS)
        objective = check_model(self.work / "model")
        assert objective in ("regret", "robust")
        # A new model takes the records of the old one with it; nothing else may be missing.
        lost = set(self.old) - set(now)
        assert lost <= {f"model/{name}.json" for name in ("certificate", "comparison", "traffic")}
        summarise_folder(self.work / "model")
        assert np.loadtxt(out / "p.csv", skiprows=1, delimiter=",").shape == (self.n_rows,)
        with zipfile.ZipFile(out / "p.npz") as archive:
            assert archive.testzip() is None
        check_parquet(out / "p.parquet", self.n_rows)
        read_site(out / "north.site")
        check_graph(out / "model.onnx")
        check_graph(out / "mlflow" / "model.onnx")
        assert (out / "mlflow" / "MLmodel").read_text("utf-8").endswith("\n")
        assert (out / "card.md").read_text("utf-8").startswith("---")
        assert (out / "page.html").read_text("utf-8").rstrip().endswith("</html>")
        check_source(out / "kept")
        read_home(out / "kept.home")
        check_model(out / "shared")
        for name, kind in (("reference", "anymix reference"), ("north", "anymix summary")):
            assert json.loads((out / f"{name}.json").read_text("utf-8"))["kind"] == kind
        assert tomllib.loads((out / "app" / "pyproject.toml").read_text("utf-8"))
        if (out / "packed").exists():
            check_source(out / "packed")
        new = {name for name, digest in now.items() if self.old.get(name) != digest}
        return json.dumps([sorted(new), (out / "packed").exists()])


def check_model(folder: Path) -> str:
    """Read all of a model folder, but run no graph of it, and return its objective."""
    from anymix.exchange import facts_of
    from anymix.models import read_record

    record = read_record(folder)
    for entry in record["sources"]:
        content = check_source(folder / "sources" / entry["folder"])
        assert facts_of(content["manifest.json"]).sha256 == entry["sha256"]
    return str(record["settings"]["objective"])


def check_source(folder: Path) -> dict[str, bytes]:
    from anymix.exchange import LIMITS, FileFacts, check_facts
    from anymix.storage import read_folder

    content = read_folder(folder, LIMITS)
    for name, facts in json.loads(content["manifest.json"])["files"].items():
        check_facts(folder / name, content[name], FileFacts(**facts))
    return content


def check_parquet(path: Path, n_rows: int) -> None:
    import pyarrow.parquet as pq

    assert pq.read_table(path).num_rows == n_rows


def check_graph(path: Path) -> None:
    import onnx

    onnx.checker.check_model(onnx.load_model_from_string(path.read_bytes()))


def all_calls(scene: Scene, name: str) -> Iterator[int]:
    """Strike before each call that touches the disk; every fifth time let it run again in peace."""
    call = 1
    while strike_before(scene.commands[name], call):
        scene.check()
        if call % 5 == 0:
            again = Run(scene.commands[name])
            assert again.wait() in (0, 1), f"{name} after a kill: {again.said}"
            scene.check()
        scene.restore()
        yield call
        call += 1
    scene.restore()


def random_moments(scene: Scene, name: str, n: int, rng: np.random.Generator) -> Iterator[bool]:
    """Strike at random moments: two times in three with kill -9, else with SIGTERM."""
    begun = time.perf_counter()
    assert Run(scene.commands[name]).wait() in (0, 1)
    whole = time.perf_counter() - begun
    for i in range(n):
        scene.restore()
        run = Run(scene.commands[name])
        run.wait(float(rng.uniform(0, whole)))
        if i % 3:
            yield run.strike() == -signal.SIGKILL
        else:
            code = run.strike(signal.SIGTERM)
            # Before the command has begun, a signal ends the process as ever.
            assert code in (0, 1, 143, -signal.SIGTERM), (code, run.said)
            assert not scene.left_over(), scene.left_over()
            yield code == 143
        scene.check()
    scene.restore()


def plights(scene: Scene, name: str) -> Counter[str]:
    """A full disk, a folder that may not be written, a reader that has gone: one sentence each."""
    found: Counter[str] = Counter()
    for plight in ("full disk", "read-only", "closed pipe"):
        places = [scene.work / "model", scene.work / "model" / "sources", scene.work / "out"]
        for place in places:
            place.chmod(0o555 if plight == "read-only" else 0o755)
        words = [word for word in scene.commands[name] if word != "--quiet"]
        run = Run(words, plight=plight)
        code = run.wait()
        for place in places:
            place.chmod(0o755)
        assert code == 3, (name, plight, code, run.said)
        shown = run.said.splitlines()
        lines = [line for line in shown if " left" not in line and " so far" not in line]
        assert len(lines) == 1, run.said
        assert lines[0].startswith("anymix: "), run.said
        assert not scene.left_over(), scene.left_over()
        scene.check()
        found[plight] += 1
        scene.restore()
    return found


def two_writers(scene: Scene, pause: float) -> list[int | None]:
    """Two fits into one folder, one held up: the later one is told, or comes after the first."""
    first, second = Run(scene.commands["fit"]), Run(scene.commands["fit"])
    first.wait(pause)
    with suppress(ProcessLookupError):
        os.kill(int(first.process.pid or 0), signal.SIGSTOP)
    second.wait(3.0)
    with suppress(ProcessLookupError):
        os.kill(int(first.process.pid or 0), signal.SIGCONT)
    codes = [first.wait(), second.wait()]
    for run, code in zip((first, second), codes, strict=True):
        assert code == 0 or (code == 3 and "another anymix" in run.said), (codes, run.said)
    assert 0 in codes
    scene.check()
    scene.restore()
    return codes


def main(n: int = 500) -> None:
    """Strike n times or more, all commands alike."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        scene = Scene(Path(folder))
        total, least = 0, -(-n // len(scene.commands))
        for name in scene.commands:
            calls = sum(1 for _ in all_calls(scene, name))
            later = max(least - calls, least // 3)
            moments = sum(random_moments(scene, name, later, rng))
            total += calls + later
            print(f"{name}: {calls} kills before a call, {later} signals at random ({moments} hit)")
            print(f"    {dict(plights(scene, name))}", flush=True)
        codes = Counter(str(two_writers(scene, float(s))) for s in rng.uniform(0.05, 1.5, 10))
        print(f"two writers, 10 times: {dict(codes)}")
        print(f"{total} strikes; every output was old or new, no input was touched")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
