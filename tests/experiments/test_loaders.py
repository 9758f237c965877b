import bz2
import gzip
import io
import json
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from experiments import fetch, loaders
from experiments.fetch import DataNotFoundError, Published, find, obtain

REVIEW = """<review>
<rating>
{}
</rating>
<title>
{}
</title>
<review_text>
{}
</review_text>
</review>
"""


def write_archive(path, mode):
    with tarfile.open(path, mode) as archive:
        for domain in ("kitchen_&_housewares", "dvd", "books", "electronics", "toys"):
            for sign, rating in (("negative", 1.0), ("positive", 5.0), ("unlabeled", 4.0)):
                content = REVIEW.format(rating, f"{sign} {domain}", "Caf\xe9 a < b").encode(
                    "latin-1"
                )
                info = tarfile.TarInfo(f"sorted_data_acl/{domain}/{sign}.review")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("domain_sentiment_data.tar.gz", "w:gz"), ("blitzer2007_unprocessed_4dom.tar.xz", "w:xz")],
)
def test_published_reviews(tmp_path, name, mode):
    write_archive(tmp_path / name, mode)
    found = loaders.load_reviews(tmp_path)
    assert np.bincount(found.domain).tolist() == [2, 2, 2, 2]
    assert sorted(set(found.ratings)) == [1.0, 5.0]
    kitchen = [t for t, k in zip(found.texts, found.domain, strict=True) if k == 0]
    assert kitchen[0] == "negative kitchen_&_housewares Caf\ufffd a < b"


def test_compact_reviews_are_preferred(tmp_path):
    row = {"domain": "books", "rating": 2.0, "title": "A", "text": "b", "asin": "", "label": 0}
    (tmp_path / "sentiment").mkdir()
    with gzip.open(tmp_path / "sentiment" / "amazon_reviews_8000.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(row) + "\n")
    found = loaders.load_reviews(tmp_path)
    assert (found.texts, found.ratings.tolist(), found.domain.tolist()) == (["A b"], [2.0], [2])


def test_a_download_with_other_contents_is_refused(tmp_path, monkeypatch):
    write_archive(tmp_path / "x.tar.gz", "w:gz")
    monkeypatch.setattr(loaders, "obtain", lambda data, file: tmp_path / "x.tar.gz")
    with pytest.raises(DataNotFoundError, match="as published"):
        loaders.load_reviews(None)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.tobytes())


def test_published_mnist(tmp_path):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 256, (3, 28, 28), dtype=np.uint8), np.array([7, 1, 0], np.uint8)] * 2
    for name, part in zip(loaders.MNIST, parts, strict=True):
        (tmp_path / name).write_bytes(idx(part))
    found = loaders.load_mnist(tmp_path)
    np.testing.assert_array_equal(found.x_train, parts[0])
    assert found.y_test.tolist() == [7, 1, 0]
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"no idx file"))
    with pytest.raises(DataNotFoundError, match="idx"):
        loaders.load_mnist(tmp_path)


def test_published_usps(tmp_path):
    values = np.linspace(-1, 1, 256)
    line = "10 " + " ".join(f"{i + 1}:{v:.6f}" for i, v in enumerate(values)) + "\n"
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / name).write_bytes(bz2.compress((line * 2).encode()))
    found = loaders.load_usps(tmp_path)
    assert found.y_train.tolist() == [9, 9]
    np.testing.assert_array_equal(found.x_test[0].ravel(), np.arange(256))


def test_published_svhn(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 2), dtype=np.uint8)
    for part in ("train", "test"):
        savemat(tmp_path / f"{part}_32x32.mat", {"X": x, "y": np.array([[10], [3]])})
    found = loaders.load_svhn(tmp_path)
    np.testing.assert_array_equal(found.x_train[1], x[..., 1])
    assert found.y_test.tolist() == [0, 3]


@pytest.mark.parametrize("load", [loaders.load_small_digits, loaders.load_office])
def test_features_that_nobody_publishes_are_asked_for_in_a_sentence(load, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"npz is not in the data folder; .*ANYMIX_DATA"):
        load(tmp_path)


FILE = Published("a.bin", "https://example.org/a.bin", "md5:0")


def test_a_missing_file_names_itself_its_address_and_its_place(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"a\.bin .*https://example\.org/a\.bin.*--data"):
        obtain(tmp_path, FILE)
    with pytest.raises(DataNotFoundError, match="is not a folder"):
        find(tmp_path / "none", ["a"])


class NoNetwork:
    @staticmethod
    def os_cache(name):
        return name

    @staticmethod
    def retrieve(address, **options):
        assert options["known_hash"] == "md5:0"
        assert options["progressbar"]
        raise ConnectionError(address)


def test_without_network_or_pooch_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setattr(fetch, "import_module", lambda name: NoNetwork)
    with pytest.raises(DataNotFoundError, match=r"a\.bin could not be downloaded.*example\.org"):
        obtain(None, FILE)

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(fetch, "import_module", absent)
    with pytest.raises(DataNotFoundError, match=r"pip install pooch.*example\.org"):
        obtain(None, FILE)


def test_real_reviews_are_the_same_in_both_forms(real_data, tmp_path):
    archive = real_data / "sentiment" / "blitzer2007_unprocessed_4dom.tar.xz"
    (tmp_path / archive.name).symlink_to(archive)
    compact, raw = loaders.load_reviews(real_data), loaders.load_reviews(tmp_path)
    assert sorted(compact.texts) == sorted(raw.texts)
    assert np.bincount(compact.domain).tolist() == [2000] * 4
    assert loaders._digest(loaders.review_files(archive).values()) == loaders.BLITZER_SHA256


def test_real_images_have_the_published_sizes(real_data):
    small = loaders.load_small_digits(real_data)
    assert set(small) == {"svhn", "mnist", "usps"}
    assert all(images.x_train.shape == (6000, 32, 32) for images in small.values())
    usps, office = loaders.load_usps(real_data), loaders.load_office(real_data)
    assert usps.x_train.shape == (7291, 16, 16)
    assert usps.x_train.max() == 255
    assert np.bincount(office.domain).tolist() == [2817, 795, 498]
