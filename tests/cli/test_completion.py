"""Completion: what is offered is what the parsers take, in a bash that really runs."""

import re
import shutil
import subprocess

import pytest

from anymix.cli import COMMANDS, build_parser


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    from anymix.cli.completion import SCRIPTS, _described

    folder = tmp_path_factory.mktemp("scripts")
    commands = [_described(command) for command in COMMANDS]
    for shell, write in SCRIPTS.items():
        (folder / shell).write_text(write(commands))
    return folder


@pytest.fixture
def complete(scripts, tmp_path):
    """Return what bash offers for the last of the words."""

    def call(*words):
        line = (
            f"source {scripts / 'bash'}; complete -p anymix >/dev/null || exit 1; "
            'COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _anymix; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", line, "bash", "anymix", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [word for word in done.stdout.splitlines() if word]

    return call


def test_commands_and_verbs(complete):
    assert complete("") == list(dict.fromkeys(command.split()[0] for command in COMMANDS))
    assert complete("f") == ["fit", "federate"]
    assert complete("source", "") == ["pack", "check", "show"]
    assert complete("site", "e") == ["evaluate"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_and_choice(complete, command):
    actions = [a for a in build_parser(command)._actions if a.option_strings]
    assert complete(*command.split(), "-") == [a.option_strings[-1] for a in actions]
    for action in actions:
        if action.choices:
            assert complete(*command.split(), action.option_strings[-1], "") == list(action.choices)


def test_files_words_and_what_follows_an_equals_sign(complete, tmp_path):
    (tmp_path / "my rows.csv").touch()
    (tmp_path / "model").mkdir()
    assert sorted(complete("predict", "")) == ["model", "my rows.csv"]
    assert complete("predict", "model", "my") == ["my rows.csv"]
    assert complete("predict", "model", "t.csv", "--out", "my") == ["my rows.csv"]
    assert complete("fit", "a", "--held-out", "north", "=", "my") == ["my rows.csv"]
    assert complete("fit", "a", "--held-out", "north", "=") != []
    assert complete("fit", "--objective", "=", "ro") == ["robust"]
    assert complete("fit", "--target", "") == []
    assert complete("fit", "--engine", "c") == ["chunks"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]


def test_the_command_prints_them(run, scripts):
    for shell in ("bash", "zsh", "fish"):
        said = run("completion", shell)
        assert (said.status, said.out) == (0, (scripts / shell).read_text())
    assert run("completion", "tcsh").status == 2
    assert run("completion", "bash", "--quiet").out == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_know_every_option(scripts, shell):
    text = (scripts / shell).read_text()
    for command in COMMANDS:
        part = text.split(f'        "{command}")\n')[-1].split(";;")[0]
        if shell == "fish":
            part = "\n".join(re.findall(f"'__anymix_is {command}' -l .*", text))
        for action in build_parser(command)._actions:
            flag = (action.option_strings or [""])[-1]
            assert (flag if shell == "zsh" else f"-l {flag[2:]}") in part or not flag
            if action.choices and flag:
                assert " ".join(action.choices) in part
    if shutil.which(shell):
        subprocess.run([shell, "-n", scripts / shell], check=True)
    else:  # quotes and brackets are those of bash
        subprocess.run(["bash", "-n", scripts / "zsh"], check=True)
