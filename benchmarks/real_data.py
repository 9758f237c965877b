"""Where the real data are, and the two sets that the estimators are measured on."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

OFFICE = "office31/office31_effnetlite0_fp16.npz"
REVIEWS = "sentiment/amazon_reviews_8000.jsonl.gz"
DOMAINS = ("amazon", "webcam", "dslr")
Rows = tuple[NDArray[np.intp], NDArray[np.intp]]


def find(file: str, data: str | None) -> Path | None:
    """Look in the given folder, else in ANYMIX_DATA, else beside the project."""
    folder = Path(data or os.environ.get("ANYMIX_DATA", "../shared/data"))
    if (folder / file).exists():
        return folder / file
    print(f"{file} is not in {folder}: pass the data folder, or set ANYMIX_DATA to it.")
    return None


def office(path: Path) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Features (4110, 1280), classes 0..30, domains 0..2."""
    with np.load(path) as file:
        return file["X"].astype(float), file["y"].astype(np.intp), file["domain"].astype(np.intp)


def office_split(y: NDArray[np.intp], domain: NDArray[np.intp], seed: int) -> Rows:
    """20, 8 and 8 training rows a class; all others are test rows."""
    rng, train = np.random.default_rng(seed), []
    for k, n in enumerate((20, 8, 8)):
        for c in range(31):
            train.append(rng.permutation(np.flatnonzero((domain == k) & (y == c)))[:n])
    rows = np.concatenate(train)
    return rows, np.setdiff1d(np.arange(y.size), rows)


def reviews(path: Path) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any], NDArray[np.intp]]:
    """Title and text, rating, domain, and a number that duplicates of one text share."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = np.array([f"{row['title']} {row['text']}" for row in rows], dtype=object)
    group = np.unique([row["text"] for row in rows], return_inverse=True)[1]
    rating = np.array([float(row["rating"]) for row in rows])
    return texts, rating, np.array([row["domain"] for row in rows]), group


def reviews_split(
    domain: NDArray[Any], group: NDArray[np.intp], seed: int, n_train: int = 1600
) -> Rows:
    """1600 training rows a domain, 400 or a few less test rows: no text is on both sides."""
    place = np.random.default_rng(seed).permutation(group.max() + 1)[group]
    train, test = [], []
    for k in np.unique(domain):
        own = np.flatnonzero(domain == k)
        own = own[np.argsort(place[own], kind="stable")]
        train.append(own[:n_train])
        test.append(own[1600:])
    rows, rest = np.concatenate(train), np.concatenate(test)
    return rows, rest[~np.isin(group[rest], group[rows])]
