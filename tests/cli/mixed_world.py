"""Two clinics with tables as they come: words, true and false, gaps; one column is empty at one."""

import csv

import numpy as np

NAMES = ("east", "west")
HEADER = ["age", "ward", "smokes", "score", "ill"]


def rows_of(name, n, rng):
    """Return rows of texts; wards and ages tell the clinics apart."""
    centre, day = (45, 0.8) if name == "east" else (60, 0.3)
    for _ in range(n):
        age, ward = round(rng.normal(centre, 8), 1), "day" if rng.random() < day else "night"
        ill = rng.random() < 1 / (1 + np.exp(-(age - 52) / 6 + (ward == "day")))
        yield [
            f"{age}" if rng.random() < 0.9 else "",
            ward if rng.random() < 0.9 else "",
            ["true", "false", ""][rng.integers(3)],
            f"{rng.normal():.3f}" if name == "east" else "",
            "yes" if ill else "no",
        ]


def write(path, rows, header=HEADER):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)
