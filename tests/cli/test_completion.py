"""Completion: what is offered is what the parsers take, in a bash that really runs."""

import shutil
import subprocess

import pytest

from anymix.cli import COMMANDS, build_parser, main

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    import io
    from contextlib import redirect_stdout

    place = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        with redirect_stdout(io.StringIO()) as script:
            assert main(["completion", shell]) == 0
        (place / shell).write_text(script.getvalue())
    return place


@pytest.fixture
def complete(scripts, tmp_path):
    """Return what bash offers for the last of the words."""

    def call(*words):
        line = (
            f"source {scripts / 'bash'}; complete -p anymix >/dev/null || exit 1; "
            'COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _shtab_anymix anymix "${!#}"; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", line, "bash", "anymix", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
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
    offered = complete(*command.split(), "--")
    assert set(offered) == {o for a in actions for o in a.option_strings if o.startswith("--")}
    for action in actions:
        if action.choices:
            assert complete(*command.split(), action.option_strings[-1], "") == list(action.choices)


def test_files_and_choices(complete, tmp_path):
    (tmp_path / "rows.csv").touch()
    (tmp_path / "model").mkdir()
    assert {"model", "rows.csv"} <= set(complete("predict", ""))
    assert complete("predict", "model", "ro") == ["rows.csv"]
    assert complete("predict", "model", "t.csv", "--out", "ro") == ["rows.csv"]
    assert complete("fit", "--engine", "c") == ["chunks"]
    assert complete("completion", "") == list(SHELLS)


def test_the_command_prints_them(run):
    assert run("completion", "tcsh").status == 2
    assert run("completion", "bash", "--quiet").out == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_knows_every_option(scripts, shell):
    text = (scripts / shell).read_text()
    for command in COMMANDS:
        for action in build_parser(command)._actions:
            flag = (action.option_strings or [""])[-1]
            assert (f"-l {flag[2:]}" if shell == "fish" and flag else flag) in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", scripts / shell], check=True)
