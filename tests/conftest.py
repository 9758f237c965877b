"""How many examples hypothesis tries (`make test` asks for few), and the command as a function."""

from types import SimpleNamespace

import pytest
from hypothesis import settings

from anymix.cli import main

settings.register_profile("quick", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("quick")


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code and what it printed."""

    def call(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return SimpleNamespace(status=status, out=said.out, err=said.err)

    return call
