"""The verdict in a browser: its numbers, its picture, folds, widths and cues."""

import re

import numpy as np
import pytest

from anymix.report import render
from tests.report import browser
from tests.report.report_cases import full_record, labelled_record
from tests.report.test_report_browser import brightness

MISSING = browser.why_missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
RECORDS = {"numbers": full_record, "labels": labelled_record}
OPEN = "document.querySelectorAll('details').forEach(e => { e.open = true; })"


def texts(page, selector):
    """What a person reads, line by line."""
    script = (
        "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.split('\\n'))"
    )
    return page.run(script, selector)


def numbers(text):
    return [float(n.replace("−", "-")) for n in re.findall(r"[−+]?\d+(?:\.\d+)?", text)]


def behind(found):
    """What the table behind a verdict holds: [row][column][value, lower, upper], as shown."""
    scale = 100.0 if found["measure"] == "error rate" else 1.0
    own = np.array([found[n] for n in ("loss", "lower", "upper")])
    columns = [own]
    for rival in found["rivals"]:
        columns.append(np.array([rival["loss"]]))
        columns.append(np.array([rival[n] for n in ("difference", "lower", "upper")]))
    return [[scale * column[:, i] for column in columns] for i in range(own.shape[1])]


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_numbers_behind_are_those_of_the_record(show, kind, seed):
    record = RECORDS[kind](seed=seed)
    page = show(record)
    page.run(OPEN)
    tables = page.run("return document.querySelectorAll('#standing details').length")
    assert tables == len(record["verdict"])
    for t, found in enumerate(record["verdict"], 1):
        cells = texts(page, f"#standing details:nth-of-type({t}) td")
        expected = [column for line in behind(found) for column in line]
        for lines, due in zip(cells, expected, strict=True):
            np.testing.assert_allclose(numbers(" ".join(lines)), due, atol=0.051)


@pytest.mark.parametrize("kind", RECORDS)
def test_the_picture_is_to_scale(show, kind):
    record = RECORDS[kind]()
    page, found = show(record), record["verdict"][0]
    script = """
        const track = document.querySelectorAll('#standing .track')[arguments[0]];
        const box = track.getBoundingClientRect();
        return [...track.querySelectorAll('.mark')].map(e => {
            const at = e.getBoundingClientRect();
            return (at.x + at.width / 2 - box.x) / box.width;
        });
    """
    losses = [found["loss"], *(rival["loss"] for rival in found["rivals"])]
    names = ["ours", *(rival["name"] for rival in found["rivals"])]
    order = [names.index(name) for name in ("ours", "own", "average", "constant")]
    p = len(record["sources"])
    # All in equal parts is drawn first.
    for row, i in enumerate([p, *range(p)]):
        at = np.array(page.run(script, row))
        due = np.array([losses[k][i] for k in order])
        np.testing.assert_allclose(at / at[0], due / due[0], atol=0.02)


@pytest.mark.parametrize(("kind", "mark"), [("numbers", "units²"), ("labels", "%")])
def test_the_values_beside_the_picture_have_their_unit(show, kind, mark):
    record = RECORDS[kind]()
    page, found = show(record), record["verdict"][0]
    scale = 100.0 if kind == "labels" else 1.0
    lines = texts(page, "#standing .value")
    p = len(record["sources"])
    for (value, ends), i in zip(lines, [p, *range(p)], strict=True):
        due = [scale * found[n][i] for n in ("loss", "lower", "upper")]
        np.testing.assert_allclose([*numbers(value)[:1], *numbers(ends)[:2]], due, atol=0.051)
        assert value.endswith(mark)
        assert ends.endswith(mark)


def test_tables_and_explorer_show_shares_as_per_cent(show):
    record = labelled_record()
    page, table = show(record), record["comparison"]
    shown = [numbers(line[0])[0] for line in texts(page, "#comparison td")]
    expected = 100 * np.column_stack([table["loss"], table["worst"]])
    np.testing.assert_allclose(shown, expected.ravel(), atol=0.051)
    notes = [numbers(line[1]) for line in texts(page, "#comparison td") if " to " in line[1]]
    ends = 100 * np.stack([np.ravel(table["lower"]), np.ravel(table["upper"])], axis=1)
    np.testing.assert_allclose(notes, ends, atol=0.051)
    bars = [line[0] for line in texts(page, ".bars .value")]
    assert all(text.endswith("%") for text in bars)
    corners = np.array(table["loss"])[:2, :0:-1].mean(axis=1)[::-1]
    np.testing.assert_allclose([numbers(t)[0] for t in bars], 100 * corners, atol=0.051)


def test_engineers_parts_are_folded_until_asked_for(show):
    page = show(full_record())
    seen = "return document.getElementById(arguments[0]).checkVisibility()"
    assert not page.run(seen, "convergence")
    assert page.run(seen, "comparison")
    page.run("document.querySelector('#engineers summary').click()")
    assert page.run(seen, "convergence")


def test_the_full_width_is_used(show):
    page = show(full_record(), width=1280)
    script = """
        return [...document.querySelectorAll('section')].filter(e => e.checkVisibility()).map(e => {
            const inner = e.clientWidth - 2 * parseFloat(getComputedStyle(e).paddingLeft);
            const wide = Math.max(...[...e.querySelectorAll('table, .explorer, .dots')]
                .filter(x => x.checkVisibility()).map(x => x.getBoundingClientRect().width));
            return [e.id, wide / inner];
        });
    """
    for name, share in page.run(script):
        assert share > 0.97, name
    assert page.run("return document.querySelector('main').clientWidth") > 1100


def test_a_table_that_goes_on_says_so_until_its_end_is_seen(show):
    page = show(full_record(), width=390)
    cue = "return document.querySelector('#comparison .cue').checkVisibility()"
    assert page.run(cue)
    page.run("document.querySelector('#comparison .scroll').scrollLeft = 9999")
    page.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert not page.run(cue)
    wide = show(full_record(), width=1280)
    assert not wide.run(cue)


def test_the_verdict_is_seen_without_scrolling(show):
    for width, height in ((1280, 800), (390, 844)):
        page = show(full_record(), width=width, height=height)
        box = page.run(
            "return document.querySelector('#standing-title').getBoundingClientRect().bottom"
        )
        assert box < height / 2
        words = page.run(
            "return [...document.querySelectorAll('.tile .word')]"
            ".map(e => e.getBoundingClientRect().bottom)"
        )
        assert words[0] < height


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_verdict_can_be_read_in_both_schemes(show, scheme):
    page = show(full_record(), scheme=scheme)
    paper = brightness(page, "backgroundColor", "#standing")
    for selector in ("#standing h2", ".tile .word", ".headline", ".dots .value"):
        assert abs(brightness(page, "color", selector) - paper) > 70, selector


def test_a_record_of_an_older_version_has_its_page(show):
    """No verdict, no measure, no grounds: what there is is shown, and nothing breaks."""
    record = full_record()
    del record["verdict"], record["loss"], record["comparison"]["measure"]
    page = show(record)
    assert page.run("return document.getElementById('standing')") is None
    assert page.run("return document.querySelectorAll('section').length") == 8


def test_a_saved_page_needs_nothing_else(window, tmp_path):
    path = render(labelled_record(), tmp_path / "page.html")
    window.page(path)
    assert window.run("return performance.getEntriesByType('resource').length") == 0
