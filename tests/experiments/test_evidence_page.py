"""The page of the evidence against the records, and what the records say, computed apart."""

import re
from collections import defaultdict

import numpy as np
import pytest

from experiments.claims import Paired, signed
from experiments.evidence_claims import domains, paired, regret, sets, shown
from experiments.evidence_figure import draw_evidence
from experiments.evidence_hero import draw_hero
from experiments.evidence_methods import PRIVILEGED, PROTOCOLS
from experiments.evidence_sets import LOADERS
from experiments.runner import Result, read_records
from tests.experiments.page_claims import NUMBER, check_n_sources
from tools import evidence

_, RESULTS = read_records(evidence.RECORDS)
PAGE = evidence.PAGE.read_text(encoding="utf-8")


def cells():
    """Values by table, method and target, in the order of the seeds."""
    found = defaultdict(dict)
    for r in RESULTS:
        found[r.table, r.method, r.target][r.seed] = r.value
    return {key: np.array([by[seed] for seed in sorted(by)]) for key, by in found.items()}


CELLS = cells()


def test_page_and_records_agree():
    assert evidence.page() == PAGE, "run `python tools/results.py`"


@pytest.mark.parametrize("picture", [evidence.PICTURE, evidence.HERO])
def test_the_pictures_are_there(picture):
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_front_page_says_what_the_records_say():
    readme = (evidence.ROOT / "README.md").read_text(encoding="utf-8")
    words = ("better", "not significantly different", "worse")
    assert evidence.standing(RESULTS, "anymix", "joint", words) in readme.splitlines()


def test_all_sets_and_methods_are_recorded_on_the_same_splits():
    assert sets(RESULTS) == list(LOADERS)
    for name in sets(RESULTS):
        assert set(PROTOCOLS) == set(shown(RESULTS, name))
        assert {m for m, privileged in shown(RESULTS, name).items() if privileged} == set(
            PRIVILEGED
        )
    seeds = {r.seed for r in RESULTS}
    assert seeds == set(range(len(seeds)))
    assert all(len(values) == len(seeds) for values in CELLS.values())


@pytest.mark.parametrize("name", sets(RESULTS))
def test_differences_and_verdicts_are_what_the_records_give(name):
    for method in shown(RESULTS, name):
        for other in ("own", "joint"):
            gap = CELLS["Mean loss", method, name] - CELLS["Mean loss", other, name]
            rows = CELLS[f"Standard error against {other}", method, name].mean()
            splits = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
            found = paired(RESULTS, name, method, other)
            assert found.difference == pytest.approx(gap.mean())
            assert found.error == pytest.approx(max(rows, splits))
            z = abs(gap.mean()) - 2 * max(rows, splits)
            assert (found.verdict == "level") == (z <= 0)


@pytest.mark.parametrize("name", sets(RESULTS))
def test_the_worst_regret_is_that_of_the_domain_that_is_named(name):
    for method in shown(RESULTS, name):
        gaps = {
            domain: (
                CELLS["Loss in a domain", method, f"{name}: {domain}"]
                - CELLS["Loss in a domain", "own", f"{name}: {domain}"]
            ).mean()
            for domain in domains(RESULTS, name)
        }
        domain, found = regret(RESULTS, name, method)
        assert found.difference == pytest.approx(max(gaps.values()))
        assert gaps[domain] == pytest.approx(found.difference)


def standing(name, method, other):
    """The verdict and its numbers, computed apart."""
    gap = CELLS["Mean loss", method, name] - CELLS["Mean loss", other, name]
    errors = CELLS[f"Standard error against {other}", method, name]
    return verdict(gap, errors)


def verdict(gap, errors):
    error = max(errors.mean(), gap.std(ddof=1) / np.sqrt(len(gap)))
    if abs(gap.mean()) <= 2 * error:
        return "level", gap.mean(), error
    return "below" if gap.mean() < 0 else "above", gap.mean(), error


def check_verdicts(page):
    """Read each list of verdicts back and ask the records; return how many lines there were."""
    n = 0
    for found in re.finditer(r"<!-- verdicts: (.+?) -->\n\n((?:- .+\n)+)", page):
        lines = found[2].splitlines()
        assert len(lines) == len(sets(RESULTS))
        for line in lines:
            said = re.fullmatch(
                rf"- (\w+): ({NUMBER}) against joint\*, (\w+); ({NUMBER}) against own\*, (\w+); "
                rf"at worst ({NUMBER}), at (.+), (\w+)\.",
                line,
            )
            assert said, line
            name, joint, first, own, second, worst, domain, third = said.groups()
            target = f"{name}: {domain}"
            gap = (
                CELLS["Loss in a domain", found[1], target]
                - CELLS["Loss in a domain", "own", target]
            )
            errors = CELLS["Standard error against own in a domain", found[1], target]
            for text, word, (true, gain, error) in (
                (joint, first, standing(name, found[1], "joint")),
                (own, second, standing(name, found[1], "own")),
                (worst, third, verdict(gap, errors)),
            ):
                assert word == true, line
                check_n_sources(text, gain, error)
            n += 1
    return n


def check_tallies(page):
    n = 0
    for found in re.finditer(r"((?:Against .+\n)+)<!-- tally: (.+?) -->", page):
        for line in found[1].splitlines():
            said = re.fullmatch(
                r"Against ([\w ]+)\*, (.+) is below on (.+); level on (.+); above on (.+)\.", line
            )
            assert said, line
            assert said[2] == found[2], line
            for word, listed in zip(("below", "level", "above"), said.groups()[2:], strict=True):
                names = [] if listed == "none" else re.split(r", | and ", listed)
                true = [s for s in sets(RESULTS) if standing(s, found[2], said[1])[0] == word]
                assert names == true, line
            n += 1
    return n


def test_every_verdict_of_the_page_holds_on_the_records():
    assert check_verdicts(PAGE) == PAGE.count("<!-- verdicts: ") * len(sets(RESULTS)) > 0
    assert check_tallies(PAGE) == 3 * PAGE.count("<!-- tally: ") > 0


@pytest.mark.parametrize("word", ["level", "below", "above"])
def test_a_page_that_says_more_is_found_out(word):
    other = {"level": "below", "below": "above", "above": "level"}[word]
    line = next(line for line in PAGE.splitlines() if f"against joint*, {word};" in line)
    with pytest.raises(AssertionError):
        check_verdicts(PAGE.replace(line, line.replace(f"joint*, {word}", f"joint*, {other}")))


def test_a_tally_that_says_more_is_found_out():
    line = next(line for line in PAGE.splitlines() if line.startswith("Against joint*, "))
    wrong = line.replace("level on", "LATER").replace("below on", "level on")
    with pytest.raises(AssertionError):
        check_tallies(PAGE.replace(line, wrong.replace("LATER", "below on")))


def test_methods_that_were_not_run_on_the_same_splits_are_refused():
    with pytest.raises(ValueError, match="same splits"):
        paired(RESULTS, "heart", "nobody", "joint")


@pytest.mark.parametrize("difference", [-0.5, 3.0])
def test_a_set_is_drawn_even_where_a_loss_leaves_the_picture(tmp_path, difference):
    made = [
        Result("evidence", table, "clean", method, "x", "loss", 0, value, method == "joint")
        for method, value in (
            ("joint", 1.0),
            ("DW", 1.0 + difference),
            ("uniform", 1.0 + difference),
            ("router", 1.0 + difference),
            ("anymix", 0.9),
        )
        for table, value in (("Mean loss", value), ("Standard error against joint", 0.1))
    ]
    for draw in (draw_evidence, draw_hero):
        draw(made, tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_have_the_digits_that_their_errors_allow():
    assert signed(Paired(-0.01234, 0.0023)) == "−0.0123 ± 0.0023"
    assert signed(Paired(0.5, 0.0)) == "+0.5"
    assert signed(Paired(1.5, 12.3)) == "+2 ± 12"
