"""anymix: one model from several sources, good on any mix of them, with a certificate."""

from anymix._version import __version__

__all__ = ["__version__"]
