"""anymix export: float32, folders of MLflow's kind, model cards; nothing is written over."""

import json
import platform
import re

import pytest
import yaml

from anymix.exchange import MLFLOW_FILES, describe_graph
from anymix.models import summarise_folder
from anymix.report.markup import unit_of

# What MLflow 3.17.2 writes of an ONNX model by itself; `make test-mlflow` asks the library.
FLAVOURS = {
    "onnx": {"code", "data", "onnx_session_options", "onnx_version", "providers"},
    "python_function": {"data", "env", "loader_module", "python_version"},
}
FIELDS = {"flavors", "model_size_bytes", "model_uuid", "saved_input_example_info", "signature"}


def test_float32_is_said_and_written(world, run, tmp_path):
    said = run("export", world.model, tmp_path / "r.onnx", "--float32")
    assert said.status == 0, said.err
    assert re.search(r"input X, float32; at most \de-0\d from float64 at 768 rows", said.out)
    assert describe_graph(tmp_path / "r.onnx")["dtype"] == "float32"
    said = run("export", world.model, tmp_path / "s.onnx", "--float32", "--json")
    assert json.loads(said.out)["difference"]["n_rows"] == 768


def test_rows_are_compared_where_they_are_given(world, run, tmp_path):
    rows = ["--rows", world.test[0].split("=")[1]]
    said = run("export", world.model, tmp_path / "r.onnx", "--float32", *rows)
    assert (said.status, "from float64 at 100 rows" in said.out) == (0, True), said.err
    said = run("export", world.model, tmp_path / "s.onnx", *rows)
    assert (said.status, "--rows is only for --float32" in said.err) == (2, True)


def test_export_needs_something_to_write(world, run):
    said = run("export", world.model)
    assert (said.status, "the name of an ONNX FILE, or --mlflow, --card" in said.err) == (2, True)


@pytest.mark.parametrize("which", ["world", "numbers"])
def test_the_folder_of_mlflow_has_the_fields_that_mlflow_writes(which, run, tmp_path, request):
    made = request.getfixturevalue(which)
    said = run("export", made.model, "--mlflow", tmp_path / "served")
    assert said.status == 0, said.err
    folder = tmp_path / "served"
    assert {path.name for path in folder.iterdir()} == {*MLFLOW_FILES}
    found = yaml.safe_load((folder / "MLmodel").read_text())
    assert set(found) == FIELDS | {"metadata", "utc_time_created"}
    assert {name: set(part) for name, part in found["flavors"].items()} == FLAVOURS
    assert found["flavors"]["python_function"]["loader_module"] == "mlflow.onnx"
    assert found["flavors"]["python_function"]["python_version"] == platform.python_version()
    given = json.loads(found["signature"]["inputs"])
    assert given == [{"type": "double", "name": name, "required": True} for name in "ab"]
    gives = [one["name"] for one in json.loads(found["signature"]["outputs"])]
    first = ["label", "p(no)", "p(yes)"] if which == "world" else ["prediction"]
    assert gives == [*first, "weight(north)", "weight(south)", "weight(west)"]
    example = json.loads((folder / "input_example.json").read_text())
    assert (example["columns"], len(example["data"][0])) == (["a", "b"], 2)
    served = json.loads((folder / "serving_input_example.json").read_text())
    assert served == {"dataframe_split": example}
    assert "onnxruntime==" in (folder / "requirements.txt").read_text()
    for name in ("conda.yaml", "python_env.yaml"):
        assert "dependencies" in yaml.safe_load((folder / name).read_text())
    told = found["metadata"]
    assert told["anymix.certificate"] == describe_graph(folder / "model.onnx")["certificate"]


def test_folders_are_replaced_by_force_and_only_ours(world, run, tmp_path):
    words = ["export", world.model, "--mlflow", tmp_path / "served"]
    assert run(*words).status == 0
    before = (tmp_path / "served/MLmodel").read_text()
    said = run(*words)
    assert (said.status, "or replace it with --force" in said.err) == (3, True)
    assert run(*words, "--force").status == 0
    assert (tmp_path / "served/MLmodel").read_text() != before
    (tmp_path / "served/notes.txt").write_text("mine")
    said = run(*words, "--force")
    assert (said.status, "is not an MLflow folder" in said.err) == (3, True)
    assert (tmp_path / "served/notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


def test_a_folder_is_not_written_into_the_model_nor_through_a_link(world, run, tmp_path):
    said = run("export", world.model, "--mlflow", f"{world.model}/served")
    assert (said.status, "is read by this command" in said.err) == (3, True)
    assert run("export", world.model, "--mlflow", tmp_path / "served").status == 0
    (tmp_path / "link").symlink_to(tmp_path / "served")
    said = run("export", world.model, "--mlflow", tmp_path / "link", "--force")
    assert (said.status, "is not an MLflow folder" in said.err) == (3, True)


def card_of(made, run, place):
    said = run("export", made.model, "--card", place / "CARD.md")
    assert said.status == 0, said.err
    return (place / "CARD.md").read_text()


def rows_below(card, title):
    """Return the cells of the table in a part of the card."""
    part = card.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return lines[0], lines[2:]


@pytest.mark.parametrize("which", ["world", "numbers"])
def test_numbers_of_the_card_are_those_of_the_records(which, run, tmp_path, request):
    made = request.getfixturevalue(which)
    card, record = card_of(made, run, tmp_path), summarise_folder(made.model)
    comparison = record["comparison"]
    unit = unit_of(comparison["measure"])
    digits = unit.digits([value for row in comparison["loss"] for value in row])
    head, rows = rows_below(card, "Compared with the others")
    assert head == [unit.head, *comparison["mixtures"], "worst"]
    for a, cells in enumerate(rows):
        assert cells[0].strip("*") == comparison["methods"][a]
        values = [*comparison["loss"][a], comparison["worst"][a]]
        assert cells[1:] == [unit.text(value, digits) for value in values]
    assert len(rows) == len(comparison["methods"])
    _, rows = rows_below(card, "Sources")
    assert [row[0] for row in rows] == record["sources"]
    assert [int(row[2]) for row in rows] == record["rows"]
    assert [float(row[3]) for row in rows] == pytest.approx(record["z"], abs=5e-5)
    assert f"> {record['certificate']['sentence']}" in card
    front = yaml.safe_load(card.split("---\n")[1])
    ours = comparison["loss"][comparison["methods"].index("anymix")]
    results = front["model-index"][0]["results"]
    assert [one["metrics"][0]["value"] for one in results] == ours
    assert front["pipeline_tag"].startswith("tabular-")


def test_cards_are_replaced_by_force_alone(world, run, tmp_path):
    card_of(world, run, tmp_path)
    path = tmp_path / "CARD.md"
    assert run("export", world.model, "--card", path).status == 3
    assert run("export", world.model, "--card", path, "--force").status == 0


def test_a_certificate_of_new_rows_has_its_day_on_the_card(numbers, run, tmp_path):
    import shutil

    shutil.copytree(numbers.model, tmp_path / "model")
    said = run("certify", tmp_path / "model", "--held-out", *numbers.test, "--save")
    assert said.status == 0, said.err
    day = json.loads((tmp_path / "model/certificate.json").read_text())["date"]
    assert run("export", tmp_path / "model", "--card", tmp_path / "c.md").status == 0
    card = (tmp_path / "c.md").read_text()
    assert f"Recorded on new rows: certificate on {day}." in card
    assert f"As recorded in the folder on {day}" in card
