"""Only queries travel, and they come back as they were."""

import numpy as np
import pytest

from anymix.core import get_loss
from anymix.engines.wire import pack, unpack
from anymix.exceptions import InputError
from anymix.sources import Query


def test_queries_come_back_as_they_were():
    options = {"loss": get_loss("pinball"), "measure": "mae"}
    query = Query("evaluate", options, {"Z": np.eye(2), "delta": np.array(0.1)})
    found = unpack(pack(query))
    assert (found.name, found.options) == (query.name, options)
    np.testing.assert_array_equal(found.arrays["Z"], np.eye(2))
    assert found.arrays["delta"] == 0.1
    assert set(found.arrays) == set(query.arrays)


@pytest.mark.parametrize("value", [object(), {1, 2}, 1.5, len])
def test_what_is_not_listed_does_not_travel(value):
    with pytest.raises(InputError, match="may not travel"):
        pack(Query("count", {"loss": value}))


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["a"])])
def test_arrays_hold_numbers(array):
    with pytest.raises(InputError, match="may not travel"):
        pack(Query("count", {}, {"folds": array}))


@pytest.mark.parametrize(
    "head",
    [
        b'["count"]',
        b'["count", {"loss": {"name": "os.system"}}]',
        b'["count", {"loss": {"name": "squared", "z": 1}}]',
        b'["count", {"loss": 7}]',
        b'["count", []]',
        b'{"a": 1}',
        b"[",
        b"[]",
    ],
)
def test_a_message_of_another_form_is_refused(head):
    with pytest.raises(InputError, match="a message"):
        unpack({"query": np.frombuffer(head, np.uint8)})
    with pytest.raises(InputError, match="has no query"):
        unpack({})
