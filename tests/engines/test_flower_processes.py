"""A real SuperLink and three SuperNodes, as processes on loopback, run what `federate` wrote."""

import json
import logging
import subprocess
import time

import numpy as np
import pytest

from anymix import load
from anymix.cli import main
from anymix.engines.federation import Settings
from anymix.sources import learn
from tests.engines.federated_world import build
from tests.engines.processes import BIN, Processes, free_port, is_open, wait_for

pytest.importorskip("flwr", reason='sites need Flower: pip install "anymix[flower]"')
pytestmark = pytest.mark.slow
PATIENCE = 1500.0
OFFLINE = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


def test_three_supernodes_give_the_z_of_the_local_solve(tmp_path):
    world = build(tmp_path / "world", "regression", 40)
    port, app = free_port(), tmp_path / "app"
    address = f"127.0.0.1:{port}"
    folders = [str(world.folder / "sources" / name) for name in world.names]
    assert main(["federate", *folders, "--out", str(app), "--superlink", address, "--quiet"]) == 0
    run = Processes(app / "home", FLWR_HOME=str(app / "home"), **OFFLINE)
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
        wait_for(lambda: is_open(port), 120, tmp_path)
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
    said = f"{found['rounds']} rounds in {found['seconds']} s of {seconds:.0f} s: {found['left']}"
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
