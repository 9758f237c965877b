"""Estimators name who harms whom, and learn z without the rows of some."""

import numpy as np
import pytest
from sklearn.base import clone

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.estimators import summarise
from tests.sources.poisoned import NAMES, honest, losses, lying

pytestmark = pytest.mark.filterwarnings("ignore::anymix.core.SolverWarning")
SOURCES = [Source(name, lambda X: X[:, 0], lambda X: -(X[:, 0] ** 2)) for name in NAMES]


def fitted(tables, **settings):
    return DistributionWeightedRegressor.from_sources(SOURCES, **settings).fit_tables(tables)


@pytest.fixture(scope="module")
def poisoned():
    return fitted(lying(honest()))


def test_a_lying_site_is_named_in_the_words_of_the_model(poisoned):
    said = poisoned.describe()
    assert "The rows of west raise the held-out loss of north from 39" in said
    assert "look first at the rows of west, of which its own density claims 0 %" in said
    assert "set_aside" in said


def test_honest_sites_are_not():
    said = fitted(honest()).describe()
    assert "raise" not in said
    assert "set aside" not in said


@pytest.mark.parametrize("asked", [["west"], "worst"])
def test_a_lie_that_is_set_aside_costs_the_others_little(poisoned, asked):
    tables = honest()
    robust = fitted(lying(tables), set_aside=asked)
    assert robust.set_aside_ == ("west",)
    plain, lied, mended = (
        losses(tables, model.combination_) for model in (fitted(tables), poisoned, robust)
    )
    assert lied[0] > 100 * plain[0]
    assert mended[0] < 2 * plain[0]
    said = robust.describe()
    assert "The rows of west did not choose z; the certificate covers them all the same." in said
    assert "The rows of west raise" not in said


def test_worst_changes_nothing_for_honest_sites():
    one, other = fitted(honest()), fitted(honest(), set_aside="worst")
    assert other.set_aside_ == ()
    np.testing.assert_array_equal(one.z_, other.z_)
    # The rows could have chosen from four ways, and the certificate pays for all of them.
    assert other.certificate_.n_candidates == 4 * one.certificate_.n_candidates
    if one.certificate_.regret_upper is not None:
        assert one.certificate_.regret_upper < other.certificate_.regret_upper


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("west", "takes a list of names, or 'worst'; got 'west'"),
        (["east"], "names 'east'; the sources are north, south, west"),
        (["north", "west"], "would leave the rows of fewer than 2 sources to choose z"),
    ],
)
def test_names_that_cannot_be_set_aside(asked, complaint):
    with pytest.raises(ValueError, match=complaint):
        fitted(honest(), set_aside=asked)


def test_two_sources_cannot_spare_one():
    tables = honest().without([1])
    model = DistributionWeightedRegressor.from_sources(SOURCES[::2], set_aside="worst")
    with pytest.raises(ValueError, match="fewer than 2 sources"):
        model.fit_tables(tables)


def test_influence_is_found_once_for_each_fit():
    model = fitted(honest())
    first = model.influence_
    assert model.influence_ is first
    again = model.fit_tables(honest(seed=1)).influence_
    assert not np.allclose(again.losses, first.losses)


@pytest.mark.filterwarnings("ignore:sample_domain names the one source")
def test_one_source_has_no_influence():
    rng = np.random.default_rng(0)
    X, domain = rng.normal(size=(40, 2)), np.repeat("a", 40)
    model = DistributionWeightedRegressor(random_state=0).fit(X, X[:, 0], sample_domain=domain)
    with pytest.raises(AttributeError, match="has no influence_: it was fitted with one source"):
        model.influence_  # noqa: B018


def test_rows_are_set_aside_where_sources_are_trained_too():
    rng = np.random.default_rng(0)
    domain = np.repeat([3, 5, 8], 40)
    X = rng.normal(size=(120, 2)) + domain[:, None]
    y = np.where(X[:, 0] + rng.normal(size=120) > domain, "yes", "no")
    asked = clone(DistributionWeightedClassifier(random_state=0, set_aside=["5"]))
    for rule in ("marginal", "normalised"):
        model = asked.set_params(rule=rule).fit(X, y, sample_domain=domain)
        assert model.set_aside_ == ("5",)
        assert model.influence_.names == ("3", "5", "8")


def test_what_a_report_is_told(poisoned):
    record = summarise(poisoned)
    assert record["set_aside"] is None
    assert record["influence"]["sentences"] == poisoned.influence_.sentences()
    assert np.shape(record["influence"]["rows"]) == (3, 3)
