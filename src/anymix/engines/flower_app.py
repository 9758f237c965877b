"""A Flower app on disk: a few lines that name the sources, and call anymix for all the rest."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from anymix._version import __version__
from anymix.exceptions import InputError
from anymix.exchange import ReceivedSource

ADDRESS = "127.0.0.1:8000"

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "anymix-sites"
version = "1.0.0"
description = "Learn one model from sites that keep their rows."
license = "BSD-3-Clause"
dependencies = ["anymix[exchange,flower]=={version}"]

[tool.hatch.build.targets.wheel]
packages = ["anymix_sites"]

[tool.flwr.app]
publisher = "anymix"

[tool.flwr.app.components]
serverapp = "anymix_sites.server:app"
clientapp = "anymix_sites.client:app"

# The server's settings; `flwr run --run-config 'out="model"'` changes them for a run.
[tool.flwr.app.config]
sources = "sources"
out = "model"
objective = "regret"
eta = 0.001
confidence = 0.95
calibrate = true
consult = true
resume = false
patience = 600.0
"""

SOURCES = '''\
"""The sources, in order, with the SHA-256 of their manifests: the same at all sites."""

SOURCES = {sources}
'''

CLIENT = '''\
"""A site: it answers by sums over its rows, which stay where they are."""

from anymix.cli.federate_command import read_rows
from anymix.engines.flower import client_app
from anymix_sites.sources import SOURCES

app = client_app(SOURCES, read_rows)
'''

SERVER = '''\
"""The learner: it asks all sites in rounds, and writes the model folder."""

from anymix.engines.flower import server_app
from anymix_sites.sources import SOURCES

app = server_app(SOURCES)
'''

README = """\
# Learn one model from {n} sites that keep their rows

The sources are {names}. Every site, and the server, has a folder that holds the
folders of all of them, and anymix {version} with the extras `exchange` and `flower` (in a
checkout of it: `pip install '.[exchange,flower]'`). Nothing else is installed or fetched at run
time:

    export FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 FLWR_HOME=$PWD/home

1. At the server:

       flower-superlink --insecure --host {host} --port {port} \\
         --disable-runtime-dependency-installation

2. At each site, with its own name, rows and folder of sources (paths from the root, as the app
   runs elsewhere); several on one machine need a `--port` each:

       flower-supernode --insecure --superlink {address} \\
         --node-config 'site="{first}" rows="/data/{first}.csv" sources="/data/sources"'

3. At the server, in this folder:

       flwr run . sites --stream --run-config 'sources="/data/sources" out="/data/model"'

4. Then, wherever the model is needed:

       anymix predict /data/model new_rows.csv

Each site logs what leaves it, in numbers, and refuses to answer for fewer than 20 rows.
`min-rows=50` in its own `--node-config` asks for more, `target="label"` names the column of the
target, and `state="/data/state"` the folder for what it keeps between messages. If a site fails, it
is named; start it again, and run step 3 with `resume=true` added.

`--insecure` is for one machine: between machines give the SuperLink certificates
(`--ssl-certfile`, `--ssl-keyfile`, `--ssl-ca-certfile`) and the sites `--root-certificates`, and
let sites sign in (`--enable-supernode-auth`). A SuperNode runs the code of the app that it is sent:
whoever may start runs at your SuperLink is trusted with your rows, unless you accept signed apps
alone (`--trusted-entities`).
"""

CONNECTION = """\
[superlink]
default = "sites"

[superlink.sites]
address = "{address}"
insecure = true
"""


def app_files(sources: Mapping[str, str], address: str = ADDRESS) -> dict[str, str]:
    """Return the files of the app, by name; sources are names and SHA-256 of manifests."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(
            f"the address {address!r:.60}",
            f"is none; write it as {ADDRESS}, a host and a port below 65536",
        )
    names = list(sources)
    # JSON of names and digests is Python, too, but for its escapes of rare letters.
    named = json.dumps(dict(sources), indent=4, ensure_ascii=False)
    facts = {"n": len(names), "names": ", ".join(f"`{name}`" for name in names)}
    facts |= {"first": names[0], "version": __version__}
    return {
        "pyproject.toml": PYPROJECT.replace("{version}", __version__),
        "README.md": README.format(address=address, host=host, port=port, **facts),
        "anymix_sites/__init__.py": '"""Sites that keep their rows, and who asks them."""\n',
        "anymix_sites/sources.py": SOURCES.format(sources=named),
        "anymix_sites/client.py": CLIENT,
        "anymix_sites/server.py": SERVER,
        "home/config.toml": CONNECTION.format(address=address),
    }


def write_app(received: Sequence[ReceivedSource], out: str | Path, address: str = ADDRESS) -> None:
    """Write a Flower app for these sources into a new folder, whole or not at all."""
    target = Path(out)
    if target.exists() or target.is_symlink():
        raise InputError(target, "is there already; choose another name, or remove it")
    files = app_files({one.manifest.name: one.sha256 for one in received}, address)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        folder = Path(temporary) / "app"
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        os.rename(folder, target)
