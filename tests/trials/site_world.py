"""Two clinics, what they pack and send, and what goes wrong on the way."""

import csv
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from anymix.cli import main

CLINICS = {"coast": 35, "hills": 65}
COLUMNS = ("age", "dose", "better")


def draw(age, n, seed):
    """Patients as rows of words, as a spreadsheet holds them."""
    rng = np.random.default_rng(seed)
    ages, doses = rng.normal(age, 7, n).round(), rng.normal(10, 2, n).round(1)
    better = np.where(ages < 50, doses > 10, doses < 10) ^ (rng.random(n) < 0.1)
    return [
        [str(a), str(d), "yes" if b else "no"] for a, d, b in zip(ages, doses, better, strict=True)
    ]


def write(path, rows, header=COLUMNS):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def command(*words):
    assert main([*map(str, words), "--quiet"]) == 0, words


def pack(name, table, *more, task="classification"):
    common = ("--rows", table, "--target", "better", "--task", task, "--density", "mixture")
    command("source", "pack", name, "--name", name, *common, *more)


def build():
    """Write into the working folder what both clinics have made, and a model of it."""
    for seed, (name, age) in enumerate(CLINICS.items()):
        write(f"{name}_train.csv", draw(age, 80, seed))
        write(f"{name}_held.csv", draw(age, 40, seed + 10))
        pack(name, f"{name}_train.csv")
    for name in CLINICS:
        evaluate = ("site", "evaluate", *CLINICS, "--site", name, "--target", "better")
        command(*evaluate, "--rows", f"{name}_held.csv", "--out", f"{name}.site")
        summary = ("reference", "summary", f"{name}_train.csv", "--name", name)
        command(*summary, "--target", "better", "--out", f"{name}.json")
    command("reference", "join", "coast.json", "hills.json", "--out", "reference.json")
    command("fit", *CLINICS, "--from-sites", "coast.site", "hills.site", "--out", "model")
    odd_tables(draw(35, 80, 0))
    odd_sources()
    damaged_folders()
    networks()


def odd_tables(rows):
    """Tables as people save them."""
    write("Größe.csv", rows, ("age", "dose", "Größe"))
    Path("latin.csv").write_bytes(Path("Größe.csv").read_bytes().decode().encode("latin-1"))
    Path("semicolons.csv").write_text(Path("coast_train.csv").read_text().replace(",", ";"))
    Path("workbook.csv").write_bytes(b"PK\x03\x04" + bytes(200))
    Path("empty.csv").write_bytes(b"")
    write("header.csv", [])
    write("commas.csv", [[a, d.replace(".", ","), y] for a, d, y in rows])
    write("one_label.csv", [[a, d, "yes"] for a, d, _ in rows])
    write("no_label.csv", [*rows[:4], [*rows[4][:2], ""], *rows[5:]])
    write("twice.csv", rows, ("age", "age", "better"))
    write("numbers.csv", [[a, d, i * 1.37] for i, (a, d, _) in enumerate(rows)])
    write("nan_target.csv", [[a, d, "NaN" if i == 4 else i] for i, (a, d, _) in enumerate(rows)])
    write("gaps.csv", [*rows[:4], [rows[4][0], "", rows[4][2]], *rows[5:]])
    write("dates.csv", [[a, f"2024-01-{i % 28 + 1:02}", y] for i, (a, _, y) in enumerate(rows)])
    write("three.csv", rows[:3])
    write("ten.csv", rows[:10])
    write("no_dose.csv", [[a, y] for a, _, y in rows], ("age", "better"))
    write("Yes.csv", [[a, d, y.title()] for a, d, y in rows])
    write("ja.csv", [[a, d, {"yes": "ja", "no": "nein"}[y]] for a, d, y in rows])
    write("turned.csv", [[d, a, y] for a, d, y in rows], ("dose", "age", "better"))
    wards = [[a, d, "night" if i % 2 else "day", y] for i, (a, d, y) in enumerate(rows)]
    write("wards.csv", wards, ("age", "dose", "ward", "better"))


def odd_sources():
    """Folders that are sound, and do not go with those of the two clinics."""
    pack("ja", "ja.csv")
    pack("turned", "turned.csv")
    pack("numbers", "numbers.csv", task="regression")
    Path("later").mkdir()
    common = ("--rows", "hills_held.csv", "--target", "better", "--density", "mixture")
    command("source", "pack", "later/hills", "--name", "hills", *common, "--task", "classification")
    summary = ("reference", "summary", "wards.csv", "--name", "wards")
    command(*summary, "--target", "better", "--out", "wards.json")


def damaged_folders():
    """What mail, archives and computers do to a folder."""
    shutil.copytree("coast", "flipped")
    content = bytearray(Path("flipped/predictor.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    Path("flipped/predictor.onnx").write_bytes(content)
    shutil.copytree("coast", "mac")
    Path("mac/.DS_Store").write_bytes(b"\0\0\0\1Bud1")
    shutil.copytree("coast", "cut")
    Path("cut/density.safetensors").unlink()
    with zipfile.ZipFile("coast.zip", "w") as archive:
        for file in Path("coast").iterdir():
            archive.write(file)
    Path("cut.site").write_bytes(Path("coast.site").read_bytes()[:-20])


def network(path, n_features, ends_in_softmax=True):
    """Write an ONNX file of one layer, as an exporter does."""
    rows = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", n_features])
    out = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 2])
    values = np.arange(1.0, 2 * n_features + 1).tolist()
    weights = helper.make_tensor("W", TensorProto.FLOAT, [n_features, 2], values)
    nodes = [helper.make_node("MatMul", ["X", "W"], ["s"])]
    last = "Softmax" if ends_in_softmax else "Identity"
    nodes.append(helper.make_node(last, ["s"], ["p"]))
    graph = helper.make_graph(nodes, "network", [rows], [out], [weights])
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def networks():
    network("net.onnx", 2)
    network("wide.onnx", 3)
    network("scores.onnx", 2, ends_in_softmax=False)
    Path("weights.pt").write_bytes(pickle.dumps({"0.weight": [1.0, 2.0]}))
