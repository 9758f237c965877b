"""A real SuperLink and three SuperNodes, as processes on loopback, run what `federate` wrote."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from anymix import load
from anymix.cli import main
from anymix.engines.federation import Settings
from anymix.sources import learn
from tests.engines.federated_world import build

pytest.importorskip("flwr", reason='sites need Flower: pip install "anymix[flower]"')
pytestmark = pytest.mark.slow
BIN = Path(sys.executable).parent
PATIENCE = 1500.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Processes:
    """Whatever is started here is ended here, grandchildren too: they share the home of Flower."""

    def __init__(self, home: Path) -> None:
        self.home, self.started = home, []
        self.env = os.environ | {
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self, name: str, *words: str) -> None:
        with open(self.home.parent / f"{name}.log", "wb") as log:
            given = {"stdout": log, "stderr": subprocess.STDOUT, "env": self.env}
            self.started.append(subprocess.Popen([str(BIN / words[0]), *words[1:]], **given))

    def left(self) -> list[int]:
        """Processes whose environment names our home, by their ids; not this one."""
        found = []
        mark = f"FLWR_HOME={self.home}".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return [pid for pid in found if pid != os.getpid()]

    def end(self) -> list[int]:
        for stop in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.left():
                try:
                    os.kill(pid, stop)
                except ProcessLookupError:
                    continue
            for process in self.started:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    continue
            time.sleep(1)
        return self.left()


def wait_for(there, seconds: float, logs: Path) -> None:
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            tails = [
                f"{p.name}:\n{p.read_text(errors='replace')[-3000:]}" for p in logs.glob("*.log")
            ]
            pytest.fail("it took too long.\n" + "\n".join(tails))
        time.sleep(1)


def test_three_supernodes_give_the_z_of_the_local_solve(tmp_path):
    world = build(tmp_path / "world", "regression", 40)
    port, app = free_port(), tmp_path / "app"
    address = f"127.0.0.1:{port}"
    folders = [str(world.folder / "sources" / name) for name in world.names]
    assert main(["federate", *folders, "--out", str(app), "--superlink", address, "--quiet"]) == 0
    run = Processes(app / "home")
    out, beside = tmp_path / "model", tmp_path / "model.sites.json"
    config = f'sources="{world.folder / "sources"}" out="{out}" objective="gamma" '
    config += "calibrate=false consult=false"
    try:
        run.start(
            *("superlink", "flower-superlink", "--insecure", "--host", "127.0.0.1"),
            *("--port", str(port), "--disable-runtime-dependency-installation"),
        )
        for name in world.names:
            node = " ".join(f'{key}="{value}"' for key, value in world.node(name).items())
            run.start(
                *(name, "flower-supernode", "--insecure", "--superlink", address),
                *("--port", str(free_port()), "--node-config", node),
            )
        began = time.monotonic()
        wait_for(lambda: _open(port), 120, tmp_path)
        subprocess.run(
            [str(BIN / "flwr"), "run", str(app), "sites", "--run-config", config],
            env=run.env,
            check=True,
            timeout=120,
            capture_output=True,
        )
        wait_for(beside.exists, PATIENCE, app)
        seconds = time.monotonic() - began
    finally:
        assert run.end() == []
    found = json.loads(beside.read_text())
    said = f"{found['rounds']} rounds in {seconds:.0f} s; numbers that left: {found['left']}"
    logging.getLogger(__name__).warning(said)
    goal = Settings(objective="gamma", calibrate=False, consult=False).goal(
        "regression", world.names
    )
    local = learn(world.tables(), goal)
    np.testing.assert_allclose(found["z"], local.combination.z, atol=1e-8)
    assert found["sentence"] == local.evidence.certificate.sentence
    np.testing.assert_allclose(load(out).z_, found["z"], atol=1e-12)
    for name in world.names:
        path = world.folder / f"{name}.csv.anymix" / "left.json"
        (account,) = json.loads(path.read_text()).values()
        assert account["left"] == found["left"][name]
        assert f"site {name}, round 1: " in (app / f"{name}.log").read_text()


def _open(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0
