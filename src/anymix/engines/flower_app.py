"""A Flower app on disk: a few lines that name the sources, and call anymix for all the rest."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from anymix._version import __version__
from anymix.exceptions import InputError
from anymix.exchange import ReceivedSource

ADDRESS = "127.0.0.1:8000"

FILES = (
    *("pyproject.toml", "README.md", "anymix_sites/__init__.py", "anymix_sites/sources.py"),
    *("anymix_sites/client.py", "anymix_sites/server.py", "home/config.toml"),
)


def app_files(sources: Mapping[str, str], address: str = ADDRESS) -> dict[str, str]:
    """Return the files of the app, by name; sources are names and SHA-256 of manifests."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(
            f"the address {address!r:.60}",
            f"is none; write it as {ADDRESS}, a host and a port below 65536",
        )
    facts = {
        "n": str(len(sources)),
        "names": ", ".join(f"`{name}`" for name in sources),
        "first": next(iter(sources)),
        "version": __version__,
        # JSON of names and digests is Python, too, but for its escapes of rare letters.
        "sources": json.dumps(dict(sources), indent=4, ensure_ascii=False),
        **{"address": address, "host": host, "port": port},
    }
    folder = resources.files("anymix.engines") / "flower_template"
    texts = {name: folder / f"{Path(name).name}.txt" for name in FILES}
    return {
        name: re.sub(r"\{(\w+)\}", lambda field: facts[field[1]], text.read_text("utf-8"))
        for name, text in texts.items()
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
