"""The page on deployment shows the losses of the private path that were measured."""

import pytest

pytest.importorskip("pandas")

from benchmarks import private_path


def test_the_table_of_the_page_is_that_of_the_record():
    page = private_path.PAGE.read_text("utf-8")
    shown = page.split(private_path.START)[1].split(private_path.END)[0].strip().splitlines()
    assert shown == private_path.lines(private_path.read())
