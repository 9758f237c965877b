"""The data sets of the paper, in their published formats or in a compact one.

Each loader takes the folder of the data.  It prefers the compact file if the folder has one, then
the published files, and without a folder downloads the published files.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.fetch import DataNotFoundError, Published, find, obtain

REVIEW_DOMAINS = ("kitchen", "dvd", "books", "electronics")
BLITZER = Published(
    "domain_sentiment_data.tar.gz",
    "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/domain_sentiment_data.tar.gz",
)
# Of the eight review files in the order of their names; the archive has more in it than these.
BLITZER_SHA256 = "bdf4f8ffa6caf0edd8f9fbe362f459dc0e005fd7a138b9310e1644abe70cff4d"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
_SVHN = "http://ufldl.stanford.edu/housenumbers/"
MNIST = {
    name: Published(name, _MNIST + name, f"md5:{checksum}")
    for name, checksum in {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }.items()
}
USPS = {
    "train": Published("usps.bz2", _USPS + "usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"),
    "test": Published("usps.t.bz2", _USPS + "usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
}
SVHN = {
    part: Published(f"{part}_32x32.mat", f"{_SVHN}{part}_32x32.mat", f"md5:{checksum}")
    for part, checksum in {
        "train": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "test": "eb5a983be6a315427106f1b164d9cef3",
    }.items()
}


class Reviews(NamedTuple):
    """Title and text of each review, its rating (1, 2, 4, 5), its domain: 0..3 for K, D, B, E."""

    texts: list[str]
    ratings: NDArray[np.float64]
    domain: NDArray[np.intp]


class Images(NamedTuple):
    """Images (n, height, width[, 3]) as uint8, and digits 0..9."""

    x_train: NDArray[np.uint8]
    y_train: NDArray[np.intp]
    x_test: NDArray[np.uint8]
    y_test: NDArray[np.intp]


class Features(NamedTuple):
    """Features or pixels (n, d) of images, their class and their domain."""

    X: NDArray[Any]
    y: NDArray[np.intp]
    domain: NDArray[np.intp]


def load_reviews(data: Path | None = None) -> Reviews:
    """Product reviews of four domains, 2000 each (Blitzer, Dredze and Pereira 2007).

    Reads a compact `amazon_reviews_8000.jsonl.gz`, or any tar archive of `.review` files.

    Paper: Sec. 5.1.
    """
    compact = find(data, ["amazon_reviews_8000.jsonl.gz"])
    if compact is not None:
        with gzip.open(compact, "rt", encoding="utf-8") as stream:
            return _reviews(json.loads(line) for line in stream)
    archive = find(data, ["blitzer2007_unprocessed_4dom.tar.xz"]) or obtain(data, BLITZER)
    files = review_files(archive)
    if data is None and _digest(files.values()) != BLITZER_SHA256:
        raise DataNotFoundError(
            f"{archive} does not hold the reviews as published; delete it and try again."
        )
    return _reviews(
        {"domain": next(d for d in REVIEW_DOMAINS if d in name), **review}
        for name, content in files.items()
        for review in parse_reviews(content.decode("utf-8", errors="replace"))
    )


def _reviews(rows: Iterable[dict[str, Any]]) -> Reviews:
    kept = list(rows)
    if not kept:
        raise DataNotFoundError("The file holds no reviews of the four domains; download it again.")
    return Reviews(
        [f"{row['title']} {row['text']}" for row in kept],
        np.array([row["rating"] for row in kept], dtype=np.float64),
        np.array([REVIEW_DOMAINS.index(row["domain"]) for row in kept], dtype=np.intp),
    )


def review_files(archive: Path) -> dict[str, bytes]:
    """Return the labelled `.review` files of the four domains, whatever folders they lie in."""
    wanted = re.compile(rf"({'|'.join(REVIEW_DOMAINS)}).*(negative|positive)\.review$")
    with tarfile.open(archive) as files:
        members = sorted(files.getmembers(), key=lambda member: member.name)
        contents = ((m.name, files.extractfile(m)) for m in members if wanted.search(m.name))
        return {name: content.read() for name, content in contents if content is not None}


def _digest(contents: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()


def parse_reviews(text: str) -> list[dict[str, Any]]:
    r"""Return rating, title and text of each review of a published `.review` file.

    >>> parse_reviews("<review>\n<rating>\n4.0\n</rating>\n<title>\nGood\n</title>\n"
    ...               "<review_text>\nA pan.\n</review_text>\n</review>")
    [{'rating': 4.0, 'title': 'Good', 'text': 'A pan.'}]
    """
    return [
        {
            "rating": float(_tag(part, "rating")),
            "title": _tag(part, "title"),
            "text": _tag(part, "review_text"),
        }
        for part in re.findall(r"<review>(.*?)</review>", text, re.DOTALL)
    ]


def _tag(part: str, name: str) -> str:
    found = re.search(rf"<{name}>(.*?)</{name}>", part, re.DOTALL)
    return found[1].strip() if found else ""


def load_mnist(data: Path | None = None) -> Images:
    """MNIST, 60 000 and 10 000 images of 28 × 28 (LeCun, Cortes and Burges)."""
    compact = find(data, ["mnist.npz"])
    if compact is not None:
        return _images(np.load(compact))
    parts = [read_idx(obtain(data, file)) for file in MNIST.values()]
    return Images(parts[0], parts[1].astype(np.intp), parts[2], parts[3].astype(np.intp))


def _images(arrays: Any, name: str = "") -> Images:
    x, y = f"{name}x_", f"{name}y_"
    return Images(
        arrays[f"{x}train"],
        arrays[f"{y}train"].astype(np.intp),
        arrays[f"{x}test"],
        arrays[f"{y}test"].astype(np.intp),
    )


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read a gzipped idx file of bytes: two zeros, 8, the rank, the shape, the bytes."""
    with gzip.open(path) as stream:
        raw = stream.read()
    if raw[:3] != b"\x00\x00\x08":
        raise DataNotFoundError(f"{path.name} is not an idx file of bytes; download it again.")
    rank = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=rank, offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * rank).reshape(tuple(shape)).copy()


def load_usps(data: Path | None = None) -> Images:
    """USPS, 7291 and 2007 images of 16 × 16 (Hull 1994)."""
    compact = find(data, ["usps.npz"])
    if compact is not None:
        raw = _images(np.load(compact))
        # Stored as 2000 x with x in [0, 1].
        return raw._replace(x_train=_bytes(raw.x_train / 2000), x_test=_bytes(raw.x_test / 2000))
    train, test = (read_usps(obtain(data, USPS[part])) for part in ("train", "test"))
    return Images(*train, *test)


def read_usps(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Read lines of "label index:value ..." with labels 1..10 and values in [-1, 1]."""
    with bz2.open(path, "rt", encoding="ascii") as stream:
        rows = [line.split() for line in stream]
    x = np.array([[float(cell.partition(":")[2]) for cell in row[1:]] for row in rows])
    y = np.array([int(float(row[0])) - 1 for row in rows], dtype=np.intp)
    return _bytes((x.reshape(-1, 16, 16) + 1) / 2), y


def _bytes(x: NDArray[Any]) -> NDArray[np.uint8]:
    return np.rint(255 * x).astype(np.uint8)


def load_svhn(data: Path | None = None) -> Images:
    """SVHN, 73 257 and 26 032 colour images of 32 × 32 (Netzer et al. 2011)."""
    compact = [find(data, [f"svhn_{part}_rgb32_webp.npz"]) for part in ("train", "test")]
    if compact[0] is not None and compact[1] is not None:
        return Images(*_read_webp(compact[0]), *_read_webp(compact[1]))
    train, test = (read_svhn(obtain(data, SVHN[part])) for part in ("train", "test"))
    return Images(*train, *test)


def read_svhn(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Read a published .mat file: X is (32, 32, 3, n), and the digit 0 is labelled 10."""
    from scipy.io import loadmat

    arrays = loadmat(path)
    x = np.ascontiguousarray(np.moveaxis(arrays["X"], 3, 0))
    return x, arrays["y"].ravel().astype(np.intp) % 10


def _read_webp(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Read strips of lossless WebP; needs Pillow."""
    from PIL import Image

    with np.load(path) as arrays:
        webp, offset, y = arrays["webp"], arrays["offset"], arrays["y"]
    strips = [
        np.asarray(Image.open(io.BytesIO(webp[a:b].tobytes())).convert("RGB"))
        for a, b in pairwise(offset)
    ]
    return np.concatenate([s.reshape(-1, 32, 32, 3) for s in strips]), y.astype(np.intp)


def load_small_digits(data: Path | None = None) -> dict[str, Images]:
    """SVHN, MNIST and USPS as grey 32 × 32, 6000 and 2000 images each, from the compact file."""
    path = find(data, ["digits_small_gray32.npz"])
    if path is None:
        raise DataNotFoundError(
            "digits_small_gray32.npz is not in the data folder; name the folder that holds it with "
            "--data or in ANYMIX_DATA, or run the full study."
        )
    with np.load(path) as arrays:
        return {name: _images(arrays, f"{name}_") for name in ("svhn", "mnist", "usps")}


def load_office(data: Path | None = None) -> Features:
    """Office-31 as features of a network that was not fine-tuned; domains amazon, webcam, dslr."""
    path = find(data, ["office31_effnetlite0_fp16.npz"])
    if path is None:
        raise DataNotFoundError(
            "office31_effnetlite0_fp16.npz is not in the data folder; name the folder that holds "
            "it with --data or in ANYMIX_DATA (arrays X, y, domain of all 4110 images)."
        )
    with np.load(path) as arrays:
        X, y, domain = arrays["X"], arrays["y"], arrays["domain"]
    return Features(X.astype(np.float32), y.astype(np.intp), domain.astype(np.intp))
