"""The app that `anymix federate` writes: it says all settings, and its modules are ours."""

import tomllib

import pytest

from anymix._version import __version__
from anymix.engines.federation import Settings
from anymix.engines.flower_app import app_files
from anymix.exceptions import InputError

SOURCES = {"north": "1f" * 32, "south": "2e" * 32}


def test_every_setting_stands_in_the_app_with_its_default():
    """Flower takes no setting from a command that the app does not have."""
    project = tomllib.loads(app_files(SOURCES)["pyproject.toml"])
    assert Settings.of(project["tool"]["flwr"]["app"]["config"]) == Settings()
    assert project["project"]["dependencies"] == [f"anymix[exchange,flower]=={__version__}"]


def test_modules_name_the_sources_in_order():
    files = app_files({"b": "1", "a": "2"})
    found: dict = {}
    exec(files["anymix_sites/sources.py"], found)
    assert list(found["SOURCES"].items()) == [("b", "1"), ("a", "2")]
    for name in ("client", "server"):
        compile(files[f"anymix_sites/{name}.py"], name, "exec")
        assert len(files[f"anymix_sites/{name}.py"].splitlines()) < 10


def test_the_readme_has_four_commands_and_is_offline():
    readme = app_files(SOURCES, "10.0.0.7:8443")["README.md"]
    for word in ("flower-superlink", "flower-supernode", "flwr run", "anymix predict"):
        assert word in readme
    assert "--host 10.0.0.7 --port 8443" in readme
    for off in ("FLWR_TELEMETRY_ENABLED=0", "FLWR_DISABLE_UPDATE_CHECK=1", "--disable-runtime-dep"):
        assert off in readme


@pytest.mark.parametrize(
    "address", ["here", ":80", "host:", "host:port", "host:99999", "http://host:80"]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(InputError, match="is none; write it as"):
        app_files(SOURCES, address)


def test_a_setting_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="'objektive' is unknown; there are calibrate, confidence"):
        Settings.of({"objektive": "gamma"})
