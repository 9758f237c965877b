"""Tutorials by command: tables are drawn, commands run in order, and say what the page shows.

Tutorials in Python are doctests.
"""

import doctest
import re
import shlex

import pytest

from anymix.cli import main
from tests.house.source_tree import ROOT

FOLDER = ROOT / "docs" / "tutorials"
BY_COMMAND = [path.name for path in FOLDER.glob("*.md") if "```sh" in path.read_text("utf-8")]
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    text = (FOLDER / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run(lines, capsys):
    """Run commands, and return what they print."""
    capsys.readouterr()
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "anymix"
        assert main(words) == 0, f"{line}\n{capsys.readouterr().err}"
    return capsys.readouterr().out


@pytest.mark.parametrize("page", BY_COMMAND)
def test_the_commands_say_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = ""
    for kind, text in blocks(page):
        if kind == "python":
            exec(text, {})
        elif kind == "sh":
            said = run(text.splitlines(), capsys)
        else:
            assert doctest.OutputChecker().check_output(text, said, SAME), f"{text}\n{said}"


def test_every_tutorial_runs_and_is_listed():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.md"):
        if path.name != "README.md":
            assert f"({path.name})" in index
            assert path.name in BY_COMMAND or ">>> " in path.read_text(encoding="utf-8")
            assert "## What next" in path.read_text(encoding="utf-8")
