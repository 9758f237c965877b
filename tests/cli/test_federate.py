"""anymix federate writes a Flower app from source folders, once."""

import json

import numpy as np

from anymix.cli import main
from anymix.exchange import read_alike
from anymix.models import reserved, write_taught
from anymix.sources import LearningSettings, Tables, learn


def test_it_writes_an_app_and_never_over_another(world, tmp_path, capsys):
    out = tmp_path / "app"
    assert main(["federate", *world.sources, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sites"] == ["north", "south", "west"]
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"pyproject.toml", "README.md", "anymix_sites/client.py"} <= names
    before = (out / "README.md").read_text()
    assert main(["federate", *world.sources, "--out", str(out)]) == 3
    assert "exists already; choose another name" in capsys.readouterr().err
    assert (out / "README.md").read_text() == before
    (out / "README.md").write_text("old")
    assert main(["federate", *world.sources, "--out", str(out), "--force"]) == 0
    assert (out / "README.md").read_text() == before
    (out / "mine.txt").write_text("mine")
    assert main(["federate", *world.sources, "--out", str(out), "--force"]) == 3
    assert "is not such an app; choose another name" in capsys.readouterr().err
    assert (out / "mine.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app"]


def test_what_cannot_be_is_said_in_a_sentence(world, tmp_path, capsys):
    out = str(tmp_path / "app")
    assert main(["federate", *world.sources, "--out", out, "--superlink", "nowhere"]) == 3
    assert "is none; write it as 127.0.0.1:8000" in capsys.readouterr().err
    assert main(["federate", world.sources[0], "--out", out]) == 3
    assert "needs no combination" in capsys.readouterr().err
    assert not (tmp_path / "app").exists()


def test_a_model_of_sites_says_that_its_rows_are_not_there(world, tmp_path, capsys):
    goal, rng = LearningSettings(loss="cross_entropy"), np.random.default_rng(0)
    said = rng.dirichlet(np.ones(2), size=(3, 60))
    tables = Tables(rng.normal(size=(3, 60)), said, classes=np.arange(2))
    tables = tables.labelled(rng.integers(2, size=60), np.arange(60) % 3)
    found = learn(tables, goal)
    with reserved(tmp_path / "model") as place:
        write_taught(place, read_alike(world.sources), goal, found, {"rounds": 1})
    model = str(tmp_path / "model")
    capsys.readouterr()
    for words in (["report", model, "--out", str(tmp_path / "r.html")], ["certify", model]):
        assert main(words) == 3
        assert "stayed at their sites" in capsys.readouterr().err
    assert main(["certify", model, "--held-out", *world.test]) == 0
    assert main(["compare", model, "--held-out", *world.test]) == 0
