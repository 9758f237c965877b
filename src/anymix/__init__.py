"""anymix: one model from several sources, good on any mixture of them, with a certificate.

>>> import anymix
>>> anymix.DistributionWeightedClassifier()
DistributionWeightedClassifier()
"""

from importlib import import_module
from typing import Any

from anymix._version import __version__

# Each public name and the room it lives in; a room is entered when it is first asked for.
_ROOMS = {
    "Source": "anymix.sources",
    "Tables": "anymix.sources",
    "evaluate": "anymix.sources",
    "DistributionWeightedRegressor": "anymix.estimators",
    "DistributionWeightedClassifier": "anymix.estimators",
    "compare": "anymix.estimators",
    "compare_with_pooled": "anymix.estimators",
    "encode": "anymix.tables",
    "save": "anymix.models",
    "load": "anymix.models",
}

__all__ = ["__version__", *_ROOMS]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'anymix' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
