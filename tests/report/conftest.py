"""A browser that the tests of a file share, and pages opened in it."""

import pytest

from anymix.report import render
from tests.report import browser


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    opened = browser.Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture
def show(window, tmp_path):
    """Render a record, open it, and hold that the browser has nothing to complain of."""

    def _show(record, **options):
        window.page(render(record, tmp_path / "page.html"), **options)
        return window

    yield _show
    assert window.complaints() == []
