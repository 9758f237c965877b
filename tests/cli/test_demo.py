"""The demo: every step is a command, and what it leaves behind is whole."""

import json

from anymix.cli import main


def test_the_demo_tells_the_whole_story(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == str(tmp_path / "report.html")
    assert "Digits from three sites" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "robust.onnx").stat().st_size > 10_000
    record = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    losses = dict(zip(record["comparison"]["methods"], record["comparison"]["worst"], strict=True))
    assert losses["anymix"] < min(loss for name, loss in losses.items() if name != "anymix")
