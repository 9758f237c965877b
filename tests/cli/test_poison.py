"""A site's file of twenty invented rows: fit names the site, and can do without its rows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from anymix import Source, load
from anymix.densities import GaussianKDE
from anymix.exchange import evaluate_site, pack_source, read_sources
from tests.cli.organisations import NAMES

pytestmark = pytest.mark.filterwarnings("ignore::anymix.core.SolverWarning")
CENTRES = {"north": (4.0, 0.0), "south": (0.0, 4.0), "west": (-4.0, 0.0)}


def rows(name, n, rng):
    X = rng.normal(CENTRES[name], size=(n, 2))
    return X, 70.0 * NAMES.index(name) + 3.0 * X[:, 0] + 5.4 * rng.normal(size=n)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Source folders, honest site files, and a file of west's that lies about north."""
    folder, rng = tmp_path_factory.mktemp("poison"), np.random.default_rng(0)
    for name in NAMES:
        X, y = rows(name, 200, rng)
        density = GaussianKDE(0.5).fit(X).shareable()
        pack_source(Source(name, Ridge().fit(X, y), density), folder / name)
    received = read_sources([folder / name for name in NAMES])
    tables = {name: evaluate_site(received, name, *rows(name, 150, rng)) for name in NAMES}
    for name, table in tables.items():
        table.write(folder / f"{name}.site")
    share = np.array([1 - 2e-9, 1e-9, 1e-9])
    lie = replace(
        tables["west"],
        log_responsibilities=np.tile(np.log(share)[:, None], 20),
        outcomes=np.tile([[1e6], [0.0], [0.0]], 20),
        log_total=np.zeros(20),
    )
    lie.write(folder / "lie.site", exact=True)
    return folder


def fit(run, sites, out, *options, west="lie"):
    sources = [sites / name for name in NAMES]
    files = [sites / f"{name}.site" for name in ("north", "south", west)]
    return run("fit", *sources, "--from-sites", *files, "--out", out, *options)


def real_loss(folder, rng):
    """What the model in a folder loses on new rows of north."""
    X, y = rows("north", 400, rng)
    return float(((load(folder).predict(X) - y) ** 2).mean())


def test_a_lying_site_is_named_and_set_aside(sites, run, tmp_path):
    honest = fit(run, sites, tmp_path / "honest", west="west")
    assert honest.status == 0
    assert "raise" not in honest.out
    lied = fit(run, sites, tmp_path / "lied")
    assert lied.status == 0
    assert "The rows of west raise the held-out loss of north from" in lied.out
    assert "--set-aside" in lied.out
    robust = fit(run, sites, tmp_path / "robust", "--set-aside", "worst")
    assert "The rows of west did not choose z; the certificate covers them" in robust.out
    losses = [
        real_loss(tmp_path / name, np.random.default_rng(1))
        for name in ("honest", "lied", "robust")
    ]
    assert losses[1] > 20 * losses[0]
    assert losses[2] < 1.5 * losses[0]


def test_json_and_the_page_say_it_too(sites, run, tmp_path):
    said = fit(run, sites, tmp_path / "m", "--set-aside", "west", "--json")
    found = json.loads(said.out)
    assert found["settings"]["set_aside"] == ["west"]
    assert np.shape(found["influence"]["rows"]) == (3, 3)
    assert "influence" not in json.loads((tmp_path / "m/model.json").read_text())
    assert run("report", tmp_path / "m", "--out", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text()
    assert "Who moves whom" in page
    assert "The rows of west did not choose z" in page


def test_a_name_that_is_no_source(sites, run, tmp_path):
    said = fit(run, sites, tmp_path / "m", "--set-aside", "east")
    assert said.status == 3
    assert "set_aside names 'east'; the sources are north, south, west" in said.err
    assert not (tmp_path / "m/model.json").exists()
