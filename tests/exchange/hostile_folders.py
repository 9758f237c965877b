"""Damaged and hostile source folders: none may crash the reader, and each gets one sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.linear_model import LogisticRegression

from anymix import Source
from anymix.densities import GaussianKDE
from anymix.exchange import AuditError, pack_source, read_source
from anymix.exchange.manifest import facts_of
from anymix.exchange.tensors import dump_arrays, load_arrays

FILES = ("manifest.json", "predictor.onnx", "density.safetensors")
Rng = np.random.Generator


def good_folder(path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = LogisticRegression().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    pack_source(Source("north", model, GaussianKDE(0.5).fit(X)), path)
    return path


def rehash(folder: Path) -> None:
    """A careful attacker keeps the hashes right."""
    edit_manifest(
        folder, lambda m: m["files"].update({f: _facts(folder / f) for f in FILES[1:]}) or m
    )


def _facts(path: Path) -> dict[str, Any]:
    return facts_of(path.read_bytes()).to_dict()


def edit_manifest(folder: Path, change: Callable[[Any], Any]) -> None:
    path = folder / FILES[0]
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def edit_graph(folder: Path, change: Callable[[Any], Any]) -> None:
    path = folder / FILES[1]
    model = onnx.load_model_from_string(path.read_bytes())
    change(model)
    path.write_bytes(model.SerializeToString())
    rehash(folder)


def edit_arrays(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / FILES[2]
    arrays = {name: array.copy() for name, array in load_arrays(path.read_bytes()).items()}
    change(arrays)
    path.write_bytes(dump_arrays(arrays))
    rehash(folder)


def flip(folder: Path, rng: Rng) -> None:
    path = folder / str(rng.choice(FILES))
    content = bytearray(path.read_bytes())
    for at in rng.integers(len(content), size=rng.integers(1, 20)):
        content[at] ^= int(rng.integers(1, 256))
    path.write_bytes(bytes(content))
    if path.name != FILES[0] and rng.random() < 0.8:
        rehash(folder)


def cut(folder: Path, rng: Rng) -> None:
    path = folder / str(rng.choice(FILES))
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])
    if path.name != FILES[0] and rng.random() < 0.8:
        rehash(folder)


def swap(folder: Path, rng: Rng) -> None:
    a, b = (folder / str(f) for f in rng.choice(FILES, 2, replace=False))
    a.rename(folder / "x")
    b.rename(a)
    (folder / "x").rename(b)
    if a.name != FILES[0] != b.name:
        rehash(folder)


def splice(folder: Path, rng: Rng) -> None:
    """Insert a stretch of random bytes, or repeat a part of the file."""
    path = folder / str(rng.choice(FILES[1:]))
    content = path.read_bytes()
    a, b = sorted(rng.integers(len(content), size=2))
    extra = rng.bytes(50) if rng.random() < 0.5 else content[a:b]
    path.write_bytes(content[:b] + extra + content[b:])
    rehash(folder)


def enlarge_header(folder: Path, rng: Rng) -> None:
    path = folder / FILES[2]
    size = [0, 2**15, 2**31, 2**63, 2**64 - 1][rng.integers(5)]
    path.write_bytes(size.to_bytes(8, "little") + path.read_bytes()[8:])
    rehash(folder)


def wrong_hash(folder: Path, rng: Rng) -> None:
    def change(m: Any) -> Any:
        facts = m["files"][str(rng.choice(FILES[1:]))]
        facts["sha256" if rng.random() < 0.5 else "size"] = ["0" * 64, 12, -1, None][
            rng.integers(4)
        ]
        return m

    edit_manifest(folder, change)


def path_trick(folder: Path, rng: Rng) -> None:
    choice, path = rng.integers(6), folder / str(rng.choice(FILES))
    if choice == 0:
        names = ["../../etc/passwd", "/etc/passwd", "..", "density.safetensors/../x", "\x00"]
        name = str(rng.choice(names))
        edit_manifest(folder, lambda m: m["files"].update({name: m["files"][FILES[1]]}) or m)
    elif choice == 1:
        path.unlink()
        path.symlink_to("/etc/passwd")
    elif choice == 2:
        path.rename(folder.parent / "outside")
        path.symlink_to(folder.parent / "outside")
    elif choice == 3:
        (folder / str(rng.choice([".hidden", "code.py", "weights.bin"]))).write_bytes(b"x")
    elif choice == 4:
        path.unlink()
        os.mkfifo(path)
    else:
        path.unlink()
        path.mkdir()


def invalid_manifest(folder: Path, rng: Rng) -> None:
    path = folder / FILES[0]
    data = json.loads(path.read_text())
    invalid: list[Any] = [
        None,
        [],
        {},
        "",
        -1,
        1e308,
        True,
        "x" * 5000,
        [[]],
        2**70,
        "\u202e",
        {"a": 1},
    ]
    choice = rng.integers(4)
    if choice == 0:
        data[str(rng.choice(list(data)))] = invalid[rng.integers(len(invalid))]
        path.write_text(json.dumps(data))
    elif choice == 1:
        path.write_text("[" * int(rng.integers(10, 500_000)))
    elif choice == 2:
        path.write_text(
            json.dumps(data).replace("1", str(rng.choice(["NaN", "1e999", "9" * 5000])))
        )
    else:
        key = str(rng.choice(list(data)))
        path.write_text("{" + json.dumps(key) + ": 1, " + json.dumps(data)[1:])


def foreign_operator(folder: Path, rng: Rng) -> None:
    def change(model: Any) -> None:
        names = ["Loop", "If", "Scan", "ConstantOfShape", "RandomNormal", "Evil", "PyOp", "NonZero"]
        node = model.graph.node[rng.integers(len(model.graph.node))]
        node.op_type = str(rng.choice(names))
        if rng.random() < 0.3:
            node.domain = str(rng.choice(["evil", "com.microsoft", "ai.onnx.contrib"]))

    edit_graph(folder, change)


def nested_graph(folder: Path, rng: Rng) -> None:
    def change(model: Any) -> None:
        inner = helper.make_graph([], "inner", [], [])
        for _ in range(int(rng.integers(1, 20))):
            holder = helper.make_node("Identity", ["X"], ["q"], body=inner)
            inner = helper.make_graph([holder], "inner", [], [])
        node = model.graph.node[0]
        node.attribute.append(helper.make_attribute("body", inner))

    edit_graph(folder, change)


def loop_in_graph(folder: Path, rng: Rng) -> None:
    def change(model: Any) -> None:
        nodes = model.graph.node
        nodes[0].input[0] = nodes[-1].output[0]

    edit_graph(folder, change)


def bad_weights(folder: Path, rng: Rng) -> None:
    bad = float(rng.choice([np.nan, np.inf, -np.inf]))

    def change(model: Any) -> None:
        tensor = numpy_helper.from_array(np.full(3, bad, dtype=np.float32), "w")
        model.graph.initializer.append(tensor)

    def in_attribute(model: Any) -> None:
        for node in model.graph.node:
            for attribute in node.attribute:
                if attribute.floats:
                    attribute.floats[0] = bad

    edit_graph(folder, change if rng.random() < 0.5 else in_attribute)


def external_data(folder: Path, rng: Rng) -> None:
    def change(model: Any) -> None:
        tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=1)
        name = str(rng.choice(["/etc/passwd", "../../x", "predictor.onnx"]))
        tensor.external_data.add(key="location", value=name)
        model.graph.initializer.append(tensor)

    edit_graph(folder, change)


def size_bomb(folder: Path, rng: Rng) -> None:
    choice = rng.integers(5)
    if choice == 0:  # weights that claim to be huge
        edit_graph(
            folder,
            lambda m: m.graph.initializer.append(
                TensorProto(name="w", data_type=1, dims=[2**20, 2**20])
            ),
        )
    elif choice == 1:  # a million empty nodes in few bytes
        with open(folder / FILES[1], "ab") as file:
            file.write(b"\x3a\x82\x89\x7a" + b"\x0a\x00" * 1_000_001)
        rehash(folder)
    elif choice == 2:  # numbers that swell when the graph is loaded or run
        edit_graph(folder, lambda m: swell(m, int(rng.choice([2**18, 2**20, 2**22]))))
    elif choice == 3:
        path = folder / str(rng.choice(FILES))
        with open(path, "ab") as file:
            file.truncate(2**33)
    else:
        edit_graph(folder, lambda m: m.graph.node.extend([m.graph.node[0]] * 20_000))


def swell(model: Any, side: int) -> None:
    graph = model.graph
    shape = numpy_helper.from_array(np.array([side, 2048]), "big")
    one = numpy_helper.from_array(np.ones((1, 1), dtype=np.float32), "one")
    graph.initializer.extend([shape, one])
    swell = helper.make_node("Expand", ["one", "big"], ["swollen"])
    total = helper.make_node("ReduceMax", ["swollen"], ["total"], keepdims=0)
    out = graph.output[0].name
    added = helper.make_node("Mul", [out, "total"], ["last"])
    graph.node.extend([swell, total, added])
    graph.output[0].name = "last"


def bad_arrays(folder: Path, rng: Rng) -> None:
    def change(arrays: dict[str, Any]) -> None:
        name = str(rng.choice(list(arrays)))
        choice = rng.integers(5)
        if choice == 0:
            arrays[name].flat[0] = rng.choice([np.nan, np.inf, -1e300, -1.0])
        elif choice == 1:
            del arrays[name]
        elif choice == 2:
            arrays[name] = arrays[name].astype(str(rng.choice(["int64", "float32", "uint8"])))
        elif choice == 3:
            arrays[name] = arrays[name][:0]
        else:
            arrays["extra"] = np.zeros(3)

    edit_arrays(folder, change)


ATTACKS: tuple[Callable[[Path, Rng], None], ...] = (
    flip,
    cut,
    swap,
    splice,
    enlarge_header,
    wrong_hash,
    path_trick,
    invalid_manifest,
    foreign_operator,
    nested_graph,
    loop_in_graph,
    bad_weights,
    external_data,
    size_bomb,
    bad_arrays,
)
# A change of some bits, or of the order of bytes, may leave a sound folder.
MAY_PASS = {"flip", "splice", "invalid_manifest", "bad_arrays", "cut", "swap"}


def hostile_folders(parent: Path, n: int, seed: int = 0) -> Iterator[tuple[str, Path]]:
    """Yield n folders, one after the other, each with the name of what was done to it."""
    good = good_folder(parent / "good")
    for i in range(n):
        folder, rng = parent / "case" / "north", np.random.default_rng([seed, i])
        shutil.rmtree(parent / "case", ignore_errors=True)
        shutil.copytree(good, folder)
        attack = ATTACKS[i % len(ATTACKS)]
        attack(folder, rng)
        yield attack.__name__, folder


def verdict_of_reading(folder: Path) -> str:
    """Read a folder; anything but a sentence or a sound source is a failure of the reader."""
    try:
        source = read_source(folder)
    except AuditError as error:
        sentence = str(error)
        one_sentence = "\n" not in sentence and sentence.endswith(".") and len(sentence) < 600
        assert one_sentence, sentence
        return "refused"
    assert np.isfinite(source.log_density(np.zeros((2, 3)))).all()
    return "passed"
