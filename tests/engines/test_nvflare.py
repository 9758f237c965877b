"""NVFlare carries the messages: its components with a double of its runtime in this process."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from anymix.engines import nvflare
from anymix.engines.federation import Settings, SiteError
from anymix.engines.nvflare import ServerComponent, SiteComponent, read_own
from anymix.exceptions import InputError, MissingError
from anymix.sources import learn
from tests.engines.federated_world import build, quiet

QUICK = {"calibrate": False, "consult": False, "objective": "gamma"}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    quiet()
    return build(tmp_path_factory.mktemp("numbers"), "regression", 40)


class Runtime:
    """What the components ask of NVFlare: decorators, who and where we are, and calls of sites."""

    def __init__(self, folder, world, wrong=None):
        self.folder, self.wrong, self.calls = folder, wrong or {}, 0
        self.site_name = "server"
        self.fl_ctx = SimpleNamespace(get_job_id=lambda: "job-1")
        self.workspace = SimpleNamespace(get_site_config_dir=lambda: folder / self.site_name)
        for name in world.names:
            (folder / name).mkdir()
            own = world.node(name, state=str(folder / name / "state"))
            own.pop("site")
            (folder / name / "anymix.json").write_text(json.dumps(own))
        (folder / "server").mkdir()
        own = {"sources": str(world.folder / "sources"), "out": str(folder / "model")}
        (folder / "server" / "anymix.json").write_text(json.dumps(own))

    def publish(self, method):
        return method

    main = publish

    def get_clients(self, names):
        def call(timeout):
            return SimpleNamespace(respond=lambda message: self.respond(names, message))

        return call

    def respond(self, names, message):
        self.calls += 1
        replies, failures = [], {}
        for self.site_name in names:
            error = self.wrong.get(self.site_name) if self.calls > 3 else None
            if isinstance(error, Exception):
                failures[self.site_name] = SimpleNamespace(cause=error)
            else:
                reply = self.sites[self.site_name].respond(message)
                replies.append((self.site_name, reply if error is None else error))
        self.site_name = "server"
        return Replies(replies, failures)


class Replies(list):
    def __init__(self, replies, failures):
        super().__init__(replies)
        self.failures = failures


def run(world, folder, monkeypatch, wrong=None, settings=QUICK):
    runtime = Runtime(folder, world, wrong)
    monkeypatch.setattr(nvflare, "need_nvflare", lambda: runtime)
    listed = list(world.expected.items())
    runtime.sites = {name: SiteComponent(listed) for name in world.names}
    ServerComponent(listed, settings).learn()
    return json.loads((folder / "model.sites.json").read_text())


def test_the_components_learn_what_rows_at_hand_give(numbers, tmp_path, monkeypatch):
    elsewhere = QUICK | {"out": "/etc", "sources": "/"}
    found = run(numbers, tmp_path, monkeypatch, settings=elsewhere)
    there = learn(numbers.tables(), Settings(**QUICK).goal("regression", numbers.names))
    np.testing.assert_allclose(found["z"], there.combination.z, atol=1e-8)
    assert found["sentence"] == there.evidence.certificate.sentence
    account = json.loads((tmp_path / "north" / "state" / "left.json").read_text())
    assert account["job-1"]["left"] == found["left"]["north"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError("timed out"), "site 'south' has not answered within 600 s"),
        (RuntimeError("cell is gone"), "site 'south' failed: cell is gone; fix it there"),
        (b"", "site 'south' sent what cannot be read"),
        ({"numbers": 1}, "site 'south' sent what cannot be read"),
    ],
)
def test_a_site_that_fails_is_named(numbers, tmp_path, monkeypatch, error, words):
    with pytest.raises(SiteError, match=words):
        run(numbers, tmp_path, monkeypatch, {"south": error})


def test_a_site_without_its_own_file_refuses_and_says_nothing_of_it(numbers, tmp_path, monkeypatch):
    broken = Runtime.__init__

    def without(self, *given):
        broken(self, *given)
        (self.folder / "west" / "anymix.json").write_text("[]")

    monkeypatch.setattr(Runtime, "__init__", without)
    with pytest.raises(SiteError, match="west' refuses to answer: its configuration") as caught:
        run(numbers, tmp_path, monkeypatch)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(MissingError, match="anymix federate --kit"):
        read_own(tmp_path)
    (tmp_path / "anymix.json").write_text("3")
    with pytest.raises(InputError, match="must be an object of settings"):
        read_own(tmp_path)


def test_without_nvflare_one_sentence_says_how_to_install_it():
    code = (
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'nvflare':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Wall())\n"
        "from anymix.engines.nvflare import SiteComponent\n"
        "try:\n    SiteComponent([])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == (
        "nvflare is not installed; it comes with anymix's extra 'nvflare': "
        "pip install '.[nvflare]' in a checkout."
    ), done.stderr
