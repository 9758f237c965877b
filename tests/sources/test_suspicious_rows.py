"""Rows that a model has seen are known, however few values they have; new rows never are."""

import numpy as np
import pytest

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source, Tables
from anymix.core import SeenRows, SeenRowsSketch
from anymix.core.records import Record
from anymix.densities import GaussianKDE
from anymix.sources import Seen
from anymix.sources.suspicious_rows import far_below, rows_of_others, training_rows


def rounded(n, levels, rng):
    """Rows of two columns, each of few values of which some are common."""
    return np.minimum(rng.geometric(3.0 / levels, size=(n, 2)), levels).astype(float)


def drawn_again(recorded, levels, n_new=50, repeats=40):
    """How often new rows of the same kind are called seen."""
    said = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        known = SeenRows.of(rounded(recorded, levels, rng))
        said.append(known.have_seen(rounded(n_new, levels, rng)))
    return sum(said)


@pytest.mark.parametrize(("recorded", "levels"), [(60, 4), (200, 8), (200, 20), (1000, 12)])
def test_new_rows_of_few_values_are_not_called_seen(recorded, levels):
    assert drawn_again(recorded, levels) <= 1


@pytest.mark.parametrize("levels", [30, 60, 1000])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_rows_that_were_seen_are_called_so(levels, share):
    rng = np.random.default_rng(0)
    rows = rounded(400, levels, rng)
    known, half = SeenRows.of(rows), int(100 * share)
    given = np.concatenate([rows[:half], rounded(100 - half, levels, rng)])
    assert known.have_seen(given)
    assert not known.have_seen(rounded(100, levels, rng))


def test_a_site_of_few_values_has_a_chance_of_its_own():
    """Beside sites of real numbers the share of twins among all rows says nothing of it."""
    rng = np.random.default_rng(1)
    rows = np.concatenate([rounded(200, 6, rng), rng.normal(size=(1800, 2))])
    known = SeenRows.of(rows, np.repeat([0, 1], [200, 1800]))
    new = rounded(50, 6, rng)
    assert known.have_seen(new)  # by all rows together: twins are rare
    assert not known.have_seen(new, 0)
    assert known.have_seen(rows[200:250], 1)


def test_chunks_count_twins_as_the_whole_does():
    rng = np.random.default_rng(2)
    rows, group = rounded(600, 30, rng), rng.integers(3, size=600)
    whole, first, second = SeenRows.of(rows, group), SeenRowsSketch(), SeenRowsSketch()
    first.add(rows[:200], group[:200])
    second.salt = first.salt
    second.add(rows[200:500], group[200:500])
    first.join(second)
    first.add(rows[500:], group[500:])
    found = first.seen_rows()
    assert found.twins == whole.twins
    assert found.n_different == whole.n_different
    assert found.n_rows == 600
    assert sum(twins.n_rows for twins in found.twins[1:]) == found.twins[0].n_rows == 600


def test_a_sample_of_digests_tells_the_share_of_twins():
    rng = np.random.default_rng(3)
    rows = rounded(40_000, 600, rng)
    sketch = SeenRowsSketch()
    for some in np.array_split(rows, 7):
        sketch.add(some)
    found = sketch.seen_rows()
    assert len(found.digests) == 4096
    assert found.twins[0].share == pytest.approx(SeenRows.of(rows).twins[0].share, abs=0.03)


def test_records_of_older_versions_are_read_and_accuse_nobody_by_chance():
    rng = np.random.default_rng(4)
    rows = rounded(200, 20, rng)
    old = {k: v for k, v in SeenRows.of(rows).to_dict().items() if k != "twins"}
    known = SeenRows.from_dict(old)
    assert known.twins == ()
    assert not known.have_seen(rounded(50, 20, rng))
    real = rng.normal(size=(200, 2))
    old = {k: v for k, v in SeenRows.of(real).to_dict().items() if k != "twins"}
    assert SeenRows.from_dict(old).have_seen(real[:50])


def test_twins_are_written_and_read():
    known = SeenRows.of(rounded(100, 6, np.random.default_rng(5)), np.arange(100) % 2)
    again = SeenRows.from_dict(known.to_dict())
    assert again.twins == known.twins
    assert isinstance(again, Record)


def test_sources_are_judged_each_by_its_own_twins():
    rng = np.random.default_rng(6)
    domain = np.repeat([0, 1], 150)
    said = np.concatenate([rounded(150, 5, rng), rng.normal(size=(150, 2))]).T
    tables = Tables(np.zeros((2, 300)), said).labelled(np.zeros(300), domain)
    seen = Seen.of(tables)
    new = np.concatenate([rounded(60, 5, rng), rng.normal(size=(60, 2))]).T
    given = Tables(np.zeros((2, 120)), new).labelled(np.zeros(120), np.repeat([0, 1], 60))
    assert seen.sources(given) == []
    assert seen.sources(tables.taken(np.arange(100, 200))) == [1]


class TestRowsOfOthers:
    """Whether two tables were mixed up: likelier elsewhere, and answered better there."""

    @staticmethod
    def tables(domain, error_at_home=0.1):
        """Rows of a near 0 and of b near 5; each model is right at home."""
        near = np.repeat([0, 1], 50)
        masses = np.where(near == np.arange(2)[:, None], -1.0, -9.0)
        wrong = np.where(near == np.arange(2)[:, None], error_at_home, 1.0)
        return Tables(masses, wrong).labelled(np.zeros(100), domain)

    sources = tuple(Source(name, lambda X: X, lambda X: X) for name in "ab")

    def test_tables_that_were_swapped_are_named(self):
        said = rows_of_others(self.tables(np.repeat([1, 0], 50)), self.sources)
        assert said[0].startswith("50 of the 50 rows of a look more like those of b, whose model")
        assert len(said) == 2

    def test_rows_at_home_are_not(self):
        assert rows_of_others(self.tables(np.repeat([0, 1], 50)), self.sources) == []

    def test_nor_are_rows_that_are_likelier_elsewhere_but_answered_best_at_home(self):
        """Densities are compared before they are calibrated, so that alone they prove nothing."""
        tables = self.tables(np.repeat([1, 0], 50), error_at_home=2.0)
        assert rows_of_others(tables, self.sources) == []


class TestStatedLosses:
    """What a source's owner states against what its model loses on rows called held-out."""

    @staticmethod
    def sources(own_loss, own_rows=200):
        return [
            Source("a", lambda X: X[:, 0], lambda X: -(X[:, 0] ** 2), own_loss, own_rows=own_rows),
            Source("b", lambda X: X[:, 0], lambda X: -((X[:, 0] - 3) ** 2)),
        ]

    @staticmethod
    def rows(error, n=200):
        rng = np.random.default_rng(7)
        X, d = rng.normal(size=(2 * n, 1)), np.repeat(["a", "b"], n)
        return X, X[:, 0] + rng.normal(0, error, 2 * n), d

    def test_rows_with_far_less_loss_are_warned_of_in_fit(self):
        model = DistributionWeightedRegressor.from_sources(self.sources(own_loss=1.0))
        with pytest.warns(UserWarning, match="the rows of a look like rows that its model was"):
            model.fit(*self.rows(error=0.6))

    def test_and_in_certify(self):
        X, y, d = self.rows(error=1.0)
        model = DistributionWeightedRegressor.from_sources(self.sources(own_loss=1.0)).fit(X, y, d)
        X, y, d = self.rows(error=0.5, n=150)
        with pytest.warns(UserWarning, match=r"it loses 0\.2\d+ on them, and 1 on held-out rows"):
            model.certify(X + 1e-3, y, d)

    def test_chance_is_not_warned_of(self):
        tables = Tables(np.zeros((2, 40)), np.zeros((2, 40)))
        rng, said = np.random.default_rng(8), 0
        for _ in range(300):
            given = tables.labelled(rng.normal(size=40), np.arange(40) % 2)
            stated = float(np.mean(rng.normal(size=40) ** 2))
            said += bool(training_rows(given, self.sources(stated, 40)))
        assert said <= 4

    def test_nothing_stated_nothing_said(self):
        assert training_rows(Tables(np.zeros((2, 4)), np.zeros((2, 4))), self.sources(None)) == []
        assert not far_below(np.array([0.1]), 9.0)
        assert far_below(np.zeros(50), 1.0)


def test_calibration_by_rows_of_fit_promises_nothing():
    rng = np.random.default_rng(9)
    X, d = rng.normal(size=(200, 2)), np.repeat(["a", "b"], 100)
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    density = GaussianKDE(bandwidth=0.5)
    model = DistributionWeightedClassifier(density=density, random_state=0).fit(X, y, d)
    with pytest.warns(UserWarning, match="the rows of a, b in calibration were used by fit"):
        model.predict_set(X, calibration=(X, y, d))
    assert model.coverage(calibration=(X, y, d)).ground == "measured"
    new = rng.normal(size=(200, 2))
    assert model.coverage(calibration=(new, y, d)).ground == "exact"
