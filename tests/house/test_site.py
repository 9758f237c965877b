"""The site builds without a warning, its links lead somewhere, and a browser finds its way."""

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tests.house.source_tree import ROOT
from tests.report.browser import Browser, why_missing
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


@pytest.fixture(scope="module")
def visit(site, tmp_path_factory):
    """Open pages as a reader does; search needs a server."""
    if why_missing():
        pytest.skip(why_missing())

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser(tmp_path_factory.mktemp("browser"))

    def call(address, host="127.0.0.1", **settings):
        place = f"http://{host}:{server.server_port}/{address}"
        browser.page(SimpleNamespace(as_uri=lambda: place), **settings)
        return browser

    yield call
    browser.close()
    server.shutdown()
    server.server_close()


def wait_for(browser, script, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := browser.run(script):
            return found
        time.sleep(0.1)
    raise AssertionError(f"nothing came of {script}")


def test_search_finds_a_page(visit):
    browser = visit("")
    browser.run(
        "const asked = document.querySelector('[data-md-component=search-query]'); asked.focus();"
        "asked.value = 'expectile'; asked.dispatchEvent(new Event('input', {bubbles: true}));"
        "asked.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))"
    )
    links = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"
    assert any("/losses/" in link for link in wait_for(browser, links))


def test_dark_follows_the_system_and_can_be_switched(visit):
    # The theme keeps what was chosen for each host: this one has not been visited before.
    browser = visit("", host="localhost", scheme="dark")
    scheme = "return document.body.getAttribute('data-md-color-scheme')"
    assert wait_for(browser, f"{scheme} === 'slate'")
    browser.run("document.querySelector('[data-md-component=palette] label:not([hidden])').click()")
    assert wait_for(browser, f"{scheme} === 'default'")


@pytest.mark.parametrize("page", ["", "tutorials/four-hospitals/", "evidence/", "api/core/"])
def test_a_phone_shows_the_whole_width(visit, page):
    browser = visit(page, width=390, height=800)
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_what_is_copied_has_no_prompts(visit):
    """The theme copies what a block shows while it has this attribute."""
    browser = visit("losses/")
    text = browser.run(
        "const code = [...document.querySelectorAll('pre code')].at(-1);"
        "code.setAttribute('data-md-copying', ''); return code.innerText"
    )
    assert "class MissedShare(Loss):" in text
    assert ">>>" not in text
