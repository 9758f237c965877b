"""What the guides say of certificates is what the record and the code say."""

import numpy as np

from anymix.core import BoundOptions, LossSummary, certify_rows
from benchmarks import certificates


def test_the_table_of_the_page_is_that_of_the_record():
    page = certificates.PAGE.read_text("utf-8")
    shown = page.split(certificates.START)[1].split(certificates.END)[0].strip().splitlines()
    assert shown == [certificates.verdict(), "", *certificates.lines()]


def test_no_cell_fails_more_often_than_chance_allows():
    found = certificates.joined(certificates.read())
    for cell, row in found.items():
        for how in certificates.HOWS:
            assert not certificates.too_often(row[how]["failed"], row["runs"]), (cell, how)


def test_harm_to_one_row_in_forty_may_have_been_missed():
    """As the page says, for 200 rows of each of three sources."""
    rng = np.random.default_rng(0)
    domain, fold = np.repeat(np.arange(3), 200), np.arange(600) % 5
    losses = rng.exponential(size=600)
    rows = LossSummary.of_rows(losses, losses, domain, fold=fold)
    found = certify_rows(rows, BoundOptions.at(0.95), z=np.full(3, 1 / 3), eta=1e-3, loss="squared")
    assert 1 / 41 < found.rarest < 1 / 37
    assert "about one in forty for 200 rows of each of three sources" in " ".join(
        certificates.PAGE.read_text("utf-8").split()
    )
