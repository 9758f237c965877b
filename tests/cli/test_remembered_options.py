"""anymix.toml remembers options of all commands; those that are typed win."""

import pytest

from anymix.cli import COMMANDS, build_parser
from anymix.cli.remembered_options import KEYS, read_remembered, remembered_words
from tests.cli.mixed_world import NAMES, rows_of, write

WHOLE = """
target = "ill"
task = "classification"
drop = ["note, free", "score"]
reference = "reference.json"
address = "example.org:8002"
groups = "patient"
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    import numpy as np

    rng = np.random.default_rng(0)
    for name in NAMES:
        for part in ("", "_held"):
            write(tmp_path / f"{name}{part}.csv", rows_of(name, 150, rng))
    (tmp_path / "anymix.toml").write_text(
        'target = "ill"\ntask = "classification"\ndrop = ["score"]\nreference = "reference.json"\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_reads_it(site, run):
    """The whole private path with nothing typed that is remembered."""
    for name in NAMES:
        said = run("reference", "summary", f"{name}.csv", "--name", name, "--out", f"{name}.json")
        assert said.status == 0, said.err
        assert said.err == "anymix: note: anymix.toml adds --target ill --drop score\n"
    assert run("reference", "join", "east.json", "west.json", "--out", "reference.json").status == 0
    for name in NAMES:
        said = run("source", "pack", name, "--name", name, "--rows", f"{name}.csv", "--quiet")
        assert said.status == 0, said.err
        assert said.err == ""
    for name in NAMES:
        rows = ["--rows", f"{name}_held.csv", "--out", f"{name}.site"]
        assert run("site", "evaluate", *NAMES, "--site", name, *rows).status == 0
    said = run("fit", *NAMES, "--from-sites", "east.site", "west.site", "--out", "model")
    assert said.status == 0, said.err
    assert run("monitor", "model", "east_held.csv").status == 0
    assert run("federate", *NAMES, "--out", "app").status == 0


def test_what_is_typed_wins(site, run):
    words = ["reference", "summary", "east.csv", "--name", "e", "--out", "e.json"]
    said = run(*words, "--features", "age,ward", "--target=smokes")
    assert said.status == 0, said.err
    assert said.err == ""
    assert run(*words, "--force", "--target", "gone").err.startswith(
        "anymix: note: anymix.toml add"
    )


def test_the_name_is_that_of_the_site():
    for command, option in (("source pack", "--name"), ("site evaluate", "--site")):
        found = remembered_words(command, build_parser(command), [], {"name": "north"})
        assert found == [option, "north"]


def test_lists_and_texts_become_words():
    remembered = {"drop": ["note, free", "score"], "missing": ["-", "k.A."], "sep": ";"}
    parser = build_parser("source pack")
    words = remembered_words("source pack", parser, [], remembered)
    args = parser.parse_args(
        ["out", "--name", "n", "--rows", "t.csv", "--task", "regression", *words]
    )
    assert (args.drop, args.missing, args.sep) == (["note, free", "score"], ["-", "k.A."], ";")


@pytest.mark.parametrize(
    ("command", "words", "key"),
    [
        ("monitor", ["m", "t.csv"], "target"),
        ("monitor", ["m", "t.csv", "--reference", "a=a.csv"], "reference"),
        ("fit", ["a", "--from-sites", "b"], "groups"),
        ("source pack", ["--help"], "target"),
        ("source pack", ["--features", "a"], "drop"),
        ("source pack", ["--text=a"], "drop"),
    ],
)
def test_what_does_not_go_with_the_command_is_left_out(command, words, key):
    found = {"target": "y", "reference": "r.json", "groups": "g", "drop": ["b"]}
    found = {key: found[key]}
    assert remembered_words(command, build_parser(command), words, found) == []


def test_nothing_that_loosens_protection_is_remembered():
    """Every option that could is typed each time; all remembered keys belong to some command."""
    known = set()
    for command in COMMANDS:
        known |= {action.dest for action in build_parser(command)._actions}
    assert set(KEYS) <= known
    assert not set(KEYS) & {"exact", "force", "reveals_rows", "keep_rows", "min_rows", "min_count",
                            "onnx", "estimator", "home"}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("target = ", "is not TOML"),
        ("exact = true", "has the unknown key 'exact'"),
        ('taget = "ill"', "did you mean 'target'."),
        ("[pack]\ntarget = 1", "has the unknown key 'pack'"),
        ("target = []", "must have a text, a number or a list of texts as 'target'"),
        ("target = [[1]]", "must have a text"),
        ("target = 1979-05-27", "must have a text"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(run, tmp_path, monkeypatch, text, cause):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "anymix.toml").write_text(text)
    said = run("fit", "a", "--out", "m")
    assert said.status == 3
    assert cause in said.err
    assert said.err.count("\n") == 1


def test_without_a_file_nothing_is_added(tmp_path):
    assert read_remembered(tmp_path) == {}
