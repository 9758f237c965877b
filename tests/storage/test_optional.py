"""A library that is not there is named, with the extra that brings it."""

import pytest

from anymix.storage import installed, need

SENTENCE = r"nowhere is not installed; .* pip install '\.\[{}\]' in a checkout\.$"


@pytest.mark.parametrize("extra", ["exchange", "site"])
def test_the_extra_is_named(extra):
    with pytest.raises(ImportError, match=SENTENCE.format(extra)):
        need("nowhere.deep", extra)


def test_nothing_is_loaded_to_know_what_is_there():
    with pytest.raises(ImportError, match=SENTENCE.format("exchange")):
        installed("json", "nowhere")
