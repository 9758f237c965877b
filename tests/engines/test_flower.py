"""Flower carries the messages: its apps through a grid in this process."""

import json
import logging
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("flwr", reason='sites need Flower: pip install "anymix[flower]"')

from flwr.app import Context, RecordDict

from anymix.engines.federation import Settings, SiteError, federate
from anymix.engines.flower import FlowerTransport, client_app, server_app
from anymix.sources import learn
from tests.engines.federated_world import build, quiet
from tests.engines.in_process_grid import in_process_grid

QUICK = {"calibrate": False, "consult": False, "objective": "gamma"}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    quiet()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    return build(tmp_path_factory.mktemp("numbers"), "regression", 40)


def grid_of(world, app=None):
    return in_process_grid(app or client_app(world.expected), world.nodes())


def settings_of(world, out):
    return {"sources": str(world.folder / "sources"), "out": str(out), **QUICK}


def test_the_server_app_learns_what_rows_at_hand_give(numbers, tmp_path):
    config = settings_of(numbers, tmp_path / "model")
    server_app(numbers.expected)(grid_of(numbers), Context(1, 1, {}, RecordDict(), config))
    found = json.loads((tmp_path / "model.sites.json").read_text())
    there = learn(numbers.tables(), Settings(**QUICK).goal("regression", numbers.names))
    np.testing.assert_allclose(found["z"], there.combination.z, atol=1e-8)
    assert found["sentence"] == there.evidence.certificate.sentence


def broken(world, change):
    """An app whose site 'south' fails, or sends something else, when it is asked again."""
    app, seen = client_app(world.expected), []

    def respond(message, context):
        reply = app(message, context)
        if context.node_config["site"] == "south" and seen.append(1) is None and len(seen) > 2:
            change(reply)
        return reply

    return respond


def empty(reply):
    reply.content = RecordDict()


def gone(reply):
    raise RuntimeError("the disk is gone")


@pytest.mark.parametrize(("change", "words"), [(empty, "cannot be read"), (gone, "disk is gone")])
def test_what_is_no_reply_names_its_site(numbers, tmp_path, change, words):
    grid = FlowerTransport(grid_of(numbers, broken(numbers, change)))
    settings = Settings.of(settings_of(numbers, tmp_path / "model"))
    with pytest.raises(SiteError, match=f"site 'south' .*{words}"):
        federate(grid, numbers.expected, settings, lambda text: None)


def test_without_flower_one_sentence_says_how_to_install_it():
    code = (
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'flwr':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Wall())\n"
        "import anymix, anymix.engines\n"
        "from anymix.engines.flower import client_app\n"
        "try:\n    client_app({}, None)\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == (
        "flwr is not installed; it comes with anymix's extra 'flower': "
        "pip install '.[flower]' in a checkout."
    ), done.stderr
