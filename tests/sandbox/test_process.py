"""The limited process: what it cannot do, and that it is there again after each end."""

import copy
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from anymix.exchange.predictor import audit
from anymix.sandbox import LimitedProcess, Refused, limited_process, process
from tests.sandbox import graphs

ROWS = np.random.default_rng(0).normal(size=(50, 2))


@pytest.fixture(scope="module")
def predictor():
    return audit(graphs.linear(), "float32", 2)


def _child():
    return limited_process()._child


def test_it_is_started_again_after_it_died(predictor):
    due = predictor(ROWS)
    _child().kill()
    _child().wait()
    np.testing.assert_array_equal(predictor(ROWS), due)


def test_one_that_is_late_is_killed(monkeypatch, predictor):
    predictor(ROWS)
    monkeypatch.setattr(process, "SECONDS", 0.2)
    child = _child()
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(Refused, match="too much memory or time"):
        limited_process().ask({"do": "ask"})
    assert child.poll() is not None
    monkeypatch.undo()
    predictor(ROWS)


def test_an_interrupted_request_leaves_no_answer_behind(predictor, interruptible):
    """Ctrl-C while the process works: it ends, and the next request gets its own answer."""
    predictor(ROWS)
    os.kill(_child().pid, signal.SIGSTOP)
    killer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    # Were the signal not heeded, the request would be refused as late instead.
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        killer.start()
        predictor(ROWS)
    assert _child() is None
    np.testing.assert_allclose(predictor(ROWS[:3])[:, 0], ROWS[:3].sum(axis=1), atol=1e-6)


def test_copies_pickles_and_threads(predictor, tmp_path):
    due = predictor(ROWS)
    joblib.dump(predictor, tmp_path / "p")
    for again in (copy.deepcopy(predictor), joblib.load(tmp_path / "p")):
        np.testing.assert_array_equal(again(ROWS), due)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(predictor, [ROWS] * 40):
            np.testing.assert_array_equal(found, due)


def test_a_fork_has_a_process_of_its_own(predictor):
    own, due = _child().pid, predictor(ROWS[:4])
    read, write = os.pipe()
    if os.fork() == 0:
        same = np.array_equal(predictor(ROWS[:4]), due) and _child().pid != own
        limited_process().close()
        os.write(write, b"1" if same else b"0")
        os._exit(0)
    os.wait()
    assert os.read(read, 1) == b"1"
    assert _child().pid == own
    np.testing.assert_array_equal(predictor(ROWS[:4]), due)


def test_it_can_open_nothing():
    """As root, too: a file, a socket, a process, a file to write."""
    code = """
import os, socket
from anymix.sandbox import worker
worker._warm_up(); worker._give_up()
def can(act):
    try: act()
    except (OSError, MemoryError): return 0
    return 1
found = [can(lambda: os.open("/etc/passwd", os.O_RDONLY)), can(socket.socket),
         can(lambda: bytearray(2**31)), can(lambda: os.pipe())]
print(found)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[0, 0, 0, 0]"


def test_what_libraries_print_is_no_answer(predictor):
    """Its standard output leads nowhere; answers have a descriptor of their own."""
    links = [os.readlink(f"/proc/{_child().pid}/fd/{n}") for n in (0, 1, 2)]
    assert links == [os.devnull] * 3


def test_it_ends_with_the_process_that_started_it():
    code = """
from anymix.exchange.predictor import audit
from anymix.sandbox import limited_process
from tests.sandbox import graphs
audit(graphs.linear(), "float32", 2)
print(limited_process()._child.pid, flush=True)
import os; os.kill(os.getpid(), 9)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pid, begun = int(said.stdout), time.monotonic()
    while os.path.exists(f"/proc/{pid}") and time.monotonic() - begun < 60:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")


def test_unknown_requests_are_refused():
    own = LimitedProcess()
    with pytest.raises(Refused, match="not understood"):
        own.ask({"do": "nothing"})
    own.close()
