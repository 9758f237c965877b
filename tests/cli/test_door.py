"""At the door: help that tells the defaults, numbers and words that are checked, all verdicts."""

import argparse
import json
import shutil

import pytest

from anymix.cli import COMMANDS, build_parser, main


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described_and_tells_its_default(command):
    parser = build_parser(command)
    said = " ".join(parser.format_help().split())
    assert f"{COMMANDS[command][1:]}." in said, "names such as ONNX keep their capitals"
    for action in parser._actions:
        assert action.help, action.dest
        default = action.default
        if all(default is not value for value in (None, False, argparse.SUPPRESS)):
            assert f"(default: {default})" in said, action.dest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "a", "b", "--out", "m", "--confidence", "95"], "write 95 % as 0.95"),
        (["fit", "a", "b", "--out", "m", "--eta", "2"], "--eta: it must lie strictly between 0"),
        (["fit", "a", "b", "--out", "m", "--eta", "nan"], "--eta: it must lie strictly between"),
        (["certify", "m", "--confidence", "0"], "--confidence: it must lie strictly between"),
        (["certify", "m", "--loss-bound", "-1"], "--loss-bound: it must be a number above 0"),
        (["certify", "m", "--loss-bound", "much"], "it must be a number, but is 'much'"),
        (["compare", "m", "--confidence", "1"], "--confidence: it must lie strictly between"),
        (["monitor", "m", "t.csv", "--level", "5"], "write 5 % as 0.05"),
        (["monitor", "m", "t.csv", "--seed", "-3"], "--seed: it must be a whole number of 0 or"),
        (["predict", "m", "t.csv", "--out", "p", "--chunk-rows", "0"], "whole number of 1 or more"),
        (["fit", "a"], "required: --out; anymix fit --help lists"),
        (["predict", "m", "t.csv", "--ouput", "p"], "no option '--ouput'; did you mean '--out'?"),
        (["source"], "source is followed by pack or check or show"),
        (["source", "dance"], "source is followed by pack or check or show"),
        (["source", "pak"], "such as anymix source pack; did you mean 'pack'?"),
        (["site"], "site is followed by evaluate"),
    ],
)
def test_what_is_refused_at_the_door(run, arguments, words):
    said = run(*arguments)
    assert said.status == 2
    assert words in said.err
    assert said.err.startswith("anymix: ")
    assert said.err.count("\n") == 1


def test_half_a_command_has_help(capsys):
    assert main(["source", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"source {verb}" in said for verb in ("pack", "check", "show"))


@pytest.mark.parametrize(
    "option", [["--confidence", "0.9"], ["--loss-bound", "3"], ["--save"]], ids=lambda o: o[0]
)
def test_options_that_need_new_rows(world, run, option):
    said = run("certify", world.model, *option)
    assert said.status == 2
    assert f"{option[0]} needs new rows; give them with --held-out" in said.err


def test_every_folder_gets_its_verdict(world, run, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(world.sources[1], bad)
    (bad / "predictor.onnx").write_bytes(b"no")
    folders = [tmp_path / "nowhere", world.sources[0], bad, world.sources[2]]
    said = run("source", "check", *folders)
    assert said.status == 4
    assert f"{world.sources[0]}: sound (north)\n{world.sources[2]}: sound (west)\n" == said.out
    first, second = said.err.splitlines()
    assert f"{tmp_path / 'nowhere'} does not exist" in first
    assert "has 2 bytes" in second
    found = json.loads(run("source", "check", *folders, "--json").out)
    assert not found["sound"]
    assert [entry["sound"] for entry in found["folders"]] == [True, True, False, False]
    assert all(("sha256" in entry) == entry["sound"] for entry in found["folders"])
    assert all(("error" in entry) != entry["sound"] for entry in found["folders"])
