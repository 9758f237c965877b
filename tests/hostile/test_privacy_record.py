"""The numbers of docs/security.md on labels and membership are those that were measured."""

import json
import re

import pytest

from tests.house.source_tree import ROOT

RECORD = json.loads((ROOT / "results/privacy.json").read_text("utf-8"))
PAGE = (ROOT / "docs/security.md").read_text("utf-8")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def row(first):
    """The cells of the one row of a table that begins with this word."""
    lines = [line for line in PAGE.splitlines() if line.startswith(f"| {first} |")]
    assert len(lines) == 1, (first, lines)
    return cells(lines[0])[1:]


def number(text):
    return float(re.match(r"[+−]?(\d*\.?\d+)", text)[1]) * (-1 if text.startswith("−") else 1)


@pytest.mark.parametrize("site", RECORD["labels named"])
def test_labels_named(site):
    measured = RECORD["labels named"][site]
    given = row("VA" if site == "va" else site.capitalize())
    assert [number(cell) for cell in given] == pytest.approx(list(measured.values()), abs=0.0051)
    # What the page says of means: no label is named better than by the commonest, to five points.
    for form in ("means of 5", "means of 10"):
        assert measured[form] <= measured["commonest label"] + 0.05


@pytest.mark.parametrize("form", RECORD["price"])
def test_the_price_of_telling_less(form):
    measured = RECORD["price"][form]
    loss, more = row(form)
    assert number(loss) == pytest.approx(measured["worst loss"], abs=0.00051)
    if form != "exact":
        difference, error = more.split(" ± ")
        assert number(difference) == pytest.approx(measured["more than exact"], abs=0.00051)
        assert number(error) == pytest.approx(measured["standard error"], abs=0.00051)
        # "None of these differences is beyond two standard errors."
        assert abs(measured["more than exact"]) <= 2 * measured["standard error"]


LEARNERS = {
    "linear (default for numbers)": "linear",
    "kernel features": "kernel",
    "boosted trees, leaves of 5": "trees, leaves of 5",
    "boosted trees, leaves of 10 (default for mixed tables)": "trees",
    "boosted trees, leaves of 20": "trees, leaves of 20",
    "forest, leaves of 1 (refused by pack)": "forest, leaves of 1",
    "forest, leaves of 5": "forest, leaves of 5",
    "forest, leaves of 10": "forest, leaves of 10",
}


@pytest.mark.parametrize("title", LEARNERS)
def test_membership(title):
    given = [number(cell) for cell in row(title)]
    both = [RECORD["membership"][f"{kind}, {LEARNERS[title]}"] for kind in ("labels", "numbers")]
    due = [one[name] for one in both for name in ("AUC", "held-out loss")]
    for value, measured, digits in zip(given, due, (2, 3, 2, 0), strict=True):
        assert value == pytest.approx(measured, abs=0.51 * 10.0**-digits)
