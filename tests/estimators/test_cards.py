"""What a notebook shows: everything that counts, nothing that acts."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix import DistributionWeightedRegressor, compare
from anymix._cards import record_card
from anymix.densities import GaussianKDE
from anymix.estimators import HardRouter, Uniform
from tests.estimators.several_sources import regression
from tests.report import browser

EVIL = {
    "north": "<script>hacked = 1</script>",
    "south": "<img src=x onerror='hacked=1'>&\u202e",
}
ALLOWED = {
    "div",
    "strong",
    "p",
    "pre",
    "table",
    "tr",
    "th",
    "td",
    "b",
    "span",
    "details",
    "summary",
}


@pytest.fixture(scope="module")
def rows():
    X, y, d = regression()
    return X, y, np.array([EVIL[name] for name in d])


@pytest.fixture(scope="module")
def model(rows):
    return DistributionWeightedRegressor(Ridge(), GaussianKDE(0.8), random_state=0).fit(*rows)


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.words = [], set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.found.add((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def cards(model, rows):
    X, y, d = regression(seed=1)
    new = X, y, np.array([EVIL[name] for name in d])
    told = compare({EVIL["north"]: model, "average": Uniform(Ridge()).fit(*rows)}, *new)
    records = (model.certificate_, model.solution_, told, model.cross_loss_)
    return [one._repr_html_() for one in records] + [model._learned_card()]


def test_cards_are_closed_and_hold_nothing_that_acts(model, rows):
    for text in cards(model, rows):
        elements = Elements(text)
        assert elements.open == []
        assert {tag for tag, *_ in elements.found} <= ALLOWED
        assert {name for _, *names in elements.found for name in names} <= {"style", "scope"}
        assert len(text) < 10_000
        assert "\u202e" not in text
        assert "url(" not in text


def test_cards_say_what_counts(model, rows):
    certificate, solution, told, crossed, learned = (
        " ".join(Elements(text).words) for text in cards(model, rows)
    )
    sentence = model.certificate_.sentence.replace("\u202e", "\\u202e")
    assert sentence in certificate
    assert sentence in learned
    assert all(f"{z:.3f}" in learned for z in model.z_)
    assert EVIL["north"] in learned
    assert "stationary" in solution
    assert "<img src=x onerror='hacked=1'>&\\u202e" in told
    assert "smaller is better" in told
    assert "95 % intervals" in crossed


def test_the_diagram_stays_and_what_was_learned_comes_below(model):
    new = DistributionWeightedRegressor(Ridge())
    assert "What was learned" not in new._repr_html_()
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-container" in text
        assert text.index("sk-container") < text.index("What was learned")
        assert "<script>hacked" not in text
        assert "<img" not in text
    with sklearn.config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]
    assert "sk-container" in make_pipeline(StandardScaler(), model)._repr_html_()


def test_the_best_of_each_column_is_bold_and_the_privileged_are_marked(model, rows):
    text = cards(model, rows)[2]
    assert len(re.findall("<b>", text)) == 4
    X, y, d = rows
    assert "sources: " in HardRouter(Ridge(), GaussianKDE(0.8)).fit(X, y, d)._learned_card()


def test_long_and_deep_fields_are_left_out(model):
    text = record_card(model.solution_)
    assert "trace" not in text
    assert "source_losses" in text


@pytest.mark.skipif(browser.why_missing() is not None, reason=str(browser.why_missing()))
def test_a_browser_runs_none_of_the_names(model, rows, tmp_path):
    page = tmp_path / "cards.html"
    page.write_text("<!doctype html><meta charset=utf-8>" + "".join(cards(model, rows)))
    window = browser.Browser(tmp_path)
    try:
        window.page(page)
        assert window.run("return window.hacked === undefined && !document.querySelector('img')")
        assert window.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        window.close()
