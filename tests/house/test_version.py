import anymix


def test_version_is_a_dotted_number():
    assert all(part.isdigit() for part in anymix.__version__.split("."))
