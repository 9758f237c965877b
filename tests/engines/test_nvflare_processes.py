"""A provisioned NVFlare server and three sites, processes on loopback with mutual TLS.

`make test-nvflare` runs it in its own environment: NVFlare and Flower need different protobufs.
"""

import json
import logging
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from anymix import load
from anymix.cli import main
from anymix.engines.federation import Settings, federate
from tests.engines.federated_world import InProcessSites, build
from tests.engines.processes import BIN, Processes, free_port, wait_for

pytest.importorskip("nvflare", reason='sites need NVFlare: pip install "anymix[nvflare]"')
pytestmark = pytest.mark.slow
PATIENCE = 180.0
ADMIN = "admin@anymix.org"


class Consortium:
    """A world of sites, a job, and a start-up kit for everybody."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world = folder, build(folder / "world", "regression", 40)
        self.sources = [str(self.world.folder / "sources" / name) for name in self.world.names]
        self.out, self.job = folder / "model", folder / "job"
        address = f"localhost:{free_port()}"
        words = ["--engine", "nvflare", "--quiet"]
        given = [*self.sources, "--out", str(self.job), "--address", address, *words]
        assert main(["federate", *given]) == 0
        (folder / "home").mkdir()
        self.run = Processes(folder / "home", HOME=str(folder / "home"))
        self.flare("provision", "-p", str(self.job / "project.yml"), "-w", str(folder / "w"))
        (self.kits,) = (folder / "w" / "anymix").glob("prod_*")
        for name in self.world.names:
            rows = str(self.world.folder / f"{name}.csv")
            assert main(["federate", *self.sources, *self.kit(name), "--rows", rows]) == 0
        server = [*self.kit("localhost"), "--model", str(self.out)]
        assert main(["federate", *self.sources, *server]) == 0

    def kit(self, name: str) -> list[str]:
        return ["--engine", "nvflare", "--quiet", "--kit", str(self.kits / name)]

    def flare(self, *words: str) -> str:
        """Run a command of NVFlare to its end."""
        given = {"env": self.run.env, "capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run(
            [str(BIN / "nvflare"), *words], stdin=subprocess.DEVNULL, check=False, **given
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self) -> None:
        for name in ("localhost", *self.world.names):
            self.run.start(name, "bash", str(self.kits / name / "startup" / "sub_start.sh"))
        log = self.kits / "localhost" / "log.txt"
        self.wait(lambda: log.exists() and "Total clients: 3" in log.read_text())

    def submit(self, **changed) -> None:
        """Submit the job, with other settings if need be."""
        path = self.job / "job" / "app" / "config" / "config_fed_server.json"
        config = json.loads(path.read_text())
        config["components"][0]["args"]["settings"].update(changed)
        path.write_text(json.dumps(config))
        kit = str(self.kits / ADMIN)
        self.flare("job", "submit", "-j", str(self.job / "job"), "--startup-kit", kit)

    def log(self) -> str:
        """What the server's jobs have logged."""
        paths = (self.kits / "localhost").glob("*-*-*/log.txt")
        return "\n".join(path.read_text(errors="replace") for path in paths)

    def wait(self, there) -> None:
        wait_for(there, PATIENCE, self.folder)


@pytest.fixture
def consortium(tmp_path):
    made = Consortium(tmp_path)
    try:
        made.start()
        yield made
    finally:
        assert made.run.end() == []


def test_three_sites_give_the_result_of_rows_in_one_place(consortium):
    beside = consortium.folder / "model.sites.json"
    consortium.submit()
    consortium.wait(beside.exists)
    found, world = json.loads(beside.read_text()), consortium.world
    said = f"{found['rounds']} rounds in {found['seconds']} s: {found['left']}"
    logging.getLogger(__name__).warning(said)
    local = in_process(consortium)
    np.testing.assert_allclose(found["z"], local.combination.z, atol=1e-8)
    assert found["sentence"] == local.evidence.certificate.sentence
    assert load(consortium.out).generalist_ is not None
    np.testing.assert_allclose(load(consortium.out).z_, found["z"], atol=1e-12)
    for name in world.names:
        path = world.folder / f"{name}.csv.anymix" / "left.json"
        (account,) = json.loads(path.read_text()).values()
        assert account["left"] == found["left"][name]


def test_sites_that_refuse_or_stop_are_named_and_the_fit_resumes(consortium):
    own = consortium.kits / "south" / "local" / "anymix.json"
    config = json.loads(own.read_text())
    own.write_text(json.dumps(config | {"min-rows": 500}))
    consortium.submit(patience=20.0)
    consortium.wait(lambda: "site 'south' refuses to answer: its table" in consortium.log())
    assert "40" not in consortium.log().split("refuses to answer")[1].splitlines()[0]
    log = (consortium.world.folder / "south.csv.anymix" / "refusals.log").read_text()
    assert "40 rows at 'south' are too few" in log
    own.write_text(json.dumps(config))

    # The process of the site stops as soon as it has answered once.
    consortium.submit()
    stopped = end_after_a_round(consortium, signal.SIGSTOP)
    consortium.wait(lambda: "site 'south' has not answered within 20 s" in consortium.log())
    assert not consortium.out.exists()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    time.sleep(5)
    consortium.submit(resume=True)
    beside = consortium.folder / "model.sites.json"
    consortium.wait(beside.exists)
    local = in_process(consortium)
    found = json.loads(beside.read_text())
    np.testing.assert_allclose(found["z"], local.combination.z, atol=1e-8)


def test_a_site_that_dies_or_sends_of_other_rows_is_named(consortium):
    consortium.submit(patience=20.0)
    end_after_a_round(consortium, signal.SIGKILL)
    consortium.wait(lambda: "site 'south' " in consortium.log())
    assert not consortium.out.exists()

    # It comes back with rows that it did not have before.
    table = consortium.world.folder / "south.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, *lines[1:11]]) + "\n")
    kit = consortium.kits / "south"
    # NVFlare does not start a site again whose processes were killed, as long as this is there.
    (kit / "daemon_pid.fl").unlink()
    consortium.run.start("south", "bash", str(kit / "startup" / "sub_start.sh"))
    time.sleep(5)
    consortium.submit(resume=True)
    consortium.wait(lambda: "site 'south' has 40 rows where it had 50" in consortium.log())
    assert not consortium.out.exists()


def end_after_a_round(consortium: Consortium, how: signal.Signals) -> list[int]:
    """Send a signal to the processes of the site south as soon as it has answered once."""
    account = consortium.world.folder / "south.csv.anymix" / "left.json"

    def answered():
        runs = json.loads(account.read_text()).values() if account.exists() else []
        return any(run["rounds"] for run in runs)

    wait_for(answered, PATIENCE, consortium.folder, 0.01)
    ended = processes_of(consortium.run, str(consortium.kits / "south"))
    for pid in ended:
        os.kill(pid, how)
    return ended


def in_process(consortium: Consortium):
    """What the same sites give without NVFlare."""
    world, folder = consortium.world, consortium.folder
    nodes = [world.node(name, state=str(folder / "states" / name)) for name in world.names]
    sites = InProcessSites(world.expected, nodes)
    settings = Settings(str(folder / "other"), str(world.folder / "sources"))
    return federate(sites, world.expected, settings, lambda text: None)[0]


def processes_of(run: Processes, kit: str) -> list[int]:
    """Processes of a site: those whose command line has its kit."""
    found = []
    for pid in run.left():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if kit.encode() in line else []
    return found
