"""The public reference: what sites tell, how it is joined, and that it is a distribution."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from anymix.densities import Reference, Summary
from anymix.densities.centres import PooledKernels
from anymix.densities.site_summary import standard
from anymix.exceptions import InputError
from anymix.tables import Columns

KINDS = ("marginals", "centres", "both")


def table(n=400, seed=0, shift=0.0):
    """Two columns of numbers that depend on each other, codes, words and gaps."""
    rng = np.random.default_rng(seed)
    a = rng.normal(shift, 1, n)
    found = pd.DataFrame(
        {
            "a": a,
            "b": 100 * (a + rng.normal(0, 0.5, n)),
            "code": rng.choice([1, 2, 4], n, p=[0.5, 0.3, 0.2]),
            "word": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
        }
    )
    found.loc[rng.random(n) < 0.2, "b"] = np.nan
    found.loc[rng.random(n) < 0.1, "word"] = None
    return found


def sites(kind="marginals"):
    return [
        Summary.of(table(300, 1), name="north", kind=kind, random_state=0),
        Summary.of(table(100, 2, shift=4), name="south", kind=kind, random_state=0),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_it_sums_to_one_over_all_that_can_be_drawn(kind):
    """The mean of 1/U times any density q, over draws of U, is the mass of q where U is."""
    U = Reference.of(table(), kind, random_state=0)
    drawn = U.sample(40_000, random_state=1)
    keep = (
        np.isnan(drawn[:, 1]) & (drawn[:, 2] == 2) & (drawn[:, 3] == 0) & (np.abs(drawn[:, 0]) < 1)
    )
    q = np.where(keep, np.log(0.5), -np.inf)
    ratios = np.exp(q - U.log_density(drawn))
    assert ratios.mean() == pytest.approx(1, abs=5 * ratios.std() / np.sqrt(len(drawn)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_plane_integrates_to_one(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) @ [[1.0, 1.0]] + 0.4 * rng.normal(size=(60, 2))
    U = Reference.of(X, kind, random_state=0)
    side = np.linspace(-9, 9, 721)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    step = (side[1] - side[0]) ** 2
    assert np.exp(U.log_density(points)).sum() * step == pytest.approx(1, abs=0.02)


def test_codes_words_and_gaps_of_a_small_table_sum_to_one():
    X = table()[["code", "word"]]
    for kind in KINDS:
        U = Reference.of(X, kind, random_state=0)
        every = [[c, w] for c in (1.0, 2.0, 4.0, np.nan) for w in (0.0, 1.0, 2.0, np.nan)]
        assert np.exp(U.log_density(np.array(every))).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_look_like_the_rows(kind):
    rows = table(2000)
    U = Reference.of(rows, kind, random_state=0)
    drawn, known = U.sample(6000, random_state=0), U.columns.encode(rows)
    np.testing.assert_array_equal(U.sample(6000, random_state=0), drawn)
    assert set(drawn[:, 2]) == {1.0, 2.0, 4.0}
    np.testing.assert_allclose(np.isnan(drawn).mean(0), np.isnan(known).mean(0), atol=0.02)
    np.testing.assert_allclose(np.nanmean(drawn, 0), np.nanmean(known, 0), atol=5, rtol=0.1)
    np.testing.assert_allclose(np.nanstd(drawn, 0), np.nanstd(known, 0), rtol=0.15)
    both = ~np.isnan(drawn[:, 1])
    together = np.corrcoef(drawn[both, 0], drawn[both, 1])[0, 1]
    expected = {"marginals": (-0.05, 0.05), "centres": (0.7, 1.0), "both": (0.3, 0.6)}[kind]
    assert expected[0] < together < expected[1]


def test_both_is_half_of_each():
    U = Reference.of(table(), "both", random_state=0)
    rows = U.sample(200, random_state=0)
    parts = [np.exp(Reference(kind, U.summaries).log_density(rows)) for kind in KINDS]
    np.testing.assert_allclose(parts[2], (parts[0] + parts[1]) / 2)


def test_kernels_are_those_of_scipy():
    means, deviations = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[1.0, 0.5], [2.0, 0.1]])
    kernels = PooledKernels(means, deviations, np.array([0.25, 0.75]), (None, None))
    x = np.array([[0.5, 2.0], [1.0, np.nan], [np.nan, np.nan]])
    found = np.exp(kernels.log_density(x))
    first = norm.pdf(x[0], means, deviations).prod(axis=1) @ kernels.weights
    second = norm.pdf(1.0, means[:, 0], deviations[:, 0]) @ kernels.weights
    np.testing.assert_allclose(found, [first, second, 1.0])


def test_a_column_of_few_numbers_is_drawn_as_the_nearest():
    grid = np.array([0.0, 1.0, 5.0])
    kernels = PooledKernels(np.array([[0.7]]), np.array([[1.0]]), np.ones(1), (grid,))
    drawn = kernels.sample(20_000, np.random.RandomState(0))
    assert set(drawn[:, 0]) == {0.0, 1.0, 5.0}
    shares = np.exp(kernels.log_density(grid[:, None]))
    exact = np.diff(norm.cdf([-np.inf, 0.5, 3.0, np.inf], 0.7, 1.0))
    np.testing.assert_allclose(shares, exact)
    np.testing.assert_allclose([np.mean(drawn == v) for v in grid], exact, atol=0.015)
    assert kernels.log_density(np.array([[0.3]]))[0] == pytest.approx(np.log(1e-9))


def test_far_rows_are_very_unlikely_and_finite():
    for kind in KINDS:
        U = Reference.of(np.random.default_rng(0).normal(size=(300, 2)), kind, random_state=0)
        logs = U.log_density(np.array([[0.0, 0.0], [1e6, 0.0], [-1e3, 1e3]]))
        assert np.isfinite(logs).all()
        assert (logs[1:] < logs[0] - 500).all()


def test_the_marginals_of_all_sites_are_mixed_by_their_rows():
    U = Reference.from_summaries(sites())
    np.testing.assert_allclose(U.weights, [0.75, 0.25])
    one = [Reference("marginals", (s,)) for s in U.summaries]
    row = np.array([[1.0, np.nan, 2.0, 1.0]])
    by_column = [
        0.75 * np.exp(one[0]._log_columns(row, [j])) + 0.25 * np.exp(one[1]._log_columns(row, [j]))
        for j in range(4)
    ]
    np.testing.assert_allclose(np.exp(U.log_density(row)), np.prod(by_column, axis=0))
    drawn = U.sample(8000, random_state=0)[:, 0]
    assert np.mean(drawn > 2) == pytest.approx(0.25, abs=0.03)


def test_scales_and_medians_are_near_those_of_all_rows():
    rows = pd.concat([table(300, 1), table(100, 2, shift=4)])
    for U in (Reference.of(rows), Reference.from_summaries(sites())):
        medians, scales = standard(U.summaries, U.weights)
        np.testing.assert_allclose(scales[:3], rows.iloc[:, :3].std(), rtol=0.1)
        np.testing.assert_allclose(medians[[0, 2]], rows[["a", "code"]].median(), atol=0.15)
        assert (scales[3], medians[3]) == (1.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_from_json(kind):
    for U in (
        Reference.of(table(), kind, random_state=0),
        Reference.from_summaries(sites("both"), kind),
    ):
        again = Reference.from_dict(json.loads(json.dumps(U.to_dict())))
        rows = U.sample(50, random_state=0)
        np.testing.assert_array_equal(again.log_density(rows), U.log_density(rows))
        np.testing.assert_array_equal(again.sample(50, random_state=0), rows)
        assert again.to_dict() == U.to_dict()
        assert "no value of fewer rows." in U.reveals()
        assert copy.deepcopy(U) is U


def test_what_all_sites_tell_alike_is_said_once():
    """So that a manifest, which has little room, can name all of them."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    U = Reference.from_summaries([Summary.of(X[:n], name=f"site {n}") for n in (20, 30, 40)])
    assert U.reveals().startswith("Of 20 rows of 'site 20', 30 rows of 'site 30', 40 rows of 'site")
    assert U.reveals().count("no value of fewer rows.") == 1


def test_what_leaves_a_site_is_met_by_enough_rows():
    rows = table(200)
    rows.loc[:3, "word"] = "rare"
    rows.loc[0, "a"] = 12345.678
    rows.loc[5:7, "code"] = 77
    summary = Summary.of(rows, name="north", kind="both", random_state=0)
    text = json.dumps(summary.to_dict())
    assert "rare" not in text
    assert "12345.678" not in text
    assert "77.0" not in text
    own = set(rows["a"].round(12)) | set(rows["b"].dropna().round(12))
    told = {round(x, 12) for m in summary.marginals[:2] for x in m.quantiles}
    assert told
    assert not own & told
    # Columns that were described elsewhere, with every word, tell no more.
    agreed = Summary.of(rows, name="north", columns=Columns.of(rows))
    assert "rare" not in json.dumps(agreed.to_dict())
    assert agreed == Summary.of(rows, name="north")


def test_words_of_any_site_are_known_and_an_empty_column_fits_every_kind():
    north, south = table(100, 1), table(100, 2)
    south["word"] = south["word"].replace({"x": "new"})
    south["b"] = np.nan
    empty = table(100, 3)
    empty["word"] = np.nan
    given = {"north": north, "south": south, "east": empty}
    made = [Summary.of(t, name=name, kind="both", random_state=0) for name, t in given.items()]
    U = Reference.from_summaries(made)
    assert U.kind == "both"
    assert U.columns.columns[3].categories == ("new", "x", "y", "z")
    assert np.isfinite(U.log_density(U.columns.encode(pd.concat(given.values())))).all()
    drawn = U.sample(2000, random_state=0)
    assert set(drawn[~np.isnan(drawn[:, 3]), 3]) == {0.0, 1.0, 2.0, 3.0}
    # A site without the column does not pull it towards zero.
    assert np.nanstd(drawn[:, 1]) == pytest.approx(
        np.nanstd(pd.concat([north, empty])["b"]), rel=0.3
    )


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda t: t.drop(columns="b"), "the summary of 'south' has no column 'b', which 'north'"),
        (lambda t: t.assign(c=1), "the summary of 'north' has no column 'c', which 'south' has"),
        (
            lambda t: t.assign(a=t["word"]),
            "column 'a' holds numbers in 'north' and words in 'south'",
        ),
        (lambda t: t.assign(word=1.5), "column 'word' holds numbers in 'south' and words in 'nor"),
    ],
)
def test_sites_that_disagree_are_named(change, cause):
    north, south = table(100, 1), change(table(100, 2))
    made = [Summary.of(north, name="north"), Summary.of(south, name="south")]
    with pytest.raises(InputError, match=cause) as caught:
        Reference.from_summaries(made)
    assert str(caught.value).count(".") == 1


def test_faults_have_a_sentence():
    with pytest.raises(ValueError, match="at least one site"):
        Reference.from_summaries([])
    with pytest.raises(InputError, match="'north' has two summaries"):
        Reference.from_summaries([sites()[0], sites()[0]])
    with pytest.raises(InputError, match="'north' has no centres; make it with kind='both'"):
        Reference.from_summaries(sites(), "both")
    with pytest.raises(ValueError, match="kind='all' is not known"):
        Reference.of(table(), "all")
    with pytest.raises(InputError, match="has no rows"):
        Summary.of(table()[:0], name="north")
    with pytest.raises(ValueError, match="min_count must be at least 1"):
        Summary.of(table(), name="north", min_count=0)
    with pytest.raises(InputError, match="column 'x0' of 'north' holds an infinite number"):
        Summary.of(np.array([[1.0], [np.inf]]), name="north")
    with pytest.raises(ValueError, match="domain of each of 400 rows"):
        Reference.of(table(), "both", sample_domain=[1, 2])


def broken(change):
    data = json.loads(json.dumps(Reference.from_summaries(sites("both")).to_dict()))
    change(data, data["summaries"][0])
    return data


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda r, s: r.pop("kind"), "must have the parts"),
        (lambda r, s: r.update(kind="all"), "kinds"),
        (lambda r, s: r.update(summaries=[]), "1 to 500 summaries"),
        (lambda r, s: r["summaries"].append(s), "two summaries"),
        (lambda r, s: s.pop("name"), "must have the parts"),
        (lambda r, s: s.update(name=""), "a name of"),
        (lambda r, s: s.update(n_rows=0), "whole number"),
        (lambda r, s: s.update(n_rows=1.5), "whole number"),
        (lambda r, s: s.update(min_count=True), "whole number"),
        (lambda r, s: s["marginals"].pop(), "one marginal for each"),
        (lambda r, s: s.update(columns=[]), "must have columns"),
        (lambda r, s: s["columns"].update(names=[]), "columns"),
        (lambda r, s: s["columns"]["names"].__setitem__(0, 7), "not text"),
        (lambda r, s: s["columns"]["names"].__setitem__(0, "code"), "different names"),
        (lambda r, s: s["columns"]["categories"][3].append("w"), "same words"),
        (lambda r, s: s["columns"]["categories"].__setitem__(3, list("abc") * 99), "200 words"),
        (lambda r, s: s["columns"]["categories"].__setitem__(3, "xyz"), "200 words"),
        (lambda r, s: s["columns"]["categories"].__setitem__(0, ["a"]), "does not list"),
        (lambda r, s: s.update(centres=None), "no centres"),
        (lambda r, s: s["centres"].pop("means"), "must have centres with"),
        (lambda r, s: s["centres"]["means"].pop(), "other columns or numbers"),
        (lambda r, s: s["centres"]["means"][0].pop(), "non-numeric"),
        (lambda r, s: s["centres"]["means"].__setitem__(0, "abc"), "non-numeric"),
        (lambda r, s: s["centres"]["variances"].__setitem__(0, 0.0), "variance of zero"),
        (lambda r, s: s["centres"]["weights"].__setitem__(0, 9.0), "sum to 1"),
        (lambda r, s: s["centres"].update(weights=[]), "1 to 50000 centres"),
    ],
)
def test_strangers_are_not_trusted(change, cause):
    assert Reference.from_dict(broken(lambda r, s: None)).kind == "both"
    with pytest.raises(ValueError, match=cause) as caught:
        Reference.from_dict(broken(change))
    assert "\n" not in str(caught.value)


def test_many_rows_are_clustered_by_a_sample():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(5000, 2))
    found = Summary.of(rows, name="all", kind="centres", random_state=0).centres
    assert 80 < len(found.centres) <= 100
    assert found.weights.sum() == pytest.approx(1)
