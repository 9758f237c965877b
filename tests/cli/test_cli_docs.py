"""docs/cli.md: the help is current, every command has an example, and the examples run."""

import re
import shlex

import pytest

from anymix.cli import COMMANDS, main
from tools.cli_docs import PAGE, render

TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = [
    shlex.split(line)[1:]
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("anymix ")
]


def test_the_help_is_current():
    assert render(TEXT) == TEXT, "run python tools/cli_docs.py"


def test_every_command_has_an_example():
    shown = {" ".join(words[:2]) for words in EXAMPLES} | {words[0] for words in EXAMPLES}
    assert set(COMMANDS) <= shown


def test_a_page_without_a_command_is_refused():
    with pytest.raises(ValueError, match="no help block for"):
        render(TEXT.replace("<!-- help: fit -->", ""))


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL).group(1), {})
    for words in EXAMPLES:
        assert main(words) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "On any mixture of the 2 sources the loss is at most" in said
    assert "% north" in said
    for name in ("predictions.csv", "robust.onnx", "model/model.json", "story/report.html"):
        assert (tmp_path / name).exists()


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
