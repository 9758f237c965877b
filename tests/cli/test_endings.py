"""How a command ends: a code for each kind of failure, one visible line, and no traceback."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from anymix.cli import COMMANDS, exit_codes, main
from anymix.cli.exit_codes import sentence_of
from anymix.exceptions import AuditError, InputError, UsageError

PYTHON = [sys.executable, "-m", "anymix"]


def fails_with(monkeypatch, error):
    def add_arguments(parser):
        raise error

    monkeypatch.setattr("anymix.cli.certify_command.add_arguments", add_arguments)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("what?"), 2, "what?"),
        (InputError("t.csv", "is odd"), 3, "t.csv is odd."),
        (ValueError("no"), 3, "no."),
        (FileNotFoundError(2, "No such file or directory", "t.csv"), 3, "t.csv does not exist."),
        (IsADirectoryError(21, "Is a directory", "t"), 3, "t is a folder; give a file"),
        (OSError(28, "No space left on device", "t"), 3, "the disk is full; free some space."),
        (OSError(99, "Strange", "t"), 3, "t: strange."),
        (OSError("odd"), 3, "odd."),
        (ImportError("no onnx; install it"), 3, "no onnx; install it."),
        (MemoryError(), 3, "not enough memory;"),
        (MemoryError("8 TiB"), 3, "not enough memory (8 TiB);"),
        (AuditError("north", "lies"), 4, "north lies."),
        (TypeError("odd"), 5, "this is a bug in anymix: TypeError: odd; set ANYMIX_DEBUG=1"),
        (RecursionError("deep"), 5, "RecursionError: deep"),
        (KeyError("k\x1b"), 5, r"KeyError: 'k\x1b'"),
        (Exception("two\nlines\x1b[2J"), 5, r"Exception: two lines\x1b[2J"),
        (KeyboardInterrupt(), 130, "stopped."),
    ],
)
def test_every_failure_is_a_line_and_a_code(monkeypatch, run, error, code, words):
    fails_with(monkeypatch, error)
    said = run("certify", "m")
    assert said.status == code
    assert words in said.err
    assert said.err.startswith("anymix: ")
    assert said.err.count("\n") == 1
    assert said.err[:-1].isprintable()
    assert said.out == ""


def test_debugging_shows_where(monkeypatch, run):
    fails_with(monkeypatch, TypeError("odd\x1b"))
    monkeypatch.setenv("ANYMIX_DEBUG", "1")
    said = run("certify", "m")
    assert said.status == 5
    assert "Traceback" in said.err
    assert "in add_arguments" in said.err
    assert "\x1b" not in said.err
    monkeypatch.setenv("ANYMIX_DEBUG", "0")
    assert "Traceback" not in run("certify", "m").err


def test_the_help_names_the_codes(run):
    said = run("--help").out
    assert set(exit_codes.MEANINGS) == {0, 1, 2, 3, 4, 5, 130, 143}
    for code, meaning in exit_codes.MEANINGS.items():
        assert f"  {code:<17} {meaning}\n" in said


def test_names_of_files_cannot_write_to_the_terminal(run, tmp_path):
    name = os.fsdecode(b"a\x1b[2J\nanymix: all is well\xff\xe2\x80\xae.csv")
    said = run("predict", tmp_path / name, "t.csv", "--out", "p.csv")
    assert said.status == 3
    assert r"a\x1b[2J\nanymix: all is well\udcff\u202e.csv does not exist" in said.err
    assert said.err.count("\n") == 1
    assert said.err[:-1].isprintable()


def test_names_of_folders_cannot_forge_a_verdict(world, run, tmp_path):
    link = tmp_path / "a\x1b[2J\nevil: sound (evil)"
    link.symlink_to(world.sources[0])
    said = run("source", "check", link)
    assert said.status == 0
    assert r"a\x1b[2J\nevil: sound (evil): sound (north)" in said.out
    assert said.out.count("\n") == 1


def test_warnings_are_one_line_and_for_users(monkeypatch, run):
    def add_arguments(parser):
        warnings.simplefilter("always")
        warnings.warn("lbfgs failed:\nsee https://a.b\nor /usr/lib", stacklevel=1)
        warnings.warn("clear\x1b[2J", stacklevel=1)
        warnings.warn("for programmers", FutureWarning, stacklevel=1)
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        raise UsageError("enough.")

    monkeypatch.setattr("anymix.cli.certify_command.add_arguments", add_arguments)
    said = run("certify", "m").err.splitlines()
    assert said == [
        "anymix: warning: lbfgs failed",
        r"anymix: warning: clear\x1b[2J",
        "anymix: enough.",
    ]


def shell(command, **options):
    return subprocess.run(
        ["bash", "-c", command.replace("ANYMIX", " ".join(PYTHON))],
        capture_output=True, text=True, timeout=120, **options,
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="needs bash")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("ANYMIX --help | head -1; exit ${PIPESTATUS[0]}", 0),
        ("ANYMIX completion --help >&-", 3),
        ("ANYMIX --version >&- 2>&-", 3),
        ("ANYMIX dance 2>&-", 2),
        ("ANYMIX dance 0>&- 1>&- 2>&-", 2),
        ("ANYMIX --help > /dev/full", 3),
        ("ANYMIX dance 2> /dev/full", 2),
        ("PYTHONIOENCODING=ascii ANYMIX dänce", 2),
        ("(sleep 0.5; ANYMIX --help) | true; exit ${PIPESTATUS[0]}", 3),
    ],
)
def test_closed_streams(command, code):
    said = shell(command)
    assert said.returncode == code, said.stderr
    assert "Traceback" not in said.stderr
    assert "Exception ignored" not in said.stderr
    assert said.stderr.count("\n") <= 1


def test_a_closed_output_is_no_place_for_others(tmp_path):
    """What is printed to a closed standard output must not get into a file that was opened."""
    code = (
        "import os; from anymix.cli import main; main(['--version']); "
        "f = open('t.txt', 'w'); os.write(1, b'noise'); f.write('mine'); f.close()"
    )
    shell(f'{sys.executable} -c "{code}" >&-', cwd=tmp_path)
    assert (tmp_path / "t.txt").read_text() == "mine"


def test_json_is_whole_or_not_there(world, run, tmp_path):
    said = run("source", "check", world.sources[0], "--json")
    assert json.loads(said.out)["folders"][0]["folder"] == world.sources[0]
    assert run("source", "show", tmp_path / "nowhere", "--json").out == ""


@pytest.mark.parametrize("number", exit_codes.ENDINGS)
def test_a_signal_ends_tidily(tmp_path, number):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from anymix import cli\n"
        "def wait(word):\n"
        "    try:\n"
        "        Path('ready').touch(); time.sleep(60)\n"
        "    finally:\n"
        "        Path('tidy').touch()\n"
        "cli.check_open = wait\n"
        "sys.exit(cli.main(['certify', 'm']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    while not (tmp_path / "ready").exists() and time.monotonic() < end:
        time.sleep(0.05)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 143
    assert said == "anymix: stopped.\n"
    assert (tmp_path / "tidy").exists()


def test_what_nohup_has_arranged_stands():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with exit_codes.ending_tidily():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_check_tells_what_is_unsafe_from_what_cannot_be_read(world, run, tmp_path, monkeypatch):
    missing, bad = tmp_path / "nope", tmp_path / "bad"
    bad.mkdir()
    assert run("source", "check", missing).status == 3
    assert run("source", "check", world.sources[0], missing, bad).status == 4

    def denied(*_):
        raise PermissionError(13, "Permission denied", "north/manifest.json")

    monkeypatch.setattr("anymix.cli.source_command.read_sources", denied)
    said = run("source", "check", world.sources[0])
    assert said.status == 3
    assert "north/manifest.json may not be read or written; change its permissions" in said.err


def test_a_sentence_ends_as_one():
    assert sentence_of(ValueError("")) == "ValueError."
    assert sentence_of(ValueError("is it?")) == "is it?"


def test_each_noun_and_verb_without_arguments_is_usage():
    for command in COMMANDS:
        if command != "demo":
            assert main(command.split()) == 2


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device that never ends")
def test_a_predictor_that_never_ends(world, run, tmp_path):
    rows = world.test[0].split("=")[1]
    pack = ["--name", "n", "--rows", rows, "--task", "classification", "--classes", "no", "yes"]
    said = run("source", "pack", tmp_path / "s", *pack, "--onnx", "/dev/zero")
    assert said.status == 4
    assert "/dev/zero is not a plain file" in said.err


def test_a_bound_beyond_all_numbers(world, run):
    said = run("certify", world.model, "--held-out", *world.test, "--loss-bound", "1e300")
    assert said.status == 2
    assert "above 0 and below 1e100" in said.err


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_names_that_are_no_utf8_are_written(world, run, tmp_path, suffix):
    rows, out = world.test[0].split("=")[1], tmp_path / (os.fsdecode(b"p\xff") + suffix)
    said = run("predict", world.model, rows, "--out", out)
    assert said.status == 0, said.err
    assert "wrote" in said.out
    assert r"p\udcff" in said.out
    assert out.exists()
