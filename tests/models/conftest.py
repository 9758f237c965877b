import pytest

from tests.audits import remembered_audits


@pytest.fixture(scope="package", autouse=True)
def audits():
    with remembered_audits():
        yield
