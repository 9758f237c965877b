"""Only what is listed may travel, and it comes back as it was."""

from dataclasses import dataclass

import numpy as np
import pytest

from anymix.core import Calibration, get_loss
from anymix.engines.flower_messages import pack, unpack
from anymix.exceptions import InputError

RECORDS = {"Calibration": Calibration}


@dataclass(frozen=True)
class Stranger:
    x: int = 1


def test_values_come_back_as_they_were():
    calibration = Calibration(np.array([1.0, 2.0]), np.zeros(2), -30.0, 2.0)
    value = ("losses", [1, 2.5, True, None], {"a": np.arange(3)}, calibration, float("-inf"))
    word, listed, named, found, low = unpack(pack(value, RECORDS), RECORDS)
    assert (word, listed, low) == ("losses", [1, 2.5, True, None], float("-inf"))
    np.testing.assert_array_equal(named["a"], np.arange(3))
    np.testing.assert_array_equal(found.temperature, calibration.temperature)
    assert found.sharpness == 2.0
    assert unpack(pack(get_loss("pinball"), {}), {}) == get_loss("pinball")


@pytest.mark.parametrize("value", [Stranger(), object(), {1, 2}, np.array([object()]), len])
def test_what_is_not_listed_does_not_travel(value):
    with pytest.raises(InputError, match="may not travel"):
        pack(value, RECORDS)


@pytest.mark.parametrize(
    "shape",
    [
        b'["record", "Stranger", {}]',
        b'["record", "Calibration", {"temperature": 1}]',
        b'["array", "a7"]',
        b'["float", "1e5"]',
        b'["call", "os.system"]',
        b'{"a": 1}',
        b"[",
        b"[]",
    ],
)
def test_a_message_of_another_form_is_refused(shape):
    with pytest.raises(InputError, match="a message"):
        unpack({"shape": np.frombuffer(shape, np.uint8)}, RECORDS)
    with pytest.raises(InputError, match="no shape"):
        unpack({}, RECORDS)
