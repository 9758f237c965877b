"""What the page says of today's traffic."""

from anymix.report import render_html
from tests.report.report_cases import Page, full_record

COST = "Without labels: the squared loss on these 200 rows is about 1.3 (1.2 to 1.5 with 95 % ...)."


def said(expected_loss, rings=False):
    """The paragraphs on the traffic and the look of each."""
    record = full_record()
    record["traffic"]["expected_loss"] = expected_loss
    record["traffic"]["alarm"]["rings"] = rings
    paragraphs = Page(render_html(record)).find("p", "traffic")
    return [(e["attributes"].get("class"), e["text"].replace("\u00a0", " ")) for e in paragraphs]


def test_an_expected_loss_stands_below_the_mixture():
    assert ("status calm", COST) in said({"sentence": COST})
    assert ("status alarm", COST) in said({"sentence": COST}, rings=True)


def test_without_one_nothing_is_said_of_it():
    assert len(said({"sentence": COST})) == len(said(None)) + 1
    assert not any("Without labels" in text for _, text in said(None))


def test_what_others_wrote_is_escaped():
    assert ("status calm", "<b>cheap</b>") in said({"sentence": "<b>cheap</b>"})


def test_the_intervals_are_said_to_be_of_each_share():
    assert "95 % interval of each" in render_html(full_record()).replace("\u00a0", " ")
