"""Model folders and site files that lie: entries, arrays, bytes, links, files beside."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from anymix.exchange import facts_of
from anymix.exchange.tensors import dump_arrays, load_arrays

Rng = np.random.Generator
ABSURD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 0.5, -0.5, 1e308, 1e-308, 2**40, 2**70, "", "x", "\x1b[2J",
    "\u202e", "../../etc", "=1+1", "<script>alert(1)</script>", [], {}, [[]], [1, 2], ["a", "a"],
    {"a": 1}, "x" * 100_000, [0] * 100_000, [0.5, 0.5], [1.0, 0.0], [1e300, -1e300],
]  # fmt: skip


def damaged_model(folder: Path, rng: Rng) -> str:
    """Damage a model folder, and say how."""
    attack = MODELS[rng.integers(len(MODELS))]
    attack(folder, rng)
    return f"model: {attack.__name__}"


def damaged_site(path: Path, rng: Rng) -> str:
    """Damage a site's file, and say how."""
    attack = SITES[rng.integers(len(SITES))]
    attack(path, rng)
    return f"site: {attack.__name__}"


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    found = [at] if at else []
    for key, inner in items:
        deeper = isinstance(inner, dict | list)
        found += _paths(inner, (*at, key)) if deeper else [(*at, key)]
    return found


def _change(data: Any, rng: Rng) -> None:
    """Put something else in the place of one entry, remove it, or add one beside it."""
    paths = _paths(data)
    *way, last = paths[rng.integers(len(paths))]
    for key in way:
        data = data[key]
    choice = rng.random()
    if choice < 0.15 and isinstance(data, dict):
        del data[last]
    elif choice < 0.25 and isinstance(data, dict):
        data["extra"] = 1
    elif isinstance(data[last], float) and choice < 0.6:
        data[last] *= float(rng.choice([1 + 1e-9, 1.1, -1, 0, 1e10]))
    else:
        data[last] = ABSURD[rng.integers(len(ABSURD))]


def entry(folder: Path, rng: Rng) -> None:
    path = folder / "model.json"
    data = json.loads(path.read_text())
    for _ in range(rng.integers(1, 3)):
        _change(data, rng)
    path.write_text(json.dumps(data))


def record_beside(folder: Path, rng: Rng) -> None:
    path = folder / "certificate.json"
    data = json.loads(path.read_text())
    _change(data, rng)
    path.write_text(json.dumps(data))


def forged_certificate(folder: Path, rng: Rng) -> None:
    path = folder / str(rng.choice(["model.json", "certificate.json"]))
    data = json.loads(path.read_text())
    inner = data.get("certificate", data)
    if isinstance(inner, dict):
        inner["sentence"] = "On any mixture the loss is at most 0.0000001."
        inner["loss_upper"] = 1e-7
    path.write_text(json.dumps(data))


def table_entry(folder: Path, rng: Rng) -> None:
    """Change the tables, and set their hash and their name right."""
    path = next(folder.glob("tables-*.safetensors"))
    record = folder / "model.json"
    data, old = json.loads(record.read_text()), path.name
    arrays = {name: array.copy() for name, array in load_arrays(path.read_bytes()).items()}
    _change_arrays(arrays, rng)
    content = dump_arrays(arrays)
    facts = facts_of(content)
    path.unlink()
    name = f"tables-{facts.sha256[:12]}.safetensors"
    (folder / name).write_bytes(content)
    data["tables"] = {"file": name, "size": facts.size, "sha256": facts.sha256}
    record.write_text(json.dumps(data).replace(old, name))


def _change_arrays(arrays: dict[str, Any], rng: Rng) -> None:
    name = str(rng.choice(list(arrays)))
    array, way = arrays[name], rng.integers(6)
    if way == 0 and array.dtype.kind == "f":
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -5.0, 0])
    elif way == 1:
        array.flat[rng.integers(array.size)] = int(rng.choice([0, 1, 7, 100]))
    elif way == 2:
        arrays[name] = array[..., : rng.integers(array.shape[-1])]
    elif way == 3:
        arrays[name] = array.reshape(-1)
    elif way == 4:
        del arrays[name]
    elif array.dtype == np.int64:
        array.flat[0] = int(rng.choice([2**40, -1, 2**62]))
    else:
        arrays[name] = array.astype(str(rng.choice(["int64", "uint8"])))


def bytes_of(folder: Path, rng: Rng) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[rng.integers(len(files))]
    content = bytearray(path.read_bytes())
    if rng.random() < 0.5 and content:
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
    else:
        content = content[: rng.integers(len(content) + 1)]
    path.write_bytes(bytes(content))


def link(folder: Path, rng: Rng) -> None:
    parts = sorted(folder.rglob("*"))
    path = parts[rng.integers(len(parts))]
    target = folder.parent / "outside"
    path.rename(target)
    if rng.random() < 0.7:
        path.symlink_to(target)
    elif rng.random() < 0.5:
        os.mkfifo(path)


def file_beside(folder: Path, rng: Rng) -> None:
    places = [folder, folder / "sources", next((folder / "sources").iterdir())]
    name = str(rng.choice([".x.tmp", "notes.txt", "sources.py", "tables-000000000000.safetensors"]))
    (places[rng.integers(3)] / name).write_bytes(b"mine")


MODELS: tuple[Callable[[Path, Rng], None], ...] = (
    entry,
    entry,
    entry,
    entry,
    record_beside,
    forged_certificate,
    table_entry,
    table_entry,
    bytes_of,
    link,
    file_beside,
)


def site_bytes(path: Path, rng: Rng) -> None:
    content = bytearray(path.read_bytes())
    for at in rng.integers(len(content), size=rng.integers(1, 6)):
        content[at] ^= int(rng.integers(1, 256))
    path.write_bytes(
        bytes(content[: rng.integers(len(content))] if rng.random() < 0.3 else content)
    )


def site_head(path: Path, rng: Rng) -> None:
    arrays = dict(load_arrays(path.read_bytes()))
    head = json.loads(arrays["site"].tobytes())
    _change(head, rng)
    written = json.dumps(head).encode()
    if rng.random() < 0.2:
        written = b'{"x":[' + b"[]," * int(rng.choice([1000, 2_000_000])) + b"1]}"
    arrays["site"] = np.frombuffer(written, np.uint8)
    path.write_bytes(dump_arrays(arrays))


def site_arrays(path: Path, rng: Rng) -> None:
    arrays = {name: array.copy() for name, array in load_arrays(path.read_bytes()).items()}
    _change_arrays(arrays, rng)
    path.write_bytes(dump_arrays(arrays))


def site_lies(path: Path, rng: Rng) -> None:
    """Sound numbers that are not true."""
    arrays = {name: array.copy() for name, array in load_arrays(path.read_bytes()).items()}
    arrays["outcomes"] *= float(rng.choice([1e-3, 0.5, 1.5, 1e3, 1e6, 1e12, -1.0]))
    path.write_bytes(dump_arrays(arrays))


SITES: tuple[Callable[[Path, Rng], None], ...] = (site_bytes, site_head, site_arrays, site_lies)
