"""The demo: every step is a command, and what it leaves behind is whole."""

import json

import pytest

from anymix.cli import main
from anymix.cli.demo import NOTE, SITES, make_room


def test_the_demo_tells_the_whole_story(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == str(tmp_path / "report.html")
    assert "Digits from three sites" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "robust.onnx").stat().st_size > 10_000
    record = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    losses = dict(zip(record["comparison"]["methods"], record["comparison"]["worst"], strict=True))
    assert losses["anymix"] < min(loss for name, loss in losses.items() if name != "anymix")
    # the page tells of rows that z has not seen
    shown = json.loads((tmp_path / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert shown["n_candidates"] == 1
    assert main(["demo", "--out", str(tmp_path), "--quiet"]) == 0, capsys.readouterr().err


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
    with pytest.raises(ValueError, match="upright exists and is not of the demo") as caught:
        make_room(tmp_path)
    assert str(tmp_path / "upright") in str(caught.value)
    (tmp_path / "upright").rmdir()
    make_room(tmp_path)
    (tmp_path / "upright").mkdir()
    (tmp_path / "upright" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"thesis\.tex is not of the demo"):
        make_room(tmp_path)
    assert (tmp_path / "upright" / "thesis.tex").exists()
    (tmp_path / NOTE).write_text("[]")
    with pytest.raises(ValueError, match="is not the demo's note"):
        make_room(tmp_path)
