"""The demo: every step is a command, and what it leaves behind is whole."""

import json
from pathlib import Path

import pytest

from anymix.cli import demo_command, main
from anymix.cli.demo_command import NOTE, SITES, commands, make_room
from tests.cli.test_cli_docs import EXAMPLES


def test_the_demo_tells_the_whole_story(tmp_path, monkeypatch, capsys):
    """The very line of docs/cli.md."""
    monkeypatch.chdir(tmp_path)
    (words,) = [words for words in EXAMPLES if words[0] == "demo"]
    folder = tmp_path / words[words.index("--out") + 1]
    assert main([*words, "--json"]) == 0, capsys.readouterr().err
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == str(folder / "report.html")
    assert "Digits from three sites" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "robust.onnx").stat().st_size > 10_000
    assert Path.cwd() == tmp_path
    record = json.loads((folder / "model" / "model.json").read_text(encoding="utf-8"))
    losses = dict(zip(record["comparison"]["methods"], record["comparison"]["worst"], strict=True))
    assert losses["anymix"] < min(loss for name, loss in losses.items() if name != "anymix")
    # the page tells of rows that z has not seen
    shown = json.loads((folder / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert shown["n_candidates"] == 1
    # A second demo clears the sources of the first, which `source pack` would not replace.
    monkeypatch.setattr(demo_command, "commands", lambda again: list(commands(again))[:1])
    assert main(words) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "$ anymix source pack upright" in said
    assert "The demo took" in said
    assert (folder / "upright" / "manifest.json").exists()
    assert not (folder / "mirrored").exists()
    monkeypatch.setattr(demo_command, "commands", lambda _: [["source", "show", "nowhere"]])
    assert main(words) == 3


def test_room_is_made_for_a_second_demo_alone(tmp_path):
    make_room(tmp_path)
    for site in SITES:
        (tmp_path / site).mkdir()
        (tmp_path / site / "manifest.json").write_text("{}")
    (tmp_path / "mine.csv").write_text("mine")
    make_room(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {NOTE, "mine.csv"}


def test_the_demo_touches_nothing_that_it_has_not_made(tmp_path):
    (tmp_path / "upright").mkdir()
    with pytest.raises(ValueError, match="upright exists and is not from a demo") as caught:
        make_room(tmp_path)
    assert str(tmp_path / "upright") in str(caught.value)
    (tmp_path / "upright").rmdir()
    make_room(tmp_path)
    (tmp_path / "upright").mkdir()
    (tmp_path / "upright" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"thesis\.tex is not from a demo"):
        make_room(tmp_path)
    assert (tmp_path / "upright" / "thesis.tex").exists()
    (tmp_path / NOTE).write_text("[]")
    with pytest.raises(ValueError, match="is not from a demo"):
        make_room(tmp_path)


def test_a_second_demo_forces_what_the_first_one_wrote():
    writing = [words for words in commands(True) if words[0] in ("fit", "predict", "export")]
    assert len(writing) == 3
    assert all("--force" in words for words in writing)
    assert not any("--force" in words for words in commands())


def test_what_a_user_changed_or_made_is_not_written_over(tmp_path):
    demo_command.write_tables(tmp_path)
    demo_command.write_tables(tmp_path)
    table = tmp_path / "upright-train.csv"
    table.write_text(table.read_text() + "mine\n")
    with pytest.raises(ValueError, match="has changed since the demo"):
        demo_command.write_tables(tmp_path)
    assert table.read_text().endswith("mine\n")
    other = tmp_path / "source"
    other.mkdir()
    (other / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="is a source or a model"):
        demo_command.make_room(other)
    assert [path.name for path in other.iterdir()] == ["manifest.json"]
