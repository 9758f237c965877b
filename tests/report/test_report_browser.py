"""The page in a browser: numbers, explorer, keyboard, small windows, dark, print, hostile names."""

import json

import numpy as np
import pytest

from anymix.report import render_html
from tests.report import browser, three_hospitals
from tests.report.report_cases import HOSTILE, full_record

MISSING = browser.why_missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
HANDLE = ".triangle .handle"


def numbers(window, selector):
    """Read numbers as a person sees them; the small print is left out."""
    texts = window.run(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.split('\\n')[0])",
        selector,
    )
    return [float(text.replace("−", "-").rstrip("\xa0 %")) for text in texts]


def check_numbers(window, record):
    """Compare every table, and the explorer, with the record; nobody reads what is folded away."""
    window.run("engineers.open = true")
    certificate, comparison = record["certificate"], record["comparison"]
    own, ours = np.array(certificate["own_losses"]), np.array(certificate["source_losses"])
    home = np.stack([own, ours, ours - own, record["rows"], record["z"]], axis=1)
    scores = np.column_stack([comparison["loss"], comparison["worst"]])
    report = record["calibration"]["report"]
    both = [[report[f"{n}_{w}"] for w in ("before", "after")] for n in ("log_loss", "error")]
    for selector, expected in {
        "#certificate .scroll:not(details *) td": home,
        "#certificate dd": [certificate["regret"], certificate["robust_loss"]],
        "#comparison td": scores,
        "#cross td": record["cross_loss"]["mean"],
        "#weights td": record["weights"],
        "#calibration td": both,
        "#traffic td:nth-child(2)": np.round(
            100 * np.array(record["traffic"]["estimate"]["mixture"])
        ),
    }.items():
        np.testing.assert_allclose(
            numbers(window, selector), np.ravel(expected), atol=5.1e-3, err_msg=selector
        )
    check_explorer(window, record)


def check_explorer(window, record):
    """The bars show Σ_k λ_k L_k of the mixture that is chosen; return that mixture."""
    mixture = np.array(json.loads(window.run("return explorer.dataset.mixture")))
    assert mixture.min() >= 0
    assert mixture.sum() == pytest.approx(1)
    # In these records "all" comes first, and then each domain, from the last to the first.
    corners = np.array(record["comparison"]["loss"])[:, :0:-1]
    expected = (corners @ mixture)[[1, 0]]
    np.testing.assert_allclose(numbers(window, ".bars .value"), expected, atol=5.1e-3)
    widths = window.run(
        "return [...document.querySelectorAll('.bars .bar')]"
        ".map(e => e.getBoundingClientRect().width)"
    )
    assert widths[0] / widths[1] == pytest.approx(expected[0] / expected[1], rel=0.03)
    shares = numbers(window, ".slider output")
    np.testing.assert_allclose(shares, 100 * mixture, atol=0.51)
    return mixture


@pytest.mark.parametrize("seed", [0, 1])
def test_numbers_on_the_page_are_those_of_the_record(show, seed):
    record = full_record(seed=seed)
    check_numbers(show(record), record)


@pytest.mark.parametrize(
    "field", ["certificate.own_losses", "comparison.loss", "cross_loss.mean", "weights"]
)
def test_a_wrong_number_is_found(show, field):
    """The check itself can fail: one number of the record is moved after the page was written."""
    record = full_record()
    window = show(record)
    value = record
    for part in field.split("."):
        value = value[part]
    (value[1] if isinstance(value[1], list) else value)[1] += 0.02
    with pytest.raises(AssertionError):
        check_numbers(window, record)


@pytest.mark.parametrize("key", ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"])
def test_arrow_keys_move_the_point(show, key):
    record = full_record()
    window = show(record)
    window.press(HANDLE, key, times=4)
    moved = check_explorer(window, record) - 1 / 3
    # North is on top, south left, west right.
    towards = {"ArrowUp": 0, "ArrowLeft": 1, "ArrowRight": 2}
    if key in towards:
        assert moved.argmax() == towards[key]
        assert moved.max() > 0.05
    else:
        assert moved[0] < -0.05
    text = window.run("return document.querySelector(arguments[0]).ariaValueText", HANDLE)
    assert "north" in text


def test_the_point_can_be_dragged_and_stays_on_the_simplex(show):
    record = full_record()
    window = show(record)
    window.run("document.querySelector('.triangle').scrollIntoView({block: 'center'})")
    box = window.run("return document.querySelector(arguments[0]).getBoundingClientRect()", HANDLE)
    start = [round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)]
    window.drag(start, [start[0] - 40, start[1] + 20])
    inside = check_explorer(window, record)
    assert inside.argmax() == 1
    assert inside.min() > 0.05
    window.drag([start[0] - 40, start[1] + 20], [start[0], 5])
    np.testing.assert_allclose(check_explorer(window, record), [1, 0, 0], atol=0.02)


@pytest.mark.parametrize("names", [("north", "south"), ("a", "b", "c", "d", "e")])
def test_sliders_rescale_the_others(show, names):
    record = full_record(names)
    window = show(record)
    assert window.run("return document.querySelector('.triangle')") is None
    script = """
        const input = document.querySelectorAll('.slider input')[arguments[0]];
        input.value = arguments[1];
        input.dispatchEvent(new Event('input'));
    """
    window.run(script, 1, 60)
    window.run(script, 0, 30)
    mixture = check_explorer(window, record)
    assert mixture[0] == pytest.approx(0.3)
    before = np.r_[0.4 / (len(names) - 1), 0.6]
    assert mixture[1] == pytest.approx(before[1] * 0.7 / (1 - before[0]))
    window.run(script, 0, 100)
    window.run(script, 0, 50)
    np.testing.assert_allclose(check_explorer(window, record)[1:], 0.5 / (len(names) - 1))


def test_presets_reach_corners_and_traffic(show):
    record = full_record()
    window = show(record)
    script = """
        const found = [...document.querySelectorAll('.presets button')];
        found.find(button => button.textContent === arguments[0]).click();
    """
    window.run(script, "only west")
    np.testing.assert_allclose(check_explorer(window, record), [0, 0, 1])
    window.run(script, "today’s traffic")
    np.testing.assert_allclose(
        check_explorer(window, record), record["traffic"]["estimate"]["mixture"]
    )
    assert "loses" in window.run("return verdict.textContent")


def test_traffic_that_is_no_mixture_is_not_offered(show):
    record = full_record()
    record["traffic"]["alarm"]["rings"] = True
    window = show(record)
    assert window.run("return document.querySelectorAll('.presets button').length") == 4
    assert window.run("return document.querySelector('.today')") is None
    assert (
        window.run("return document.querySelector('[role=alert]').getBoundingClientRect().y") < 300
    )


@pytest.mark.parametrize("width", [360, 390, 768])
@pytest.mark.parametrize("names", [("north", "south", "west"), tuple(HOSTILE)])
def test_nothing_is_wider_than_the_window(show, width, names):
    window = show(full_record(names) | {"name": names[-1]}, width=width)
    assert window.run("return document.documentElement.scrollWidth") <= width
    tall = window.run("return document.documentElement.scrollHeight")
    assert tall > 1000


def brightness(window, style, selector="body"):
    colour = window.run(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]",
        selector,
        style,
    )
    return np.mean([float(part) for part in colour.strip("rgba()").split(",")[:3]])


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_colours_follow_the_reader(show, scheme, dark):
    window = show(full_record(), scheme=scheme)
    paper, ink = brightness(window, "backgroundColor"), brightness(window, "color")
    assert (paper < ink) == dark
    assert abs(paper - ink) > 150


def test_print_is_dark_on_light_and_without_controls(show):
    window = show(full_record(), scheme="dark", media="print")
    assert brightness(window, "backgroundColor") > 250
    assert brightness(window, "color") < 10
    hidden = window.run(
        "return [...document.querySelectorAll('.presets, .slider input')]"
        ".every(e => getComputedStyle(e).display === 'none')"
    )
    assert hidden


def test_everything_that_moves_can_be_focused_and_has_a_name(show):
    window = show(full_record())
    script = """
        document.querySelectorAll('details').forEach(e => { e.open = true; });
        const movers = [...document.querySelectorAll('input, button, [tabindex], summary')];
        return movers.map(e => {
            e.focus({focusVisible: true});
            const style = getComputedStyle(e);
            const seen = style.outlineStyle !== 'none' || style.strokeWidth === '5px';
            return [document.activeElement === e, seen, e.ariaLabel || e.textContent];
        });
    """
    found = window.run(script)
    assert len(found) > 10
    for focused, seen, name in found:
        assert focused
        assert seen
        assert name.strip()


def test_hostile_names_are_shown_and_do_nothing(show):
    record = full_record(HOSTILE) | {"name": HOSTILE[1]}
    window = show(record)
    assert window.run("return window.hacked") is None
    assert window.run("return document.querySelector('h1').textContent") == HOSTILE[1]
    shown = window.run(
        "return [...document.querySelectorAll('.slider span')].map(e => e.textContent)"
    )
    assert shown == HOSTILE
    check_explorer(window, record)


def test_even_a_smuggled_script_does_not_run(window, tmp_path):
    """The page's own policy stops what escaping might one day miss."""
    html = render_html(full_record())
    smuggled = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    path = tmp_path / "page.html"
    path.write_text(html.replace("<main>", f"<main>{smuggled}"), encoding="utf-8")
    window.page(path)
    assert window.run("return window.hacked") is None
    assert any("Content Security Policy" in entry["message"] for entry in window.complaints())
    assert window.run("return explorer.dataset.mixture") is not None


def test_the_report_of_a_fitted_model(show):
    """From training to the page, with the losses recomputed from the model's own tables."""
    model, record = three_hospitals.fit(60, np.random.default_rng(0))
    window = show(record)
    certificate = window.run("return document.querySelector('.sentence').textContent")
    assert certificate.replace("\xa0", " ") == model.certificate_.sentence
    losses, domain = model.held_out_.losses(model.tables_, model.loss), model.tables_.sample_domain
    due = [losses[domain == k].mean() for k in range(3)]
    shown = numbers(window, "#certificate td.ours")
    np.testing.assert_allclose(shown, [*due, max(due)], atol=5.1e-3)
    heads = window.run("return [...document.querySelectorAll('h2')].map(e => e.textContent)")
    assert len(heads) == 12
    assert window.run("return document.querySelectorAll('.bars .name').length") == 6
