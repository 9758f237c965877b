"""Write a Flower app or an NVFlare job that names the sources.

Both are a few lines; anymix, which every site has installed, does all the rest.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from anymix._version import __version__
from anymix.engines.federation import AIMS, Settings
from anymix.exceptions import InputError, quoted
from anymix.exchange import ReceivedSource
from anymix.storage import plain_json, replacing, write_folder

# Where the server of each transport listens if nothing else is said.
ADDRESSES = {"flower": "127.0.0.1:8000", "nvflare": "localhost:8002"}
FILES = {
    "flower": (
        *("pyproject.toml", "README.md", "anymix_sites/__init__.py", "anymix_sites/sources.py"),
        *("anymix_sites/client.py", "anymix_sites/server.py", "home/config.toml"),
    ),
    "nvflare": (
        *("README.md", "project.yml", "job/meta.json", "job/app/config/config_fed_server.json"),
        "job/app/config/config_fed_client.json",
    ),
}
# Names of participants that NVFlare takes.
NVFLARE_NAME = re.compile("[A-Za-z0-9_-]+")
# A server's or a site's own settings, in the folder `local` of its NVFlare start-up kit.
OWN_FILE = "anymix.json"
# Classes that a job may name at an NVFlare site or server; those allowed already stay allowed.
ALLOWED = "class_allow_list"
CLASSES = {
    "site": (
        "anymix.engines.nvflare.SiteComponent",
        "nvflare.collab.runtime.executor.CollabExecutor",
    ),
    "server": (
        "anymix.engines.nvflare.ServerComponent",
        "nvflare.collab.runtime.controller.CollabController",
    ),
}
# What sends a site's log to the server, and where NVFlare keeps jobs by default.
LOG_STREAMER, SHARED = "site_log_streamer", "/tmp/nvflare"


def job_files(engine: str, sources: Mapping[str, str], address: str = "") -> dict[str, str]:
    """Return the files for a transport, by name; sources are names and SHA-256 of manifests."""
    address = address or ADDRESSES[engine]
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(
            f"the address {address!r:.60}",
            f"is none; write it as {ADDRESSES[engine]}, a host and a port below 65536",
        )
    if engine == "nvflare":
        _check_names(sources)
    facts = {
        "n": str(len(sources)),
        "names": ", ".join(f"`{name}`" for name in sources),
        "list": json.dumps(list(sources)),
        "first": next(iter(sources)),
        "version": __version__,
        # JSON of names and digests is Python, too, but for its escapes of rare letters.
        "sources": json.dumps(dict(sources), indent=4, ensure_ascii=False),
        "pairs": json.dumps(list(sources.items())),
        "settings": json.dumps(_aims(), indent=4).replace("\n", "\n" + 16 * " "),
        "clients": "\n".join(
            f"  - {{name: {name}, type: client, org: consortium}}" for name in sources
        ),
        **{"address": address, "host": host, "port": port},
    }
    folder = resources.files("anymix.engines") / f"{engine}_template"
    texts = {name: folder / f"{Path(name).name}.txt" for name in FILES[engine]}
    return {
        name: re.sub(r"\{(\w+)\}", lambda field: facts[field[1]], text.read_text("utf-8"))
        for name, text in texts.items()
    }


def _aims() -> dict[str, Any]:
    """What a job says of what is learned, with the defaults."""
    settings = asdict(Settings())
    return {name: settings[name] for name in (*AIMS, "generalist", "resume", "patience")}


def _check_names(sources: Mapping[str, str]) -> None:
    for name in sources:
        if not NVFLARE_NAME.fullmatch(name) or name == "server":
            raise InputError(
                f"the source {quoted(name)}",
                "cannot name a site of NVFlare, which takes letters, digits, - and _ (and not "
                "`server`); pack it with another --name",
            )


def write_app(
    received: Sequence[ReceivedSource],
    out: str | Path,
    address: str = "",
    engine: str = "flower",
    *,
    force: bool = False,
) -> None:
    """Write what a transport runs for these sources into a new folder, whole or not at all.

    With `force` an app or job that is there is replaced, if it holds nothing else.
    """
    target = Path(out)
    files = job_files(engine, {one.manifest.name: one.sha256 for one in received}, address)
    there = os.path.lexists(target)
    if there and not force:
        raise InputError(target, "exists already; choose another name, or replace it with --force")
    if there and (target.is_symlink() or not target.is_dir() or not _names_in(target) <= {*files}):
        raise InputError(target, "is not such an app; choose another name, or remove it first")
    write_folder(target, {name: text.encode() for name, text in files.items()}, replace=there)


def _names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def prepare_kit(kit: str | Path, own: Mapping[str, Any]) -> Path:
    """Write the settings of a server or a site into its NVFlare start-up kit; return the file.

    The kit then allows `CLASSES` besides those that it allows now, keeps what NVFlare would put
    into /tmp, and sends no log to the server.
    """
    folder = Path(kit).resolve()
    local = folder / "local"
    known = [local / name for name in ("resources.json", "resources.json.default")]
    present = [path for path in known if path.is_file()]
    if not present:
        raise InputError(kit, "is not an NVFlare start-up kit: it has no local/resources.json")
    resources_now = plain_json(present[0].read_bytes())
    allowed = resources_now.get(ALLOWED) if isinstance(resources_now, dict) else None
    if not isinstance(allowed, list):
        raise InputError(present[0], f"has no list {ALLOWED}; provision the kit with NVFlare 2.9")
    changed = _moved(resources_now, str(folder))
    classes = CLASSES["server" if "out" in own else "site"]
    changed[ALLOWED] = [*allowed, *(name for name in classes if name not in allowed)]
    parts = [part for part in changed.get("components", []) if part.get("id") != LOG_STREAMER]
    for path, content in ((known[0], changed | {"components": parts}), (local / OWN_FILE, own)):
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(dict(content), indent=2), "utf-8")
    return local / OWN_FILE


def _moved(value: Any, folder: str) -> Any:
    """Put what would be in NVFlare's folder in /tmp, which all users share, into a folder."""
    if isinstance(value, dict):
        return {name: _moved(each, folder) for name, each in value.items()}
    if isinstance(value, list):
        return [_moved(each, folder) for each in value]
    shared = isinstance(value, str) and value.startswith(SHARED)
    return folder + value[len(SHARED) :] if shared else value
