import os

import pytest

from experiments.made_up import made_up_reviews
from tests.experiments.real_data import DATA

# PyTorch reads it when it is first imported: on cores that test processes share, its threads would
# only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def real_data():
    if not DATA.is_dir():
        pytest.skip("the real data is not here")
    return DATA


@pytest.fixture
def reviews():
    return made_up_reviews()
