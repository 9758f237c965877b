"""Source folders: a predictor and a density that may be handed to strangers, and taken from them.

The format is described in docs/format.md.
"""

from anymix.sources.exchange.manifest import AuditError, Manifest, OwnLoss
from anymix.sources.exchange.pack import pack_source
from anymix.sources.exchange.read import Audited, read_source, read_sources

__all__ = [
    "AuditError",
    "Audited",
    "Manifest",
    "OwnLoss",
    "pack_source",
    "read_source",
    "read_sources",
]
