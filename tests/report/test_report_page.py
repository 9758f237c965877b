"""The page says what the record says, whoever named the sources."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anymix.report import charts, markup, render, render_html
from anymix.report.record import checked, corner_losses
from tests.report.report_cases import HOSTILE, Page, full_record

SECTIONS = {
    "certificate": "certificate",
    "verdict": "standing",
    "comparison": "comparison",
    "cross_loss": "cross",
    "weights": "weights",
    "calibration": "calibration",
    "solution": "convergence",
    "traffic": "traffic",
}
TAGS = {e["tag"] for e in Page(render_html(full_record())).elements}


def leading_number(text):
    return float(re.match(r"[−+]?[\d.]+(e[−+]\d+)?", text)[0].replace("−", "-"))


def test_a_name_and_sources_are_enough():
    page = Page(render_html({"name": "Claims", "sources": ["north", "south"]}))
    assert [e["text"] for e in page.find("h1")] == ["Claims"]
    assert page.find("section") == []


@pytest.mark.parametrize("field", SECTIONS)
def test_each_field_adds_its_part_and_no_other(field):
    record = full_record()
    given_fields = {name: record[name] for name in ("name", "sources", field)}
    parts = {e["id"] for e in Page(render_html(given_fields)).find("section")}
    assert parts - {"explore"} == {SECTIONS[field]}
    rest = {name: value for name, value in record.items() if name != field}
    assert SECTIONS[field] not in {e["id"] for e in Page(render_html(rest)).find("section")}


@pytest.mark.parametrize("seed", range(5))
def test_tables_hold_the_numbers_of_the_record(seed):
    record = full_record(seed=seed)
    page = Page(render_html(record))
    for section, values in {
        "cross": record["cross_loss"]["mean"],
        "weights": record["weights"],
        "comparison": [
            [*loss, worst]
            for loss, worst in zip(
                record["comparison"]["loss"], record["comparison"]["worst"], strict=True
            )
        ],
    }.items():
        # The number comes first, its interval follows; decimals are fixed for a whole table.
        shown = [leading_number(text.replace("–", "nan")) for text in bare_cells(page, section)]
        np.testing.assert_allclose(shown, np.ravel(values), atol=5.1e-3)


def bare_cells(page, section):
    """Cells without their small print, which is an element of its own."""
    small = iter([e["text"] for e in page.find("small", section)])
    cells = page.cells(section)
    return cells if section == "weights" else [t.removesuffix(next(small)) for t in cells]


def test_small_print_holds_the_intervals():
    record = full_record()
    page, comparison = Page(render_html(record)), record["comparison"]
    small = np.reshape([e["text"] for e in page.find("small", "comparison")], (3, 5))
    assert small[:, 4].tolist() == [f"on {name}" for name in comparison["worst_mixture"]]
    check_intervals(small[:, :4], comparison)
    cross = np.reshape([e["text"] for e in page.find("small", "cross")], (3, 3))
    check_intervals(cross, record["cross_loss"])


def check_intervals(texts, record):
    shown = np.array([[float(v) for v in text.split(" to ")] for text in texts.ravel()])
    expected = np.column_stack([np.ravel(record["lower"]), np.ravel(record["upper"])])
    np.testing.assert_allclose(shown, expected, atol=5.1e-3)


def test_shades_follow_the_numbers():
    record = full_record()
    page = Page(render_html(record))
    loss, weights = np.array(record["cross_loss"]["mean"]), np.array(record["weights"])
    expected = {
        "cross": (loss - loss.min(axis=0)) / (loss.max(axis=0) - loss.min(axis=0)),
        "weights": weights,
    }
    for section, shade in expected.items():
        styles = [e["attributes"]["style"] for e in page.find("td", section)]
        shown = [float(style.removeprefix("--amount:").rstrip("%")) for style in styles]
        np.testing.assert_allclose(shown, 100 * shade.ravel(), atol=0.51)


def test_the_certificate_is_quoted_and_its_numbers_stand_below():
    record = full_record()
    page, found = Page(render_html(record)), record["certificate"]
    assert page.find("blockquote")[0]["text"].replace("\xa0", " ") == found["sentence"]
    regret, measured = (e["text"] for e in page.find("dd"))
    assert measured == "1.234at most 1.568 with 95 % confidence"
    assert regret == "−0.04567at most +0.03456 with 95 % confidence"
    first = [leading_number(text) for text in page.cells("certificate")[:3]]
    own, ours = found["own_losses"][0], found["source_losses"][0]
    assert first == pytest.approx([own, ours, ours - own], abs=5.1e-4)


def test_a_model_adapted_to_traffic_has_a_sentence_in_place_of_its_certificate():
    record = full_record() | {"certificate": None, "verdict": None}
    page = Page(render_html(record | {"adapted": True}))
    said = [e for e in page.find("p") if "missing" in e["attributes"].get("class", "").split()]
    (sentence,) = [e["text"] for e in said]
    assert sentence == (
        "There is no certificate: z was adapted to today’s traffic, so what was certified before "
        "no longer holds."
    )
    parts = [e["id"] for e in page.find("section")]
    assert "certificate" not in parts
    assert parts[0] == "explore"
    assert page.find("blockquote") == []
    for given_fields in (record, record | {"adapted": False}):
        assert "no certificate" not in render_html(given_fields)


@pytest.mark.parametrize(
    ("checked", "value", "said"),
    [(True, 1.0, None), (False, 2.0, "Taken on trust"), (False, 1.0, "does not hold here")],
)
def test_bounds_say_whether_the_rows_bear_them_out(checked, value, said):
    record = full_record()
    words = {"name": "loss on any mixture", "paper": "Thm 1", "assumptions": "It is so."}
    record["certificate"]["bounds"] = [words | {"value": value, "checked": checked}]
    page = render_html(record)
    told = [text for text in ("Taken on trust", "does not hold here") if text in page]
    assert told == ([] if said is None else [said])


def test_a_refuted_bound_is_struck_through_and_says_why():
    record = full_record()
    words = {"name": "any mixture", "paper": "Cor. 2", "assumptions": "It is so.", "checked": False}
    why = "1.099 was measured, more than 0.2: <b>one</b> density is wrong."
    bounds = [words | {"value": 0.2, "contradicted": why}, words | {"value": 3.0}]
    record["certificate"]["bounds"] = bounds
    page = Page(render_html(record))
    assert [e["text"] for e in page.find("s", "certificate")] == ["0.2", "It is so."]
    (said,) = [e["text"] for e in page.find("strong", "certificate")]
    assert said.replace("\xa0", " ") == f"Does not hold here: {why}"
    assert render_html(record).count("Taken on trust") == 1


def test_the_lowest_fair_loss_is_marked():
    record = full_record()
    comparison = record["comparison"]
    comparison["loss"] = [[1.0, 5.0, 1.0, 1.0], [2.0, 3.0, 2.0, 2.0], [0.1, 0.1, 0.1, 0.1]]
    comparison["worst"] = [5.0, 3.0, 0.1]
    cells = Page(render_html(record)).find("td", "comparison")
    marked = [cell["attributes"].get("class") == "best" for cell in cells]
    assert np.flatnonzero(marked).tolist() == [0, 2, 3, 6, 9]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), min_size=3, max_size=3))
@settings(max_examples=20, deadline=None)
def test_names_stay_names(names):
    html = render_html(full_record(names) | {"name": names[0]})
    check_harmless(html, names)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_names(name):
    names = [name, "north", "south"]
    html = render_html(full_record(names) | {"name": name})
    check_harmless(html, names)
    assert name in {e["attributes"].get("title") for e in Page(html).find("th")}


def check_harmless(html, names):
    page = Page(html)
    assert {e["tag"] for e in page.elements} <= TAGS
    assert len(page.find("script")) == 2
    assert not [a for e in page.elements for a in e["attributes"] if a.startswith(("on", "src"))]
    data = json.loads(page.find("script")[0]["text"])
    assert data["record"] == checked(full_record(names) | {"name": names[0]})


def test_text_cannot_be_turned_around():
    record = {"name": "a\u202eb", "sources": ["\u2066x", "y\x07"]}
    found = checked(record)
    assert [found["name"], *found["sources"]] == ["a\ufffdb", "\ufffdx", "y\ufffd"]
    # a name of a file that is no UTF-8, and the ends of lines that are none to the eye
    odd = checked({"name": "a\udcff\u2028\ufeff\u061c", "sources": ["x"]})["name"]
    assert odd == "a" + 4 * "\ufffd"


def test_the_page_allows_one_script_and_no_network():
    html = render_html(full_record())
    page = Page(html)
    policy = next(
        e["attributes"]["content"] for e in page.find("meta") if "content" in e["attributes"]
    )
    digest = hashlib.sha256(page.find("script")[1]["text"].encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    style = page.find("style")[0]["text"]
    assert "url(" not in style
    assert "@import" not in style
    assert not [e for e in page.elements if {"src", "href"} & set(e["attributes"])]


def test_missing_numbers_are_dashes():
    record = full_record()
    record["cross_loss"]["mean"][0][1] = float("nan")
    assert bare_cells(Page(render_html(record)), "cross")[1] == "–"


@pytest.mark.parametrize(("sharpness", "said"), [(2.0, True), (1.0, False), (None, False)])
def test_sharpened_weights_are_told(sharpness, said):
    record = full_record()
    record["calibration"]["sharpness"] = sharpness
    assert ("raised to the power 2:" in render_html(record)) == said


def test_an_alarm_stands_first():
    record = full_record()
    record["traffic"]["alarm"]["rings"] = True
    html = render_html(record)
    assert html.index('role="alert"') < html.index('id="certificate"')
    assert 'role="alert"' not in render_html(full_record())


def test_render_replaces_the_file_whole(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="needs a name"):
        render({"sources": ["a"]}, path)
    assert path.read_text() == "old"
    assert render(full_record(), path) == path
    assert path.read_text(encoding="utf-8") == render_html(full_record())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "needs a name"),
        ({"sources": []}, "needs sources"),
        ({"sources": "abc"}, "needs sources"),
        ({"weights": [[1.0]]}, r"weights has shape \(1, 1\) and not \(3, 3\)"),
        ({"z": ["a", "b", "c"]}, "z is not an array of numbers"),
        ({"certificate": {"sentence": "Well."}}, r"certificate.source_losses has shape \(\)"),
        ({"adapted": "yes"}, "adapted is not True or False"),
        ({"adapted": True}, "certificate no longer holds: give None for it"),
        ({"colour": "red"}, "no field 'colour'"),
        ({"traffic": [1]}, "traffic is not a record"),
        ({"verdict": {}}, "verdict is not a list of records"),
        ({"verdict": [{"rivals": 3}]}, "verdict has no list of rivals"),
        ({"verdict": [{"rivals": []}]}, r"verdict.rows has shape \(\)"),
        ({"solution": {"status": "converged"}}, "part 'convergence' lacks 'n_evaluations'"),
        ({"sources": ["south", "north", "west"]}, "give both in one order"),
    ],
)
def test_wrong_records_are_refused_in_a_sentence(change, message):
    with pytest.raises(ValueError, match=message):
        render_html(full_record() | change)


def places(value, path=()):
    """Every place in a record where something stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def refusal(record):
    """What is said against a record; nothing if its page is sound."""
    try:
        Page(render_html(record))
    except ValueError as error:
        return str(error)
    return ""


@given(st.data(), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_broken_records_are_refused_in_a_sentence_or_drawn(data, p):
    record = full_record([f"s{k}" for k in range(p)])
    *way, last = data.draw(st.sampled_from(sorted(places(record), key=str)))
    parent = record
    for key in way:
        parent = parent[key]
    invalid = st.sampled_from([None, "x", -1.0, float("nan"), [], {}, True])
    if data.draw(st.booleans()):
        del parent[last]
    else:
        parent[last] = data.draw(invalid)
    assert re.match("$|the report|a report", refusal(record))


def test_long_traces_are_thinned():
    trace = [{"n_evaluations": n, "gamma": 1.0, "worst": 1 / n} for n in range(1, 5001)]
    assert 300 < charts.convergence(trace, "regret").count("<circle") <= charts.MOST_DOTS


def test_methods_of_the_explorer_come_from_the_corners():
    record = full_record()
    ours, uniform = corner_losses(record)
    assert (ours["name"], uniform["name"]) == ("anymix", "uniform")
    loss = np.array(record["comparison"]["loss"])
    np.testing.assert_array_equal(ours["losses"], loss[1, [3, 2, 1]])
    np.testing.assert_array_equal(uniform["losses"], loss[0, [3, 2, 1]])


def test_without_corners_the_explorer_takes_the_sources():
    record = full_record()
    record["comparison"]["mixture_weights"] = np.full((4, 3), 1 / 3).tolist()
    methods = corner_losses(record)
    assert [m["name"] for m in methods] == ["anymix", *record["sources"]]
    assert methods[0]["losses"] == record["certificate"]["source_losses"]
    assert methods[2]["losses"] == record["cross_loss"]["mean"][1]


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=30))
@settings(max_examples=50, deadline=None)
def test_distances_are_positive_and_end_at_the_answer(worst):
    trace = [{"n_evaluations": n, "gamma": 1.0, "worst": w} for n, w in enumerate(worst)]
    found = charts.distances(trace, "regret")
    brute = [(n, abs(w - worst[-1])) for n, w in enumerate(worst) if abs(w - worst[-1]) > 1e-16]
    assert found == brute
    charts.convergence(trace, "regret")


def test_curves_stay_in_their_frame():
    record = full_record()
    svg = charts.convergence(record["solution"]["trace"], "regret")
    x, y = (
        np.array(re.findall(rf'<circle[^>]* {c}="([^"]+)"', svg), dtype=float) for c in ("cx", "cy")
    )
    assert len(x) == 6
    assert ((x >= charts.LEFT) & (x <= charts.WIDTH)).all()
    assert ((y >= charts.TOP) & (y <= charts.HEIGHT - charts.BOTTOM)).all()
    assert (np.diff(x) > 0).all()
    # Powers of ten are equally far apart: undo the map with an independent line fit.
    gap = [
        abs(step["worst"] - record["solution"]["trace"][-1]["worst"])
        for step in record["solution"]["trace"]
    ]
    assert abs(np.corrcoef(np.log10(gap[:-1]), y)[0, 1] + 1) < 1e-6


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_a_usual_value_shows_three_digits(values):
    usual = float(np.median(values))
    shown = float(markup.number(usual, markup.decimals(values)))
    assert shown == pytest.approx(usual, rel=5.1e-3) or usual > 100


def test_who_hears_whom_is_shown():
    weights = [[0.75, 0.25], [0.0, 1.0]]
    said = ["north hears the others: loss 0.5 to 0.4 at home.", "south keeps to its own model."]
    record = {
        "name": "Claims",
        "sources": ["north", "south"],
        "weights": [[1.0, 0.0], [0.0, 1.0]],
        "consulting": {"weights": weights, "sentences": said},
        "density": "Weighed by trees: held-out loss 0.5 on 900 rows.",
    }
    page = render_html(record)
    assert "Who consults whom" in page
    assert "north hears the others: loss 0.5 to 0.4 at home." in page
    assert "Weighed by trees" in page
    assert "before it consults the others" not in page
    whole = render_html(full_record() | {"consulting": {"weights": np.eye(3).tolist()}})
    assert "before it consults the others" in whole
    # how north takes the model of south stands in the row of south, under north
    shown = re.findall(r"\b\d\.\d\d\b", page.split("Who consults whom")[-1])
    assert shown[:4] == ["0.75", "0.00", "0.25", "1.00"]
    record["consulting"] = {"weights": [[1.0]]}
    with pytest.raises(ValueError, match=r"consulting\.weights has shape"):
        render_html(record)


def test_each_half_says_its_ground_and_what_others_would_get():
    record = full_record()
    told = {"loss_ground": "exact", "regret_ground": "measured", "clip": 2.5, "regret_upper": None}
    others = [{"name": "chance", "loss": 4.5, "clipped": 2.5}]
    record["certificate"] |= told | {"beside": others}
    page = Page(render_html(record))
    regret, measured = (e["text"] for e in page.find("dd"))
    assert regret.endswith("no confidence is claimed")
    assert measured.endswith("with 95 % confidence (exact), clipped at 2.5")
    assert "chance" in render_html(record)
    assert any(text.startswith("4.5") for text in page.cells("certificate"))
