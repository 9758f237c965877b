"""Arrays of boosted trees that strangers may send: they are refused, or safe to ask."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from anymix.densities.boosted_graph import ensemble_attributes
from anymix.densities.boosted_trees import BoostedTrees
from tests.exchange.boosted_cases import asked, fitted


@cache
def spoiled():
    """Name arrays that strangers may send, by what was done to honest ones."""
    good = BoostedTrees.of(fitted("four classes")).to_arrays()
    split = np.flatnonzero((good["kinds"] & 1) == 0)
    category = np.flatnonzero(good["kinds"] & 2)
    number = np.flatnonzero((good["kinds"] & 3) == 0)
    leaf = np.flatnonzero(good["kinds"] & 1)

    def put(name, where, value):
        array = good[name].copy()
        array[where] = value
        return good | {name: array}

    chain = {"sizes": [2**13 + 1], "kinds": np.r_[np.zeros(2**12), np.ones(2**12 + 1)]}
    chain |= {"left": np.r_[2**12 + np.arange(2**12), np.zeros(2**12 + 1)]}
    chain |= {"right": np.r_[1 + np.arange(2**12 - 1), 2**13, np.zeros(2**12 + 1)]}
    chain |= dict.fromkeys(("values", "features", "set_of"), np.zeros(2**13 + 1))
    chain |= {"baseline": [0.0], "categories": [], "n_categories": [0] * 5}
    deep = {n: np.asarray(v, dtype=good[n].dtype) for n, v in chain.items()}
    return {
        "one is missing": {n: a for n, a in good.items() if n != "left"},
        "one too many": good | {"more": np.zeros(1)},
        "another type": good | {"left": good["left"].astype(np.float64)},
        "another shape": good | {"left": good["left"][:, None]},
        "cut off": good | {"values": good["values"][:-1]},
        "all cut off": {n: a[:-1] if n in ("kinds", "left") else a for n, a in good.items()},
        "no trees": {n: a if "cat" in n or n == "baseline" else a[:0] for n, a in good.items()},
        "no scores": good | {"baseline": np.empty(0)},
        "too few trees": good | {"baseline": np.zeros(3)},
        "sizes below zero": put("sizes", [0, 1], [-5, good["sizes"][:2].sum() + 5]),
        "sizes beyond": put("sizes", 0, 2**62),
        "a loop": put("left", split[1], 0),
        "its own child": put("right", split[1], split[1]),
        "a child beyond": put("right", split[1], 2**31),
        "a child below zero": put("left", split[1], -1),
        "a child beyond the tree": put("right", split[0], good["sizes"][0]),
        "two parents": put("left", split[0], good["right"][split[0]]),
        "a leaf with a child": put("left", leaf[0], 1),
        "a column beyond": put("features", split[2], 5),
        "a column below zero": put("features", split[2], -1),
        "a set beyond": put("set_of", category[0], len(good["sets"])),
        "a set below zero": put("set_of", category[0], -1),
        "sets of another size": good | {"sets": good["sets"][:, :16]},
        "a kind that is not known": put("kinds", split[0], 128),
        "a number where categories are": put("features", number[0], 1),
        "categories where numbers are": put("features", category[0], 0),
        "a leaf that is no number": put("values", leaf[3], np.nan),
        "a leaf beyond all numbers": put("values", leaf[3], 1e200),
        "an infinite threshold": put("values", number[0], np.inf),
        "a baseline that is no number": put("baseline", 0, np.nan),
        "a category that is no number": put("categories", 0, np.nan),
        "categories in disorder": put("categories", 0, 9.0),
        "too many categories": put("n_categories", 1, 300),
        "too few columns": good | {"n_categories": good["n_categories"][:-1]},
        "categories of a hidden column": put("n_categories", 0, 5),
        "walks that are long": good | deep,
    }


@pytest.mark.parametrize("name", spoiled())
def test_arrays_of_strangers_are_refused(name):
    with pytest.raises(ValueError, match=r"^(has|must|needs) [^.]*[^.]$"):
        BoostedTrees.from_arrays(spoiled()[name], 5)


def test_arrays_at_random_are_refused_or_answer():
    good = BoostedTrees.of(fitted("four classes")).to_arrays()
    rng, seen, rows = np.random.default_rng(9), Counter(), asked(50, 10)
    for _ in range(400):
        name = rng.choice(sorted(good))
        array = good[name].copy().ravel()
        where = rng.integers(array.size, size=rng.integers(1, 4))
        array[where] = rng.permutation(array)[where] if rng.random() < 0.6 else rng.integers(100)
        try:
            trees = BoostedTrees.from_arrays(good | {name: array.reshape(good[name].shape)}, 5)
        except ValueError:
            seen["refused"] += 1
            continue
        seen["answered"] += 1
        assert np.isfinite(trees.raw_predict(rows)).all()
        assert len(ensemble_attributes(trees)["target_ids"]) == (trees.kinds & 1).sum()
    assert min(seen["refused"], seen["answered"]) > 50
