"""The verdict says what its numbers carry: better, worse or level, by how much, in which unit."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.core import ALIASES, LOSSES, METRICS
from anymix.report import render_html
from anymix.report.markup import unit_of
from anymix.report.standing import Stand, listed, standing
from tests.report.report_cases import Page, full_record, labelled_record

NAMES = ["north", "south", "west"]


def stand(average=-1, own=(-1, -1, -1), guess=(-1, -1, -1), fresh=True):
    """A verdict in which each difference is ±0.1 ± 0.05, or 0 ± 0.05."""
    loss = np.array([0.3, 0.2, 0.1, 0.2])

    def rival(name, signs):
        gap = 0.1 * np.array(signs, dtype=float)
        ends = {"difference": gap, "lower": gap - 0.05, "upper": gap + 0.05}
        return {"name": name, "loss": loss - gap} | ends

    both = {"lower": loss - 0.02, "upper": loss + 0.02, "loss": loss}
    rivals = [
        rival("average", [average] * 4),
        rival("own", [*own, 0]),
        rival("constant", [*guess, 0]),
    ]
    told = {"measure": "error_rate", "confidence": 0.95, "fresh": fresh, "rows": [50, 60, 70]}
    return Stand(told | both | {"rivals": rivals}, NAMES)


@pytest.mark.parametrize(
    ("case", "tone", "title"),
    [
        ({}, "good", "these rows speak for deploying it"),
        ({"own": (0, 0, 0)}, "good", "these rows speak for deploying it"),
        ({"own": (1, 0, -1)}, "mixed", "for mixed traffic; at home north does better with its own"),
        ({"own": (1, 1, 0)}, "mixed", "north and south do better with their own model"),
        ({"own": (1, 0, 0), "average": 0}, "bad", "no reason to deploy it"),
        ({"average": 1}, "bad", "the plain average does better"),
        ({"average": 0}, "mixed", "the plain average does as well"),
        ({"average": 0, "own": (0, 0, 0)}, "mixed", "level with what there is already"),
        ({"guess": (-1, 0, -1)}, "bad", "do not deploy it yet"),
        ({"guess": (-1, 1, -1)}, "bad", "do not deploy it yet"),
        ({"fresh": False}, "mixed", "judge it on new rows first"),
    ],
)
def test_what_it_comes_to(case, tone, title):
    found = stand(**case).decision()
    assert found[0] == tone
    assert title in found[1]


def test_phrases_name_who_is_better_where():
    average, home, guess = stand(own=(1, 0, -1), guess=(-1, 0, 1), average=0).phrases()
    assert average == "level with the plain average of the models"
    assert home == "worse at home than the own model of north"
    assert guess == "no better than guessing at south and west"
    assert stand(own=(0, 0, -1)).phrases()[1] == (
        "at home better than the own model of west and level with that of north and south"
    )


def page_of(record):
    page = Page(render_html(record))
    return page, {e["attributes"].get("class"): e["text"] for e in page.find("p", "standing")}


def as_record(one):
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in one.found.items()}
    plain["rivals"] = [
        {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in rival.items()}
        for rival in plain["rivals"]
    ]
    return {"name": "Claims", "sources": NAMES, "verdict": [plain]}


def test_the_verdict_stands_first_with_shares_as_per_cent_and_gaps_as_points():
    page, said = page_of(as_record(stand(own=(1, 0, -1))))
    text = page.find("section")[0]["text"].replace("\xa0", " ")
    assert page.find("section")[0]["id"] == "standing"
    assert "Verdict: deploy it for mixed traffic" in text
    assert "20.0 % wrong compared with 30.0 % wrong, 10.0 points fewer (5.0 to 15.0)." in text
    assert "30.0 % wrong compared with 20.0 % wrong, 10.0 points more (5.0 to 15.0)." in text
    assert "Judged on 180 held-out rows (north 50, south 60 and west 70)" in said["note"]


def test_level_is_said_with_both_ends():
    text = page_of(as_record(stand(average=0)))[0].find("section")[0]["text"]
    assert "a difference between −5.0 and +5.0\xa0points" in text


def test_an_alarm_overrules_the_verdict():
    record = full_record() | as_record(stand())
    record["traffic"]["alarm"]["rings"] = True
    title = Page(render_html(record)).find("h2")[0]["text"]
    assert title.startswith("Verdict: do not rely on it for today’s traffic")


def test_a_second_measure_that_speaks_against_it_is_heard():
    good, worse = (as_record(stand(**case))["verdict"] for case in ({}, {"own": (1, 0, -1)}))
    worse[0]["measure"] = "cross-entropy"
    record = {"name": "Claims", "sources": NAMES, "verdict": good + worse}
    page, said = page_of(record)
    assert "deploy it for its labels; look at its probabilities" in page.find("h2")[0]["text"]
    other = "By cross-entropy, which also counts how sure it was, it is worse at home than the own"
    assert f"{other} model of north." in said["headline"]
    worse[0] |= {"rivals": good[0]["rivals"]}
    assert "the same holds" in page_of(record)[1]["headline"]


def test_where_a_label_is_rare_the_loss_speaks_first():
    """Who never calls anybody ill is seldom wrong: beside that, wrong labels say little."""
    labels, nats = (as_record(stand(**case))["verdict"][0] for case in ({"guess": (0, 0, 0)}, {}))
    nats["measure"] = "cross-entropy"
    record = {"name": "Claims", "sources": NAMES, "verdict": [labels, nats]}
    labels["rivals"][-1]["loss"][-1] = 0.19
    page, said = page_of(record)
    assert page.find("h2")[0]["text"] == "Verdict: these rows speak for deploying it"
    assert said["headline"].startswith("Measured by the cross-entropy")
    rare = "By error rate, which tells little as one label is rare, it is no better than"
    assert f"{rare} guessing at north, south and west." in said["headline"]
    labels["rivals"][-1]["loss"][-1] = 0.21
    assert "do not deploy it yet" in page_of(record)[0].find("h2")[0]["text"]


@given(st.lists(st.tuples(st.floats(0.1, 1), st.floats(0, 1)), min_size=2, max_size=6))
def test_advice_names_the_source_that_sets_the_most_that_may_be_lost(ends):
    """Four times the rows of those it names bring the largest upper end down to what it says."""
    L, width = map(np.array, zip(*ends, strict=True))
    names, upper = [f"s{k}" for k in range(len(L))], L + width
    found = {
        "measure": "squared",
        "loss": [*L, 0.5],
        "upper": [*upper, 1.0],
        "rows": [9.0] * len(L),
    }
    said = Stand(found | {"rivals": []}, names).advice()
    after = (L + width / 2).max()
    assert f"s{upper.argmax()}" in said or "every source" in said
    if upper.max() - after >= 0.1 * upper.max():
        assert said.startswith("More labelled rows")
        told = float(re.search(r"to about ([\d.]+)", said)[1])
        assert told == pytest.approx(after, abs=0.006)
    else:
        assert said.startswith("A better model")


def test_an_interval_that_is_not_known_asks_for_rows():
    one = as_record(stand())["verdict"][0]
    one["upper"][1] = None
    assert "More labelled rows of south: it has too few" in Stand(one, NAMES).advice()
    assert "–" in render_html({"name": "Claims", "sources": NAMES, "verdict": [one]})


@pytest.mark.parametrize(
    "measure", sorted({*LOSSES, *METRICS, *ALIASES, "cross-entropy", "MyLoss"})
)
def test_every_table_says_its_unit(measure):
    record = full_record()
    record["comparison"]["measure"] = record["certificate"]["loss"] = record["loss"] = measure
    record["verdict"][0]["measure"] = measure
    page, head = Page(render_html(record)), unit_of(measure).head
    for part in ("standing", "certificate", "explore", "comparison", "cross"):
        text = next(e["text"] for e in page.find("section") if e["id"] == part)
        assert head in text, part
    assert head in page.find("p")[0]["text"]


def test_a_table_in_another_measure_than_the_certificate_says_so():
    lead = Page(render_html(labelled_record())).find("p", "comparison")[0]["text"]
    assert "The certificate is in another measure, cross-entropy in nats" in lead
    record = full_record()
    record["certificate"]["loss"] = "squared"
    assert "was measured on other rows" in render_html(record)
    ours = record["comparison"]["methods"].index("anymix")
    record["certificate"]["robust_loss"] = record["comparison"]["worst"][ours]
    assert "was measured on other rows" not in render_html(record)


def test_a_bound_below_what_was_measured_is_explained():
    record, said = full_record(), "stands above what is guaranteed, and both are right"
    record["certificate"] |= {"clip": 0.9, "loss_upper": 0.8, "robust_loss": 1.2}
    page = render_html(record)
    assert said in page
    assert "the bound no row for more than 0.9" in page.replace("\xa0", " ")
    record["certificate"] |= {"loss_upper": 1.3, "regret_upper": 0.1}
    assert said not in render_html(record)


def test_intervals_stay_where_the_measure_does():
    """Older records have normal intervals, which leave the range of a share or an error."""
    record = labelled_record()
    table = record["comparison"]
    table["lower"] = (np.array(table["loss"]) - 2.0).tolist()
    table["upper"] = (np.array(table["loss"]) + 2.0).tolist()
    record["cross_loss"]["lower"] = (np.array(record["cross_loss"]["mean"]) - 9.0).tolist()
    page = Page(render_html(record))
    small = [e["text"] for e in page.find("small", "comparison") if " to " in e["text"]]
    assert set(small) == {"0.0\xa0% to 100.0\xa0%"}
    assert all(e["text"].startswith("0.00 to ") for e in page.find("small", "cross"))


def test_what_is_for_engineers_is_folded_away():
    page = Page(render_html(full_record()))
    inside = {e["id"]: "details" in e["inside"] for e in page.find("section")}
    assert {name for name, folded in inside.items() if folded} == {
        "weights",
        "calibration",
        "convergence",
    }
    assert "open" not in next(e for e in page.find("details") if e["id"])["attributes"]


def test_names_and_days_of_the_data_stand_below_the_title():
    days = {"certificate": "2026-03-01", "comparison": "2026-04-02", "verdict": "2026-04-02"}
    facts = Page(render_html(full_record() | {"recorded": days})).find("p")[0]["text"]
    assert "3 sources: north, south, west" in facts
    assert "certificate recorded 2026-03-01" in facts
    assert "comparison and verdict recorded 2026-04-02" in facts


def test_the_guarantee_says_when_guessing_does_as_well():
    record = full_record()
    record["certificate"] |= {"beside": [{"name": "chance", "loss": 0.7, "clipped": 0.7}]}
    assert "The bound is vacuous: guessing does as well" in render_html(record)
    record["certificate"]["beside"][0]["clipped"] = 2.0
    assert "The bound is vacuous: guessing does as well" not in render_html(record)


def test_a_squared_error_is_told_in_the_unit_of_the_target():
    record = full_record()
    record["verdict"][0]["loss"][-1] = 6.25
    assert "Its typical error, the root of it, is 2.5 units." in render_html(record)


def test_many_sources_do_not_make_a_wall():
    page = Page(render_html(full_record([f"s{k}" for k in range(30)])))
    rows = [e for e in page.find("span", "standing") if e["attributes"]["class"] == "name"]
    assert len(rows) == 12
    assert "The 18 sources that lose least are not drawn." in page.find("section")[0]["text"]


def test_names_are_listed_and_intervals_have_a_side():
    assert listed(["north", "south", "west"]) == "north, south and west"
    assert (listed(["north"]), listed("abcdefg")) == ("north", "a, b, c and 4 others")
    ends = [(-0.2, -0.1), (-0.1, 0.2), (0.1, 0.2), (None, None)]
    assert [standing(*both) for both in ends] == ["better", "level", "worse", "level"]
    assert unit_of("error_rate").text(0.0718, 1) == "7.2\u00a0%"
    assert unit_of("squared").text(-0.5, 2, sign=True) == "−0.50"
    assert unit_of("cross-entropy").said(0.3561, 3) == "0.356\u00a0nats"
