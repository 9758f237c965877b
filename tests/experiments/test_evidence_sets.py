"""The sets of the evidence: read in every form, cut fairly, and what is missing is said."""

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from experiments import evidence_sets
from experiments.evidence import split
from experiments.evidence_sets import LOADERS, EvidenceSet, copies, made
from experiments.fetch import DataNotFoundError
from experiments.made_up import made_up_evidence


@pytest.mark.parametrize("name", LOADERS)
def test_a_set_that_is_not_there_is_asked_for_in_a_sentence(name, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"is not in .*--data or in ANYMIX_DATA"):
        LOADERS[name](tmp_path)


@pytest.fixture
def hospitals(tmp_path, monkeypatch):
    """Four published files of three patients, the last of them the same one everywhere."""
    for i, name in enumerate(evidence_sets.HOSPITALS):
        rows = [
            f"{40 + i},1,4,130,0,?,0,150,0,1.5,?,?,?,2",
            f"{50 + i},0,1,?,210,0,2,140,1,0,2,0,7,0",
            "60,0,1,120,210,0,2,140,1,0,2,0,7,0",
        ]
        (tmp_path / f"processed.{name}.data").write_text("\n".join(rows) + "\n")
    names = list(evidence_sets.HEART_COLUMNS)
    paths = [tmp_path / f"processed.{name}.data" for name in evidence_sets.HOSPITALS]
    table = pd.concat([pd.read_csv(path, names=names, na_values="?") for path in paths])
    monkeypatch.setattr(evidence_sets, "HEART_SHA256", evidence_sets._digest(table))
    return tmp_path


def test_published_hearts(hospitals):
    found = evidence_sets.load_heart(hospitals)
    assert found.domains == list(evidence_sets.HOSPITALS)
    assert found.y.tolist() == [1, 0, 0] * 4
    assert found.X["chol"].isna().tolist() == [True, False, False] * 4
    assert found.X["cp"].tolist()[:3] == ["4", "1", "1"]
    assert pd.isna(found.X["slope"].iloc[0])
    assert len(set(found.groups[2::3])) == 1


def test_rows_that_were_not_published_are_refused(hospitals):
    path = hospitals / "processed.va.data"
    path.write_text(path.read_text().replace("210", "211"))
    with pytest.raises(DataNotFoundError, match="rows as published"):
        evidence_sets.load_heart(hospitals)


def test_published_houses(tmp_path, monkeypatch):
    table = pd.DataFrame(
        {
            "longitude": [-122.0, -118.0, -119.0],
            "total_bedrooms": [3.0, None, 4.0],
            "median_house_value": [np.e, np.e**2, 1.0],
            "ocean_proximity": ["INLAND", "NEAR BAY", "ISLAND"],
        }
    )
    table.to_csv(tmp_path / "housing.csv", index=False)
    monkeypatch.setattr(evidence_sets, "HOUSING_SHA256", evidence_sets._digest(table.iloc[:, :3]))
    found = evidence_sets.load_housing(tmp_path)
    assert found.domains == ["INLAND", "NEAR BAY"]
    np.testing.assert_allclose(found.y, [1.0, 2.0])
    assert list(found.X.columns) == ["longitude", "total_bedrooms"]


def test_cars_lose_what_names_their_make(tmp_path):
    table = pd.DataFrame(
        {"make": ["a", "b"], "model": ["A1", "B1"], "price": [1, 10], "fuelType": ["x", "y"]}
    )
    table.to_csv(tmp_path / "uk_used_cars_9_makes.csv.gz", index=False)
    found = evidence_sets.load_cars(tmp_path)
    assert list(found.X.columns) == ["fuelType"]
    np.testing.assert_allclose(found.y, np.log([1, 10]))


def test_tweets_come_once_and_without_names(tmp_path):
    table = pd.DataFrame(
        {
            "airline": ["A", "A", "B"],
            "airline_sentiment": ["positive", "positive", "negative"],
            "text": ["@a thanks", "@a thanks", "@b thanks"],
        }
    )
    table.to_csv(tmp_path / "airline_tweets.csv.gz", index=False)
    found = evidence_sets.load_airline(tmp_path)
    assert found.X == ["atname thanks"] * 2
    assert found.groups.tolist() == [0, 0]


def test_visual_words_are_counted(tmp_path):
    for file in evidence_sets.SURF.values():
        words = np.array([[1, 3], [0, 0]], dtype=np.uint8)
        savemat(tmp_path / file.name, {"fts": words, "labels": np.array([[1], [2]])})
    found = evidence_sets.load_surf(tmp_path)
    assert found.domains == ["amazon", "caltech", "dslr", "webcam"]
    np.testing.assert_array_equal(found.X[:2], [[1, 3], [0, 0]])
    assert found.y.tolist() == [1, 2] * 4


def test_copies_share_a_number_whatever_the_rows_are():
    frame = pd.DataFrame({"a": [1.0, None, None, 1.0], "b": ["x", "y", "y", "z"]})
    assert copies(frame).tolist() == [0, 1, 1, 2]
    assert copies(["x", "y", "x"]).tolist() == [0, 1, 0]
    assert copies(np.array([[1.0], [2.0], [1.0]])).tolist() == [0, 1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_a_split_tears_no_group_and_is_fair_to_each_domain(seed):
    rng = np.random.default_rng(seed)
    domain = np.repeat(["a", "b", "c"], [400, 100, 50])
    rows = EvidenceSet("x", "vectors", None, domain, domain, rng.integers(0, 150, 550), False)
    train, test = split(rows, seed)
    assert sorted(np.r_[train, test]) == list(range(550))
    assert not np.intersect1d(rows.groups[train], rows.groups[test]).size
    assert abs(len(test) / 550 - 0.3) < 0.05
    apart = rows._replace(groups=np.arange(550))
    shares = [np.mean(domain[split(apart, seed)[1]] == name) for name in "abc"]
    np.testing.assert_allclose(shares, np.array([120, 30, 15]) / 165)
    assert not np.array_equal(split(rows, seed)[1], split(rows, seed + 1)[1])


@pytest.mark.parametrize("kind", range(3))
def test_some_rows_of_any_kind_are_taken(kind):
    rows = made_up_evidence(10)[kind]
    part = rows.take(np.array([12, 3]))
    again = made(rows.name, rows.kind, part.X, part.y, part.domain, rows.classification)
    assert part.y.tolist() == rows.y[[12, 3]].tolist() == again.y.tolist()
    assert part.domain.tolist() == rows.domain[[12, 3]].tolist()
    assert copies(part.X).tolist() == [0, 1]
    assert part.groups.tolist() == rows.groups[[12, 3]].tolist()


def test_pandas_is_named_where_it_is_missing(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(evidence_sets, "import_module", absent)
    with pytest.raises(ImportError, match="pip install pandas"):
        evidence_sets.need_pandas()


SIZES = {
    "heart": (920, 4),
    "housing": (8000, 4),
    "cars": (11000, 9),
    "airline": (14427, 6),
    "reviews": (8000, 4),
    "office": (4110, 3),
    "surf": (2533, 4),
    "digits": (4290, 3),
}


@pytest.mark.parametrize("name", LOADERS)
def test_real_sets_have_the_sizes_that_the_page_states(name, real_data):
    found = LOADERS[name](real_data)
    assert found.name == name
    assert (len(found.y), len(found.domains)) == SIZES[name]
    assert found.groups.max() < len(found.y)
