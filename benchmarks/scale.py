"""How do time and memory grow with the rows?  Ten sources, rows in Parquet, 10⁵ to 10⁸ of them.

    python -m benchmarks.scale [--quick] [--least 1e5] [--most 1e8] [--out results/scale.json]

Each size is drawn into a Parquet file; a process of its own then finds z from it through parts on
disk, and one more predicts all rows into another Parquet file.  What is printed are the seconds
within each process, imports apart, by the clock and of the processor (which others cannot lengthen,
so that growth is told by them), and the most memory that the process ever held.  Sizes that --out
holds already, and that are not measured anew, stay there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anymix import Source
from anymix.core import Combination, solve
from anymix.engines.chunks import ThreadMap, ask_in_chunks, problem_in_chunks
from anymix.engines.store import Store
from anymix.sources import Tables, evaluate

P, ETA, NOISE = 10, 1e-3, 0.2
DRAWN, BATCH = 250_000, 50_000
SIZES, SMALL = (10**5, 10**6, 10**7, 10**8), (20_000, 60_000)
# Beyond it tables in memory take more than the two gigabytes that parts are held to.
IN_MEMORY = 10**6
ANGLES = 2 * np.pi * np.arange(P) / P
CENTRES = 2.5 * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
COLUMNS = ("x1", "x2", "y", "domain")


def truth(X: np.ndarray) -> np.ndarray:
    """What the sources would like to know."""
    return np.sin(X[:, 0]) * np.cos(X[:, 1])


def source(k: int) -> Source:
    """A source that knows the tangent of the truth at its centre, and how its rows are spread."""
    c = CENTRES[k]
    slope = np.array([np.cos(c[0]) * np.cos(c[1]), -np.sin(c[0]) * np.sin(c[1])])
    level = float(truth(c[None])[0])

    def log_density(X: np.ndarray) -> np.ndarray:
        d = X - c
        return np.asarray(-0.5 * np.einsum("ij,ij->i", d, d) - np.log(2 * np.pi))

    return Source(f"s{k}", lambda X: level + (X - c) @ slope, log_density)


SOURCES = [source(k) for k in range(P)]


def draw(path: Path, m: int) -> None:
    """Write m rows; the first ones are the same whatever m is."""
    schema = pa.schema([(name, pa.float32()) for name in COLUMNS[:3]] + [("domain", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as out:
        for start in range(0, m, DRAWN):
            rng = np.random.default_rng([2026, start // DRAWN])
            domain = rng.integers(P, size=DRAWN)
            X = CENTRES[domain] + rng.standard_normal((DRAWN, 2))
            y = truth(X) + NOISE * rng.standard_normal(DRAWN)
            columns = *X.T.astype(np.float32), y.astype(np.float32), domain.astype(np.int8)
            n = min(DRAWN, m - start)
            out.write_table(pa.table([column[:n] for column in columns], schema=schema))


def batches(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Read the rows."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(BATCH):
            x1, x2, y, domain = (column.to_numpy() for column in batch.columns)
            yield np.stack([x1, x2], axis=1).astype(float), y.astype(float), domain.astype(np.intp)


def fit(path: Path) -> dict[str, Any]:
    """Find z from parts on disk."""
    start, threads = perf_counter(), ThreadMap()
    with Store() as store:
        tables = ask_in_chunks(SOURCES, batches(path), map=threads)
        problem = problem_in_chunks(tables, store, eta=ETA, map=threads)
        asked, threads.passes = perf_counter() - start, 0
        found = solve(problem, remember=False)
        seconds, rounds = perf_counter() - start, threads.passes
        begin, Z = perf_counter(), found.z[None]
        problem.evaluate_many(Z, Z)
        one = perf_counter() - begin
    return {
        "seconds": seconds,
        "asking": asked,
        "rounds": rounds,
        "pass": one,
        "stored": store.size,
        **answer(found),
    }


def fit_in_memory(path: Path) -> dict[str, Any]:
    """Find z from one array."""
    start = perf_counter()
    parts = [evaluate(SOURCES, X).labelled(y, domain) for X, y, domain in batches(path)]
    found = solve(Tables.concatenate(parts).problem("squared", ETA), remember=False)
    return {"seconds": perf_counter() - start, **answer(found)}


def answer(found: Any) -> dict[str, Any]:
    """What is told of a solution."""
    return {"z": found.z.tolist(), "regret": found.regret, "status": found.status}


def predict(path: Path, z: list[float]) -> dict[str, Any]:
    """Combine what the sources say of all rows, and write it beside them."""
    start, used = perf_counter(), Combination(np.array(z), ETA)

    def predicted(batch: tuple[np.ndarray, np.ndarray, np.ndarray]) -> pa.RecordBatch:
        said = evaluate(SOURCES, batch[0], reference=False)
        h = used.predict(said.log_masses, said.predictions)
        return pa.record_batch([h.astype(np.float32)], names=["prediction"])

    schema, n = pa.schema([("prediction", pa.float32())]), 0
    with pq.ParquetWriter(path.with_name("out.parquet"), schema, compression="none") as out:
        for batch in ThreadMap()(predicted, batches(path)):
            out.write_batch(batch)
            n += batch.num_rows
    return {"seconds": perf_counter() - start, "rows": n}


ROLES: dict[str, Any] = {"fit": fit, "memory": fit_in_memory, "predict": predict, "draw": draw}


def played(role: str, *given: Any) -> dict[str, Any]:
    """Play a role here, and add the seconds of the processor."""
    start = process_time()
    found = ROLES[role](*given) or {}
    return {**found, "cpu": process_time() - start}


def apart(role: str, *given: Any) -> dict[str, Any]:
    """Play a role in a process of its own; add the most memory that it held, in MB."""
    command = [sys.executable, "-m", "benchmarks.scale", "--role", json.dumps([role, *given])]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{role} ended with status {status}.")
    return {**json.loads(told), "peak": usage.ru_maxrss / 2**10}


def measure(m: int, folder: Path) -> dict[str, Any]:
    """Draw m rows, find z, predict; and beside it in memory where that fits."""
    path = folder / "rows.parquet"
    apart("draw", str(path), m)
    row = {"m": m, "fit": apart("fit", str(path))}
    row["predict"] = apart("predict", str(path), row["fit"]["z"])
    assert row["predict"]["rows"] == m
    if m <= IN_MEMORY:
        row["memory"] = apart("memory", str(path))
        row["off"] = float(np.abs(np.subtract(row["fit"]["z"], row["memory"]["z"])).max())
    for name in ("rows.parquet", "out.parquet"):
        (folder / name).unlink()
    return row


def exponent(rows: list[dict[str, Any]], role: str) -> float:
    """a in seconds of the processor ∝ mᵃ, by least squares in logarithms.

    >>> exponent([{"m": m, "fit": {"cpu": 2.0 * m}} for m in (10, 100)], "fit")
    1.0
    """
    m, seconds = [row["m"] for row in rows], [row[role]["cpu"] for row in rows]
    return float(np.polyfit(np.log(m), np.log(seconds), 1)[0].round(3))


def tell(row: dict[str, Any]) -> None:
    """Print what was measured at one size."""
    found, said = row["fit"], row["predict"]
    text = (
        f"m = {row['m']:.0e}: fit {found['seconds']:.1f} s, {found['cpu']:.1f} of the processor "
        f"(asking {found['asking']:.1f}, "
        f"{found['rounds']} rounds; a pass with Hessian {found['pass']:.3f}), peak "
        f"{found['peak']:.0f} MB, on disk {found['stored'] / 1e9:.2f} GB; predict "
        f"{said['seconds']:.1f} s, {said['cpu']:.1f} of the processor, {said['peak']:.0f} MB"
    )
    if "memory" in row:
        ratio = found["cpu"] / row["memory"]["cpu"]
        text += f"; in memory {row['memory']['peak']:.0f} MB, fit {ratio:.2f} of its time, "
        text += f"z off by {row['off']:.1e}"
    print(text, flush=True)


def main(
    quick: bool = False,
    least: float = 1e5,
    most: float = 1e7,
    folder: str | None = None,
    out: str | None = None,
) -> list[dict[str, Any]]:
    """Measure every size, and print how time grows."""
    known = json.loads(Path(out).read_text("utf-8")) if out and Path(out).exists() else []
    rows = {row["m"]: row for row in known}
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for m in SMALL if quick else (m for m in SIZES if least <= m <= most):
            rows[m] = measure(m, Path(name))
            tell(rows[m])
    found = [rows[m] for m in sorted(rows)]
    if out:
        Path(out).write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    summary(found)
    return found


def summary(rows: list[dict[str, Any]]) -> None:
    """Print how z settles, and how time grows."""
    last = np.array(rows[-1]["fit"]["z"])
    for row in rows[:-1]:
        off = np.abs(np.array(row["fit"]["z"]) - last).max()
        print(f"m = {row['m']:.0e}: z is {off:.1e} from that of the most rows")
    for role in ("fit", "predict"):
        power = exponent(rows, role)
        print(f"{role}: seconds of the processor grow as m to the power of {power:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--least", type=float, default=1e5)
    parser.add_argument("--most", type=float, default=1e7)
    parser.add_argument("--folder")
    parser.add_argument("--out")
    parser.add_argument("--role")
    options = vars(parser.parse_args())
    asked = options.pop("role")
    if asked:
        role, first, *others = json.loads(asked)
        print(json.dumps(played(role, Path(first), *others)))
    else:
        main(**options)
