"""How many examples hypothesis tries (`make test` asks for few), and the command as a function."""

import signal
from types import SimpleNamespace

import pytest
from hypothesis import settings

from anymix.cli import main

settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("quick")


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, also if the parent process ignores SIGINT, as nohup does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command and return its exit code and what it printed.

    No line tells of progress, however slow the machine is, unless a test asks for one.
    """
    monkeypatch.setattr("anymix.cli.console.QUIET_SECONDS", 3600.0)

    def call(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return SimpleNamespace(status=status, out=said.out, err=said.err)

    return call
