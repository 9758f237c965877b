"""Federated learning over NVFlare: the components of a job that contains no code.

NVFlare only carries the messages of `wire`; `federation` and `site` are the same for all
transports.  A job names the classes of this module, which every site has installed: a site needs to
allow no more than its own one (`job_files.CLASSES`), and runs nothing that it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anymix.engines.federation import Settings, federate
from anymix.engines.job_files import OWN_FILE
from anymix.engines.site import respond
from anymix.engines.wire import LOG
from anymix.exceptions import InputError, MissingError, not_installed
from anymix.storage import plain_json

# Names of sources with the SHA-256 of their manifests, in order, as the job lists them.
Listed = Sequence[Sequence[str]]


class SiteComponent:
    """What a site runs: it responds to messages by sums over its rows.

    Parameters
    ----------
    sources : list of pairs
        Names of the sources, in order, with the SHA-256 of their manifests.

    The places of rows and folders are in the site's own `local/anymix.json`, which a server cannot
    change; its name is the one that its certificate says.
    """

    def __init__(self, sources: Listed) -> None:
        self.expected = {str(name): str(digest) for name, digest in sources}
        self.respond = need_nvflare().publish(self._respond)

    def _respond(self, message: bytes) -> bytes:
        collab = need_nvflare()
        name, kit = collab.site_name, collab.workspace.get_site_config_dir()
        run = str(collab.fl_ctx.get_job_id())
        return respond(message, run, lambda: {**read_own(kit), "site": name}, self.expected)


class ServerComponent:
    """What the server runs: it learns by rounds, and writes the model.

    Parameters
    ----------
    sources : list of pairs
        Names of the sources, in order, with the SHA-256 of their manifests; there is a site for
        each, of the same name.
    settings : mapping
        The objective of z and more; see `Settings`.  The paths of the folders are in the server's
        own `local/anymix.json`.
    """

    def __init__(self, sources: Listed, settings: Mapping[str, Any]) -> None:
        self.expected = {str(name): str(digest) for name, digest in sources}
        self.settings = dict(settings)
        self.learn = need_nvflare().main(self._learn)

    def _learn(self) -> str:
        collab = need_nvflare()
        own = read_own(collab.workspace.get_site_config_dir())
        # Where the server reads and writes is not for a job to say.
        aims = {
            name: value for name, value in self.settings.items() if name not in ("sources", "out")
        }
        settings = Settings.of(aims | own)
        names = list(self.expected)
        clients = collab.get_clients(names)(timeout=settings.patience)
        federate(NvflareTransport(clients, names), self.expected, settings, LOG.info)
        return settings.out


class NvflareTransport:
    """The sites of a job, by the names that their certificates say.

    `clients` is a group of NVFlare's, whose calls return replies and failures by site.
    """

    def __init__(self, clients: Any, names: Sequence[str]) -> None:
        self.clients, self.names = clients, list(names)

    def nodes(self) -> list[str]:
        """The sites of the job, which starts when all are connected."""
        return list(self.names)

    def send(self, message: bytes, nodes: Sequence[Any], patience: float) -> dict[Any, bytes | str]:
        """Send a message to all sites; return the replies that came in time, and failures."""
        found = self.clients.respond(message)
        replies = {site: reply if isinstance(reply, bytes) else b"" for site, reply in found}
        late = {
            site for site, error in found.failures.items() if isinstance(error.cause, TimeoutError)
        }
        failures = {s: str(e.cause) for s, e in found.failures.items() if s not in late}
        return replies | failures


def need_nvflare() -> Any:
    """Import the parts of NVFlare that a component needs, or say how to install it."""
    try:
        from nvflare.collab import collab
    except ImportError as error:
        raise not_installed("nvflare", "nvflare") from error
    return collab


def read_own(kit: str | Path) -> dict[str, Any]:
    """Read anymix.json in the folder `local` of a start-up kit; it never leaves its machine."""
    path = Path(kit) / OWN_FILE
    if not path.is_file():
        raise MissingError(path, "is not there; write it with anymix federate --kit")
    own = plain_json(path.read_bytes())
    if not isinstance(own, dict):
        raise InputError(path, "must be an object of settings; write it with anymix federate --kit")
    return own
