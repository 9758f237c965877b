"""The site builds without a warning, its links lead somewhere, and search knows its pages."""

import json
import os
import subprocess
import sys

import pytest

from tests.house.source_tree import ROOT
from tools import site_links


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_link_leads_somewhere(site):
    assert site_links.broken(site) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "index.html").write_text('<p id="a"><a href="#a"><a href="#b"><img src="no.png">')
    assert site_links.broken(tmp_path) == ["index.html: #b", "index.html: no.png"]


def test_search_knows_every_page(site):
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    places = {entry["location"].split("#")[0] for entry in found}
    pages = (page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md"))
    addresses = {f"{page.with_suffix('').as_posix()}/".removesuffix("README/") for page in pages}
    assert addresses <= places
    assert "examples/" in places


def test_names_are_described_from_their_docstrings(site):
    page = (site / "api" / "estimators" / "index.html").read_text(encoding="utf-8")
    assert 'id="anymix.estimators.distribution_weighted.DistributionWeightedClassifier"' in page
    assert "source_weights" in page


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        page = site_links.Page(path.read_text(encoding="utf-8"))
        assert not {link for link in page.loads if "//" in link}, path
