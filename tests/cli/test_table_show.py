"""anymix table show, and the options by which a table is read."""

import json

from tests.cli.descriptors import piped_in


def test_a_table_is_shown_before_anything_is_made_of_it(tmp_path, run):
    path = tmp_path / "t.csv"
    path.write_bytes("größe;y\n1,5;ja\n-;nein\n2,5;ja\n".encode("latin-1"))
    said = run("table", "show", path)
    assert said.status == 0
    assert f"note: {path}: detected --sep ';' --decimal ',' --encoding cp1252" in said.err
    assert 'mark missing values with --missing "-"' in said.out
    said = run("table", "show", path, "--missing", "-", "--min-count", "1", "--json", "--quiet")
    assert said.err == ""
    number, label = json.loads(said.out)["columns"]
    assert (number["name"], number["type"], number["maximum"]) == ("größe", "number", 2.5)
    assert label["categories"] == ["ja", "nein"]
    for mark in ("-,unknown", "--"):
        said = run("table", "show", path, "--missing", mark, "--json", "--quiet")
        kind = json.loads(said.out)["columns"][0]["type"]
        assert (said.status, kind) == (0, "number" if mark == "-,unknown" else "refused")
    with piped_in(b"a\n1\n-\n"):
        assert run("table", "show", "-", "--missing", "-").status == 0
    said = run("table", "show", path, "--sep", "::")
    assert (said.status, "must be one character" in said.err) == (3, True)


def test_options_reach_every_table(world, run, tmp_path):
    """A model predicts alike from a table however it is written."""
    with open(world.test[0].split("=")[1]) as file:
        text = file.read()
    due, out = tmp_path / "due.csv", tmp_path / "out.csv"
    assert run("predict", world.model, world.test[0].split("=")[1], "--out", due).status == 0
    table = tmp_path / "t.csv"
    table.write_bytes(text.replace(",", ":").replace(".", ",").encode("utf-16-le"))
    options = ["--sep", ":", "--decimal", ",", "--encoding", "utf-16-le"]
    said = run("predict", world.model, table, "--out", out, *options)
    assert said.status == 0, said
    assert out.read_text() == due.read_text()
    said = run("predict", world.model, table, "--out", out, "--force")
    assert (said.status, "--encoding" in said.err) == (3, True)
