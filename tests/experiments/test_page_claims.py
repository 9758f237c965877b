"""Every claim of docs/results.md holds on the records; a page that says more is found out."""

import re

import pytest

from tests.experiments.page_claims import Records, check_section
from tools.results import PAGE, RECORDS

TEXT = PAGE.read_text(encoding="utf-8")
STUDIES = [path.stem for path in sorted(RECORDS.glob("*.jsonl")) if path.stem != "evidence"]


def section(name):
    title = f"## {name.replace('_', ' ').capitalize()}\n"
    return TEXT.partition(title)[2].partition("\n## ")[0]


def records(name):
    return Records(RECORDS / f"{name}.jsonl")


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_holds_on_the_records(name):
    n = check_section(section(name), records(name))
    assert n >= {"theory": 0}.get(name, 3), f"{name} makes no claims that can be read"


def test_all_claims_of_the_page_are_in_a_section_that_is_checked():
    everywhere = len(re.findall(r"<!-- (?:duels|holds|claim): ", TEXT))
    assert everywhere == sum(check_section(section(name), records(name)) for name in STUDIES)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("level on the mean, +0.057", "better on the mean, +0.057"),
        ("joint* (as published): won 0, level 7", "joint* (as published): won 7, level 0"),
        ("+0.057 ± 0.051", "+0.067 ± 0.051"),
        ("+0.057 ± 0.051", "+0.057 ± 0.021"),
        ("lost 1 (svhn) of 7", "lost 1 (usps) of 7"),
        ("DW, own features is worse than joint*", "DW, own features is better than joint*"),
    ],
)
def test_a_page_of_the_digits_that_says_more_is_found_out(said, instead):
    changed = section("digits").replace(said, instead)
    assert changed != section("digits"), "the page no longer says so: choose another sentence"
    with pytest.raises(AssertionError):
        check_section(changed, records("digits"))


@pytest.mark.parametrize("rival", ["λ-comb*", "KMM*"])
def test_a_page_that_leaves_out_a_privileged_rival_is_found_out(rival):
    changed = re.sub(rf"^- {re.escape(rival)}:.*\n", "", section("sentiment"), flags=re.MULTILINE)
    assert changed != section("sentiment")
    with pytest.raises(AssertionError, match="leaves out"):
        check_section(changed, records("sentiment"))
