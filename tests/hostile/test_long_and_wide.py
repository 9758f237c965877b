"""Tables that are long or wide cost no more than they hold."""

import os

import numpy as np

from anymix.cli import packing
from anymix.tables import count_rows


def test_a_sparse_file_of_a_terabyte_is_not_counted_to_its_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "1,2,3\n" * 10)
    os.truncate(path, 2**40)
    assert count_rows(path) <= 11


def test_no_mixture_is_tried_that_could_not_be_read(monkeypatch):
    """Of 5000 columns it took gigabytes and minutes."""
    monkeypatch.setitem(packing.DENSITIES, "mixture", None)
    rows = np.random.default_rng(0).normal(size=(12, packing.MOST_MIXED + 1))
    assert packing.likelier_density(rows, 0) == "kernels"
