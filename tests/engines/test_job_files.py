"""What `anymix federate` writes: it says all settings, and brings no code but a few lines."""

import json
import tomllib

import pytest

from anymix._version import __version__
from anymix.engines.federation import Settings
from anymix.engines.job_files import ALLOWED, CLASSES, job_files, prepare_kit
from anymix.exceptions import InputError

SOURCES = {"north": "1f" * 32, "south": "2e" * 32}


def test_every_setting_stands_in_the_app_with_its_default():
    """Flower takes no setting from a command that the app does not have."""
    project = tomllib.loads(job_files("flower", SOURCES)["pyproject.toml"])
    assert Settings.of(project["tool"]["flwr"]["app"]["config"]) == Settings()
    assert project["project"]["dependencies"] == [f"anymix[exchange,flower]=={__version__}"]


def test_modules_name_the_sources_in_order():
    files = job_files("flower", {"b": "1", "a": "2"})
    found: dict = {}
    exec(files["anymix_sites/sources.py"], found)
    assert list(found["SOURCES"].items()) == [("b", "1"), ("a", "2")]
    for name in ("client", "server"):
        compile(files[f"anymix_sites/{name}.py"], name, "exec")
        assert len(files[f"anymix_sites/{name}.py"].splitlines()) < 10


def test_the_readme_has_four_commands_and_is_offline():
    readme = job_files("flower", SOURCES, "10.0.0.7:8443")["README.md"]
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
        job_files("flower", SOURCES, address)


def test_a_setting_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="'objektive' is unknown; there are calibrate, confidence"):
        Settings.of({"objektive": "gamma"})


# --- NVFlare -------------------------------------------------------------------------------------


def test_an_nvflare_job_names_sites_and_classes_and_every_setting():
    files = job_files("nvflare", SOURCES, "hub.example.org:8443")
    meta = json.loads(files["job/meta.json"])
    assert (meta["min_clients"], meta["mandatory_clients"]) == (2, ["north", "south"])
    server = json.loads(files["job/app/config/config_fed_server.json"])
    client = json.loads(files["job/app/config/config_fed_client.json"])
    (component,) = server["components"]
    assert component["path"] in CLASSES["server"]
    assert dict(component["args"]["sources"]) == SOURCES
    assert Settings.of(component["args"]["settings"]) == Settings()
    assert not {"out", "sources"} & set(component["args"]["settings"])
    (own,) = client["components"]
    assert own["path"] in CLASSES["site"]
    assert client["executors"][0]["executor"]["path"] in CLASSES["site"]
    assert dict(own["args"]["sources"]) == SOURCES
    assert (
        "name: hub.example.org, type: server, org: consortium, fed_learn_port: 8443"
        in (files["project.yml"])
    )


@pytest.mark.parametrize("name", ["a b", "server", "Köln", "a.b"])
def test_a_source_that_cannot_name_a_site_of_nvflare_is_refused(name):
    with pytest.raises(InputError, match="cannot name a site of NVFlare"):
        job_files("nvflare", SOURCES | {name: "3d" * 32})


def kit_in(folder, **content):
    (folder / "local").mkdir(parents=True)
    path = folder / "local" / "resources.json.default"
    streamer = {"id": "site_log_streamer", "path": "x"}
    jobs = {"id": "job_manager", "args": {"uri_root": "/tmp/nvflare/jobs-storage"}}
    kept = {ALLOWED: ["nvflare.a.B"], "components": [streamer, jobs]}
    path.write_text(json.dumps(kept | content))
    return folder


def test_a_kit_allows_our_classes_alone_and_sends_no_log(tmp_path):
    kit = kit_in(tmp_path / "kit")
    for _ in range(2):
        path = prepare_kit(kit, {"rows": "/data/rows.csv"})
    assert json.loads(path.read_text()) == {"rows": "/data/rows.csv"}
    found = json.loads((kit / "local" / "resources.json").read_text())
    assert found[ALLOWED] == ["nvflare.a.B", *CLASSES["site"]]
    (jobs,) = found["components"]
    assert jobs["args"]["uri_root"] == f"{kit}/jobs-storage"
    prepare_kit(kit_in(tmp_path / "hub"), {"out": "/data/model"})
    hub = json.loads((tmp_path / "hub" / "local" / "resources.json").read_text())
    assert hub[ALLOWED] == ["nvflare.a.B", *CLASSES["server"]]


def test_what_is_no_kit_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not an NVFlare start-up kit"):
        prepare_kit(tmp_path, {})
    with pytest.raises(InputError, match="has no list class_allow_list"):
        prepare_kit(kit_in(tmp_path / "kit", **{ALLOWED: None}), {})
