"""fit, predict, certify, compare, monitor: the numbers are those of the formula."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.special import log_softmax, softmax
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.linear_model import LogisticRegression

from anymix.exchange import read_source
from anymix.models import read_model, read_record
from tests.cli.organisations import NAMES, draw, label, write_csv


def read_csv(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_hand(world, X):
    """h_z from the source folders and model.json alone: weights ∝ z q + η/p², q calibrated."""
    with open(f"{world.model}/model.json") as file:
        record = json.load(file)
    sources = [read_source(folder) for folder in world.sources]
    log_r = log_softmax([source.log_density(X) for source in sources], axis=0)
    found = []
    for part in record["combination"]["parts"]:
        scale = part["calibration"]
        q = np.maximum(log_r, scale["floor"]) / np.array(scale["temperature"])[:, None]
        q = softmax(scale["sharpness"] * (q + np.array(scale["offset"])[:, None]), axis=0)
        w = np.array(part["z"])[:, None] * q + part["eta"] / len(sources) ** 2
        found.append((w / w.sum(axis=0), part["consulting"]))
    return found, sources


def pooled(proba, consulting):
    """log h'_k = Σ_j a_kj log h_j, normalised; nobody is below 1e-6."""
    assert not np.any(consulting["offset"])
    logs = np.einsum("kj,jic->kic", consulting["weights"], np.log(proba))
    found = np.maximum(softmax(logs, axis=2), 1e-6)
    found /= found.sum(axis=2, keepdims=True)
    own = (np.array(consulting["weights"]) == np.eye(len(proba))).all(axis=1)
    return np.where(own[:, None, None], proba, found)


def test_predictions_are_those_of_the_formula(world, run, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) * 3
    table = write_csv(tmp_path / "new.csv", X)
    said = run("predict", world.model, table, "--out", tmp_path / "p.csv", "--weights", "--novelty")
    assert said.status == 0
    assert said.out.startswith("predicted 300 rows")
    found = read_csv(tmp_path / "p.csv")
    parts, sources = by_hand(world, X)
    proba = np.array([s.predict_proba(X, np.array(["no", "yes"])) for s in sources])
    said = [(w, pooled(proba, consulting) if consulting else proba) for w, consulting in parts]
    due = np.mean([np.einsum("ki,kic->ic", *one) for one in said], axis=0)
    weights = np.mean([w for w, _ in parts], axis=0)
    np.testing.assert_allclose(np.array(found["p(yes)"], float), due[:, 1], atol=2e-6)
    for k, name in enumerate(NAMES):
        np.testing.assert_allclose(np.array(found[f"weight({name})"], float), weights[k], atol=1e-9)
    assert found["label"] == np.array(["no", "yes"])[due.argmax(axis=1)].tolist()
    novelty = np.array(found["novelty"], float)
    assert ((novelty >= 0) & (novelty <= 1)).all()
    far = np.abs(X).max(axis=1) > 6
    assert far.any()
    assert novelty[far].min() > 0.9


def consulted(h, consulting):
    """Σ_j a_kj h_j + b_k, moved from h_k by no more than at home."""
    if consulting is None:
        return h
    moved = np.array(consulting["weights"]) @ h + np.array(consulting["offset"])[:, None] - h
    reach = np.array(consulting["reach"])[:, None]
    return h + np.clip(moved, -reach, reach)


def test_numbers_of_a_regression(numbers, run, tmp_path):
    X = np.random.default_rng(1).normal(size=(200, 2)) * 3
    np.savez(tmp_path / "new.npz", X=X)
    assert (
        run("predict", numbers.model, tmp_path / "new.npz", "--out", tmp_path / "p.npz").status == 0
    )
    parts, sources = by_hand(numbers, X)
    h = np.array([s.predict(X) for s in sources])
    due = np.mean([(w * consulted(h, consulting)).sum(axis=0) for w, consulting in parts], axis=0)
    with np.load(tmp_path / "p.npz") as found:
        np.testing.assert_allclose(found["prediction"], due, atol=1e-4)


def test_chunks_and_kinds_of_tables_change_nothing(world, run, tmp_path):
    X = np.random.default_rng(2).normal(size=(101, 2))
    table = write_csv(tmp_path / "new.csv", X)
    run("predict", world.model, table, "--out", tmp_path / "whole.csv")
    run("predict", world.model, table, "--out", tmp_path / "p.parquet", "--chunk-rows", 10)
    whole = read_csv(tmp_path / "whole.csv")
    parts = pq.read_table(tmp_path / "p.parquet").to_pydict()
    assert parts["label"] == whole["label"]
    np.testing.assert_allclose(parts["p(no)"], np.array(whole["p(no)"], float), atol=1e-6)


def test_the_record_is_complete(world):
    with open(f"{world.model}/model.json") as file:
        record = json.load(file)
    assert record["kind"] == "anymix model"
    assert [source["name"] for source in record["sources"]] == list(NAMES)
    for key in ("certificate", "solution", "cross_loss", "combination", "comparison", "tables"):
        assert record[key], key
    z = [part["z"] for part in record["combination"]["parts"]]
    assert len(z) == 5
    np.testing.assert_allclose(np.mean(z, axis=0), record["certificate"]["z"], rtol=1e-12)
    assert record["solution"]["trace"]
    own = np.array(record["comparison"]["loss"])
    # the cross table and the comparison tell the same of each source on each domain
    np.testing.assert_allclose(own[:3, :3], record["cross_loss"]["mean"], rtol=1e-9)
    np.testing.assert_allclose(own[-1, :3], record["certificate"]["source_losses"], rtol=1e-9)


def test_certificate_and_comparison_on_new_rows(world, run):
    held = run("certify", world.model)
    assert held.out.startswith(
        "Measured, not guaranteed: on every mixture of the 3 sources the loss"
    )
    said = run("certify", world.model, "--held-out", *world.test, "--json", "--save")
    record = json.loads(said.out)
    assert record["n_candidates"] == 1
    assert record["robust_loss"] == max(record["source_losses"])
    wrong = run(
        *["certify", world.model, "--held-out", *world.test],
        *["--measure", "accuracy", "--json"],
    )
    rates = json.loads(wrong.out)
    assert (rates["loss"], rates["loss_ground"]) == ("error rate", "exact")
    assert rates["robust_loss"] < rates["loss_upper"] < 1
    names = {one["name"] for one in rates["beside"]}
    assert {"chance", "the plain average", "north alone"} <= names
    table = json.loads(run("compare", world.model, "--held-out", *world.test, "--json").out)
    at = table["methods"].index("anymix")
    np.testing.assert_allclose(table["loss"][at][:3], record["source_losses"], rtol=1e-9)
    assert max(table["loss"][at]) < max(table["loss"][table["methods"].index("uniform")])
    with open(f"{world.model}/certificate.json") as file:
        kept = json.load(file)
    digest = hashlib.sha256(Path(world.model, "model.json").read_bytes()).hexdigest()
    assert (kept.pop("model"), len(kept.pop("date"))) == (digest, 10)
    assert kept == record


def test_losses_are_means_over_rows(world, run, tmp_path):
    """An independent value: the loss of `anymix predict` on a test table, averaged by hand."""
    name, path = world.test[0].split("=")
    run("predict", world.model, path, "--out", tmp_path / "p.csv")
    found, truth = read_csv(tmp_path / "p.csv"), read_csv(path)["y"]
    due = -np.mean([np.log(float(found[f"p({y})"][i])) for i, y in enumerate(truth)])
    table = json.loads(run("compare", world.model, "--held-out", *world.test, "--json").out)
    mine = table["loss"][table["methods"].index("anymix")][table["mixtures"].index(name)]
    assert mine == pytest.approx(due, rel=1e-5)


def test_monitor_rings_for_strangers_alone(world, run, tmp_path):
    rng = np.random.default_rng(5)
    X = np.concatenate([draw("north", 150, rng)[0], draw("south", 50, rng)[0]])
    said = run("monitor", world.model, write_csv(tmp_path / "ok.csv", X), "--json")
    assert said.status == 0
    estimate = json.loads(said.out)["estimate"]["mixture"]
    np.testing.assert_allclose(estimate, [0.75, 0.25, 0.0], atol=0.12)
    said = run("monitor", world.model, write_csv(tmp_path / "far.csv", X + 9))
    assert said.status == 1
    assert "not a mixture of the sources" in said.out


def names_but_tables(folder):
    """Every name in a model folder but that of its tables file, the one that model.json names."""
    tables = [path.name for path in folder.rglob("tables-*.safetensors")]
    assert tables == [read_record(folder)["tables"]["file"]]
    return {path.name for path in folder.rglob("*")} - set(tables)


def test_fit_replaces_a_model_and_leaves_no_rest(world, run, tmp_path):
    arguments = ["fit", *world.sources, "--held-out", *world.held, "--out", tmp_path / "m"]
    assert run(*arguments).status == 0
    first = names_but_tables(tmp_path / "m")
    assert "holds a model; choose another name, or replace it with --force" in run(*arguments).err
    assert run(*arguments, "--objective", "robust", "--force").status == 0
    assert names_but_tables(tmp_path / "m") == first
    assert read_model(tmp_path / "m").model.objective == "robust"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["predict", "nowhere", "t.csv", "--out", "p.csv"],
            3,
            "nowhere does not exist; give a folder that anymix.save",
        ),
        (["fit", "a", "b", "--out", "m"], 3, "a does not exist"),
        (["source", "check", "/"], 4, "which does not belong there"),
        (["dance"], 2, "no command 'dance'"),
        (
            ["pack", "north"],
            2,
            "no command 'pack'; did you mean 'source pack'? anymix --help",
        ),
        (["sites", "evaluate"], 2, "no command 'sites'; did you mean 'site evaluate'?"),
        (["certfy"], 2, "no command 'certfy'; did you mean 'certify'?"),
    ],
)
def test_errors_are_one_sentence(run, arguments, code, words):
    said = run(*arguments)
    assert said.status == code
    assert said.err.startswith("anymix: ")
    assert said.err.count("\n") == 1
    assert words in said.err
    assert said.out == ""


def test_errors_of_fit(world, run, tmp_path):
    out = ["--out", tmp_path / "m"]
    alone = run("fit", world.sources[0], "--held-out", *world.held, *out)
    assert "give two source folders or more" in alone.err
    missing = run("fit", *world.sources, "--held-out", *world.held[:2], *out)
    assert "held-out rows of north, south, west are needed" in missing.err
    odd = run("fit", *world.sources, "--held-out", "north.csv", *out)
    assert "takes NAME=TABLE" in odd.err
    none = run("fit", *world.sources, *out)
    assert "--held-out" in none.err
    X, y = draw("north", 30, np.random.default_rng(0))
    strange = write_csv(tmp_path / "s.csv", X, np.where(y > 0, "yes", "maybe"))
    unknown = run("fit", *world.sources, "--held-out", f"north={strange}", *world.held[1:], *out)
    assert "'maybe'" in unknown.err
    assert strange in unknown.err
    assert not (tmp_path / "m").exists()


def test_a_bad_row_leaves_the_old_predictions(world, run, tmp_path):
    (tmp_path / "p.csv").write_text("prediction\n1.0\n")
    (tmp_path / "new.csv").write_text("a,b\n" + "1,2\n" * 50 + "1,x\n")
    said = run(
        "predict",
        world.model,
        tmp_path / "new.csv",
        "--out",
        tmp_path / "p.csv",
        "--chunk-rows",
        10,
        "--force",
    )
    assert said.status == 3
    assert "row 51: column 'b' holds 'x'" in said.err
    assert (tmp_path / "p.csv").read_text() == "prediction\n1.0\n"


def test_a_model_folder_that_was_changed_is_refused(world, run, tmp_path):
    copy = tmp_path / "m"
    shutil.copytree(world.model, copy)
    tables = next(copy.glob("tables-*"))
    sound = tables.read_bytes()
    tables.write_bytes(sound[:-1] + b"x")
    assert "was changed" in run("compare", copy, "--held-out", *world.test).err
    tables.write_bytes(sound)
    record = json.loads((copy / "model.json").read_text())
    record["sources"][0]["folder"] = "../../north"
    (copy / "model.json").write_text(json.dumps(record))
    assert "lies outside its folder" in run("monitor", copy, "x.csv").err
    del record["sources"]
    (copy / "model.json").write_text(json.dumps(record))
    assert "lacks 'sources'" in run("monitor", copy, "x.csv").err


def test_pack_by_command(run, tmp_path):
    rng = np.random.default_rng(0)
    X, y = draw("north", 120, rng)
    rows = write_csv(tmp_path / "train.csv", X, label(y))
    held = write_csv(tmp_path / "held.csv", *_labelled(draw("north", 60, rng)))
    common = ["--name", "north", "--rows", rows, "--task", "classification"]
    said = run("source", "pack", tmp_path / "a", *common, "--held-out", held, "--json")
    assert said.status == 0
    assert json.loads(said.out)["own_loss"]["n_rows"] == 60
    shown = run("source", "show", tmp_path / "a").out
    assert "it reveals  " in shown
    assert "(cross_entropy, 60 held-out rows)" in shown
    model = LogisticRegression().fit(X, label(y))
    onnx = tmp_path / "two_outputs.onnx"
    kind = [("X", FloatTensorType([None, 2]))]
    graph = to_onnx(model, initial_types=kind, options={"zipmap": False})
    onnx.write_bytes(graph.SerializeToString())
    again = run(
        *["source", "pack", tmp_path / "b", *common, "--onnx", onnx, "--classes", "no", "yes"],
        *["--density", "mixture", "--held-out", held],
    )
    assert again.status == 0
    assert "means and covariances" in again.out
    rows, truth = _labelled(draw("north", 60, np.random.default_rng(7)))
    held = write_csv(tmp_path / "held.csv", rows, truth)
    packed = json.loads(
        run(
            *["source", "pack", tmp_path / "d", *common, "--onnx", onnx, "--classes", "no", "yes"],
            *["--held-out", held, "--json"],
        ).out
    )
    due = -np.log(model.predict_proba(rows)[np.arange(60), (truth == "yes").astype(int)]).mean()
    assert packed["own_loss"]["value"] == pytest.approx(due, rel=1e-5)
    assert run("source", "check", tmp_path / "a", tmp_path / "b").status == 0
    assert "exists already" in run("source", "pack", tmp_path / "a", *common).err
    bad = run("source", "pack", tmp_path / "c", *common, "--estimator", "no.such:Thing")
    assert "--estimator no.such:Thing cannot be found" in bad.err


def _labelled(drawn):
    return drawn[0], label(drawn[1])


def test_held_out_rows_of_one_label_are_warned_of(world, run, tmp_path):
    name, _, path = world.test[0].partition("=")
    header, *rows = Path(path).read_text().splitlines()
    one = tmp_path / "one.csv"
    one.write_text("\n".join([header, *(row for row in rows if row.endswith(rows[0][-1]))]) + "\n")
    said = run("certify", world.model, "--held-out", f"{name}={one}", *world.test[1:])
    assert "one.csv: all rows have the label" in said.err
