import pytest

from tests.studies.review_cases import DATA, made_up_reviews


@pytest.fixture
def real_data():
    if not DATA.is_dir():
        pytest.skip("the real data is not here")
    return DATA


@pytest.fixture
def reviews():
    return made_up_reviews()
