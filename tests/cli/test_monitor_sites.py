"""Monitoring of models that were learned from rounded files: quantiles stand for densities."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.exchange import AuditError, SiteTable, read_site
from anymix.exchange.tensors import dump_arrays, load_arrays
from anymix.monitor import Monitor
from anymix.sources import (
    Tables,
    coarse_quantiles,
    common_edges,
    histogram_of,
    levels_of,
    levels_of_rows,
    round_responsibilities,
)
from tests.cli.test_sites import evaluate_all


@pytest.fixture(scope="module")
def rounded(world, tmp_path_factory):
    """A model of rounded files, as the commands make it."""
    from anymix.cli import main
    from tests.cli.organisations import NAMES

    folder, files = tmp_path_factory.mktemp("rounded"), []
    for name, held in zip(NAMES, world.held, strict=True):
        files.append(str(folder / f"{name}.site"))
        words = ["--site", name, "--rows", held.split("=")[1], "--out", files[-1], "--quiet"]
        assert main(["site", "evaluate", *map(str, world.sources), *words]) == 0
    model = str(folder / "model")
    words = ["--from-sites", *files, "--out", model, "--quiet"]
    assert main(["fit", *map(str, world.sources), *words]) == 0
    return SimpleNamespace(model=model, files=files)


def test_the_alarm_and_novelty_work_by_quantiles(world, rounded, run, tmp_path):
    table = world.test[0].split("=")[1]
    found = json.loads(run("monitor", rounded.model, table, "--json").out)
    assert found["alarm"]["tested"]
    assert not found["alarm"]["rings"]
    assert found["estimate"]["mixture"][0] > 0.8
    rows = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 1))
    far = tmp_path / "far.csv"
    np.savetxt(far, rows + 40, delimiter=",", header="a,b", comments="")
    said = run("monitor", rounded.model, far)
    assert said.status == 1, said.err
    for path, unusual in ((table, False), (far, True)):
        out = tmp_path / "p.csv"
        said = run("predict", rounded.model, path, "--out", out, "--novelty", "--force")
        assert said.status == 0, said.err
        novelty = np.loadtxt(out, delimiter=",", skiprows=1, usecols=-1)
        assert (np.median(novelty) > 0.9) == unusual


def test_new_files_of_sites_take_the_place_of_reference_rows(world, rounded, run, tmp_path):
    table = world.test[0].split("=")[1]
    test = SimpleNamespace(sources=world.sources, held=world.test)
    files = evaluate_all(test, run, tmp_path)
    said = run("monitor", rounded.model, table, "--from-sites", *files)
    assert said.status == 0, said.err
    both = ["--from-sites", *files, "--reference", *world.test]
    assert "give one of them" in run("monitor", rounded.model, table, *both).err
    bare = tmp_path / "bare"
    bare.mkdir()
    files = evaluate_all(test, run, bare, "--responsibilities-only")
    said = run("monitor", rounded.model, table, "--from-sites", *files)
    assert "has files without quantiles; evaluate the rows again" in said.err


def test_a_file_has_means_and_counts_of_five_rows(rounded):
    site = read_site(rounded.files[0])
    assert site.log_total is None
    assert site.own_quantiles.size == site.n_rows // 5
    edges, counts = site.total_histogram
    assert (counts[:-1] >= 5).all()
    assert counts.sum() == site.n_rows
    np.testing.assert_array_equal(edges * 2, (edges * 2).round())


@pytest.mark.parametrize(
    ("name", "change", "cause"),
    [
        ("own_quantiles", lambda q: q[::-1].copy(), "has quantiles that do not rise, or are none"),
        ("own_quantiles", lambda q: q * np.nan, "has quantiles that do not rise"),
        ("own_quantiles", lambda q: q[:1], "has quantiles that do not rise"),
        ("own_quantiles", lambda q: np.repeat(q, 50), "has quantiles that do not rise"),
        ("total_histogram", lambda h: h[::-1].copy(), "has a histogram that cannot be of its rows"),
        ("total_histogram", lambda h: h[0], "has a histogram that cannot be of its rows"),
        ("total_histogram", lambda h: h * 2, "has a histogram that cannot be of its rows"),
        ("total_histogram", lambda h: h * np.nan, "has a histogram that cannot be of its rows"),
    ],
)
def test_numbers_of_strangers_are_checked(rounded, tmp_path, name, change, cause):
    with open(rounded.files[0], "rb") as file:
        arrays = dict(load_arrays(file.read(), "x"))
    arrays[name] = change(arrays[name])
    (tmp_path / "x").write_bytes(dump_arrays(arrays))
    with pytest.raises(AuditError, match=cause):
        read_site(tmp_path / "x")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.sampled_from([0.01, 1.0, 30.0, 1e9]), st.integers(0, 99))
def test_levels_are_those_of_the_rows(n, scale, seed):
    """Brute force: levels of the values themselves, by the edges that all histograms have."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=n) * scale, (rng.normal(size=2 * n) * scale).round(1) - scale]
    values[1][0] = -np.inf
    domain = np.repeat([0, 1], [n, 2 * n])
    histograms = [histogram_of(v) for v in values]
    levels = levels_of_rows(histograms, domain, rng)
    edges = common_edges(histograms)
    for k, v in enumerate(values):
        np.testing.assert_array_equal(np.sort(levels[domain == k]), np.sort(levels_of(v, edges)))
        assert (histograms[k][1][:-1] >= min(5, v.size)).all()


def test_few_values_have_no_quantiles():
    assert coarse_quantiles(np.full(3, 1.0)).size == 0
    assert np.isfinite(coarse_quantiles(np.r_[np.zeros(20), -np.inf])).all()


class Gaussians:
    """Two sources in one dimension, whose densities are right."""

    source_names_ = ("left", "right")
    combination_ = SimpleNamespace(log_responsibilities=lambda log_r: log_r)
    certificate_ = SimpleNamespace(covers="")

    def scores(self, x):
        logs = np.stack([-((x - centre) ** 2) / 2 for centre in (-1.0, 1.0)])
        return logs, np.logaddexp.reduce(logs, axis=0)

    def site_scores(self, x):
        logs, total = self.scores(x)
        return round_responsibilities(logs - total), total


def looks(shift, n_looks=60, seed=0):
    rng, model, n = np.random.default_rng(seed), Gaussians(), 200
    rings = 0
    for _ in range(n_looks):
        domain = np.repeat([0, 1], n)
        x = rng.normal(2.0 * domain - 1)
        logs, total = model.scores(x)
        tables = Tables(
            round_responsibilities(logs - total), np.zeros((2, 2 * n)), has_densities=False
        )
        tables = tables.labelled(np.zeros(2 * n), domain)
        histograms = [histogram_of(total[domain == k]) for k in range(2)]
        asked = {"level": 0.05, "n_bootstrap": 99, "losses": np.zeros(2 * n)}
        monitor = Monitor.from_tables(model, tables, histograms, **asked)
        monitor.tested = True
        traffic = rng.normal(rng.choice([-1.0, 1.0], 400, p=[0.3, 0.7])) * shift
        rings += monitor.estimate(traffic, rng=rng.integers(1e6)).alarm.rings
    return rings / n_looks


def test_the_alarm_keeps_its_level_and_sees_wider_rows():
    assert looks(1.0) <= 0.15  # 0.05 + 3.5 standard errors of 60 looks
    assert looks(2.5, n_looks=6) == 1.0


def test_the_sites_file_survives_a_round(rounded, tmp_path):
    site = read_site(rounded.files[0])
    assert isinstance(site, SiteTable)
    site.write(tmp_path / "again", exact=True)
    again = read_site(tmp_path / "again")
    np.testing.assert_array_equal(again.total_histogram, site.total_histogram)
