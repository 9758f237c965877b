"""`anymix predict` on a million rows of twenty features: speed, and the most memory it held.

python -m benchmarks.streaming [1000000]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from anymix import Source
from anymix.cli import main as anymix
from anymix.densities import GaussianKDE
from anymix.exchange import pack_source

D = 20


def prepare(folder: Path, n: int) -> list[str]:
    rng, held, sources = np.random.default_rng(0), [], []
    for k, name in enumerate(("north", "south", "west")):
        X = rng.normal(k - 1.0, size=(2000, D))
        model = LogisticRegression().fit(X, (X[:, k] > k - 1).astype(int))
        density = GaussianKDE("scott").fit(X)
        pack_source(Source(name, model, density), folder / name)
        rows = rng.normal(k - 1.0, size=(200, D))
        np.savez(folder / f"{name}.npz", X=rows, y=(rows[:, k] > k - 1).astype(int))
        held.append(f"{name}={folder / name}.npz")
        sources.append(str(folder / name))
    model_folder = str(folder / "model")
    assert anymix(["fit", *sources, "--held-out", *held, "--out", model_folder, "--quiet"]) == 0
    with open(folder / "rows.csv", "w") as file:
        file.write(",".join(f"x{i}" for i in range(D)) + "\n")
        for start in range(0, n, 50_000):
            block = rng.normal(size=(min(50_000, n - start), D)).round(6)
            np.savetxt(file, block, delimiter=",", fmt="%.6f")
    return ["predict", model_folder, str(folder / "rows.csv"), "--out", str(folder / "out.csv")]


def main(n: int = 1_000_000) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = prepare(folder, n)
        size = (folder / "rows.csv").stat().st_size / 2**20
        command = [sys.executable, "-m", "anymix.cli", *arguments, "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        record = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0
        memory, speed = usage.ru_maxrss / 2**10, record["rows_per_second"]
        print(f"{n} rows x {D} ({size:.0f} MB): {speed:.0f} rows/s, {memory:.0f} MB at most")
        assert memory < 1024
        with open(folder / "out.csv") as file:
            assert sum(1 for _ in file) == n + 1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
