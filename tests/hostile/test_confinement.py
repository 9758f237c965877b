"""The limited process as an attacker would use it who runs code there: every way out is closed.

Each attempt is made in a process that has given up what the limited process gives up, and says
what the kernel answered.  In 0.3.0 those marked succeeded.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anymix.sandbox import confinement, limited_process

ATTEMPTS = """
import ctypes, json, mmap, os, signal, socket, struct, sys
victim, here, outside = os.getppid(), sys.argv[1], sys.argv[2]
held = open(os.path.join(here, "open.txt"), "w")
secret = ctypes.create_string_buffer(64)
libc = ctypes.CDLL(None, use_errno=True)
from anymix.sandbox import worker
from anymix.sandbox.confinement import confine
layers = confine()
worker._give_up()
def peek():
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    mine, theirs = Part(ctypes.addressof(secret), 64), Part(int(outside), 64)
    if libc.process_vm_readv(victim, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
def fork():
    if os.fork() == 0:
        os._exit(0)
def at(name):
    return os.path.join(here, name)
attempts = {
    "unlink": lambda: os.unlink(at("a.txt")),
    "rename": lambda: os.rename(at("b.txt"), at("c.txt")),
    "truncate": lambda: os.truncate(at("d.txt"), 0),
    "symlink": lambda: os.symlink("/etc/passwd", at("link")),
    "mkdir": lambda: os.mkdir(at("made")),
    "chmod": lambda: os.chmod(at("d.txt"), 0o777),
    "read a file": lambda: os.read(os.open("/etc/passwd", os.O_RDONLY), 10),
    "list a folder": lambda: os.listdir("/"),
    "socket": lambda: socket.socket(),
    "signal the parent": lambda: os.kill(victim, signal.SIGURG),
    "fork": fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "ptrace": lambda: call(101, 16, victim, 0, 0),
    "read the memory of the parent": peek,
    "executable memory": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
    "io_uring": lambda: call(425, 8, ctypes.create_string_buffer(120)),
    "limits of the parent": lambda: __import__("resource").prlimit(victim, 9, (1, 1)),
}
said = {}
for name, attempt in attempts.items():
    try:
        attempt()
        said[name] = "WORKS"
    except (OSError, PermissionError) as error:
        said[name] = f"refused ({error.errno})"
sys.stdout.write(json.dumps([layers, said]))
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def attempted(tmp_path_factory):
    import ctypes

    here = tmp_path_factory.mktemp("here")
    for name in "abcd":
        (here / f"{name}.txt").write_text("whole")
    memory = ctypes.create_string_buffer(b"a secret of the parent", 64)
    words = [sys.executable, "-c", ATTEMPTS, str(here), str(ctypes.addressof(memory))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    layers, said = json.loads(done.stdout)
    return layers, said, here


def test_an_attacker_in_the_limited_process_has_no_way_out(attempted):
    layers, said, here = attempted
    if "seccomp" not in layers:
        pytest.skip(confinement.missing_layers(layers))
    assert {name for name, answer in said.items() if answer == "WORKS"} == set()
    assert all((here / f"{name}.txt").read_text() == "whole" for name in "abd")


def test_the_limited_process_says_which_layers_hold():
    answer, _ = limited_process().ask({"do": "tell layers"})
    assert set(answer["layers"]) <= set(confinement.LAYERS)
    if sys.platform == "linux" and Path("/proc/sys/kernel/seccomp").exists():
        assert "seccomp" in answer["layers"]


def run_filter(code, number, machine, arguments=(0,) * 6):
    """What the filter answers to a system call: a small interpreter of classic BPF."""
    import struct

    data = struct.pack("=iIQ6Q", number, machine, 0, *arguments)
    steps = [struct.unpack("=HBBI", code[i : i + 8]) for i in range(0, len(code), 8)]
    value = at = 0
    while True:
        operation, yes, no, k = steps[at]
        at += 1
        if operation == confinement.LOAD:
            value = struct.unpack_from("=I", data, k)[0]
        elif operation == confinement.RETURN:
            return k
        else:
            hit = value == k if operation == confinement.IF_EQUAL else bool(value & k)
            at += yes if hit else no


@pytest.mark.parametrize("machine", sorted(confinement.MACHINES))
def test_the_filter_allows_what_is_listed_and_nothing_else(machine):
    audit, _, allowed = confinement.MACHINES[machine]
    code = confinement._filter(audit, allowed)
    assert len(code) // 8 < 4096
    conditional = {"mmap", "mprotect", "prlimit64"}
    for number in range(600):
        listed = number in {n for name, n in allowed.items() if name not in conditional}
        answer = run_filter(code, number, audit)
        if number in {allowed[name] for name in conditional}:
            continue
        assert answer == (confinement.ALLOW if listed else confinement.EPERM_INSTEAD), number
    for name in ("mmap", "mprotect"):
        for right, due in ((3, confinement.ALLOW), (5, confinement.EPERM_INSTEAD)):
            given = (0, 0, right, 0, 0, 0)
            assert run_filter(code, allowed[name], audit, given) == due
    for who, due in ((0, confinement.ALLOW), (1, confinement.EPERM_INSTEAD)):
        given = (who, 0, 0, 0, 0, 0)
        assert run_filter(code, allowed["prlimit64"], audit, given) == due
    # Calls of the 32-bit kind of the same machine, and of another machine.
    assert run_filter(code, 0x40000000 + allowed["read"], audit) == confinement.EPERM_INSTEAD
    assert run_filter(code, allowed["read"], 0x40000003) == confinement.KILL


def test_predictions_are_the_same_in_confinement():
    from sklearn.linear_model import Ridge

    import anymix
    from anymix.densities import GaussianKDE
    from anymix.exchange import pack_source, read_source

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = Ridge().fit(X, X[:, 0])
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        pack_source(anymix.Source("a", model, GaussianKDE(0.5).fit(X)), place + "/a")
        received = read_source(place + "/a")
        rows = rng.normal(size=(20_000, 3))
        np.testing.assert_allclose(received.predict(rows), model.predict(rows), atol=1e-5)
