"""Tables with damaged bytes, in each format."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

Rng = np.random.Generator


def damaged_table(sound: Path, place: Path, rng: Rng) -> tuple[str, Path]:
    """Write a table in some format, damage it; return how, and where it is."""
    suffix = str(rng.choice([".csv", ".csv.gz", ".npz", ".parquet"]))
    path = place / f"t{suffix}"
    table = pcsv.read_csv(sound)
    if suffix == ".csv":
        path.write_bytes(sound.read_bytes())
    elif suffix == ".csv.gz":
        path.write_bytes(gzip.compress(sound.read_bytes()))
    elif suffix == ".parquet":
        pq.write_table(table, path)
    else:
        columns = [table[name].to_numpy() for name in ("a", "b")]
        y = np.asarray(table["y"].to_pylist())
        np.savez_compressed(path, X=np.column_stack(columns), y=y)
    content = bytearray(path.read_bytes())
    way = str(rng.choice(["flip", "cut", "repeat", "insert"]))
    at = int(rng.integers(len(content)))
    if way == "flip":
        for place_ in rng.integers(len(content), size=rng.integers(1, 10)):
            content[place_] ^= int(rng.integers(1, 256))
    elif way == "cut":
        content = content[:at]
    elif way == "repeat":
        content = content[:at] + content
    else:
        content[at:at] = bytes(rng.bytes(int(rng.integers(1, 40))))
    path.write_bytes(bytes(content))
    return f"{way} {suffix}", path
