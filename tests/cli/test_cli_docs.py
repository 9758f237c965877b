"""docs/cli.md: the help is current, every command has an example, and the examples run."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from anymix.cli import COMMANDS, main
from tools.cli_docs import PAGE, render

TEXT = PAGE.read_text(encoding="utf-8")
LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if "anymix " in line
]
# Lines with pipes need a shell.
PIPED = [line for line in LINES if re.search("[|>]", line)]
EXAMPLES = [shlex.split(line)[1:] for line in LINES if line not in PIPED]


def test_the_help_is_current():
    assert render(TEXT) == TEXT, "run python tools/cli_docs.py"


def test_every_command_has_an_example():
    examples = [*EXAMPLES, *(shlex.split(line.partition("anymix ")[2]) for line in PIPED)]
    shown = {" ".join(words[:2]) for words in examples} | {words[0] for words in examples}
    assert set(COMMANDS) <= shown


def test_a_page_without_a_command_is_refused():
    with pytest.raises(ValueError, match="no help block for"):
        render(TEXT.replace("<!-- help: fit -->", ""))


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL).group(1), {})
    # The page's demo is run in test_demo.py, as it takes longest.
    for words in (words for words in EXAMPLES if words[0] != "demo"):
        assert main(words) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "on every mixture of the 2 sources the expected loss is at most" in said
    assert "% north" in said
    for name in ("predictions.csv", "robust.onnx", "model/model.json", "report.html"):
        assert (tmp_path / name).exists()
    assert (tmp_path / "by_visit.tsv").read_text().startswith("visit\tlabel\t")
    _run_lines_with_pipes(tmp_path, capsys)


def _run_lines_with_pipes(home, capsys):
    """Run them in a shell to which `anymix` is the command of this Python.

    What begins with `anymix` runs here, and the shell is given what it prints.
    """
    (home / ".config/fish/completions").mkdir(parents=True)
    for line in PIPED:
        command, script = f'anymix() {{ {sys.executable} -m anymix "$@"; }}', None
        if line.startswith("anymix "):
            assert main(shlex.split(line.partition(">")[0])[1:]) == 0
            command, script = "anymix() { cat; }", capsys.readouterr().out
        done = subprocess.run(
            ["bash", "-c", f"{command}; set -o pipefail; {line}"],
            input=script,
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert (done.returncode, done.stderr) == (0, ""), (line, done.stderr)
        assert done.stdout.startswith("visit,label,p(no)") or ">" in line
    assert "complete -c anymix" in (home / ".config/fish/completions/anymix.fish").read_text()


@pytest.mark.parametrize("command", ["anymix", *COMMANDS])
def test_help_is_printed(command, capsys):
    words = [] if command == "anymix" else command.split()
    if words:
        with pytest.raises(SystemExit) as stop:
            main([*words, "--help"])
        assert stop.value.code == 0
    else:
        assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: anymix")


def test_what_the_report_shows_was_saved_before():
    """In the page's story and in the demo, so that the report tells of rows that are new to z."""
    from anymix.cli.demo_command import commands

    for story in (EXAMPLES, list(commands())):
        for words in story:
            if words[0] in ("certify", "compare"):
                assert "--save" in words


def test_the_readme_packs_what_it_fits():
    page = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    block = page.split("## Without a line of Python")[1].split("```sh\n")[1].split("```")[0]
    story = [shlex.split(line)[1:] for line in block.splitlines()]
    packed = [words[2] for words in story if words[:2] == ["source", "pack"]]
    (fit,) = [words for words in story if words[0] == "fit"]
    assert fit[1 : fit.index("--held-out")] == packed
    # what z is learned from is not what it is judged on
    (certify,) = [words for words in story if words[0] == "certify"]
    assert not {w for w in fit if "=" in w} & {w for w in certify if "=" in w}
