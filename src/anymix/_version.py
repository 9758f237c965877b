"""The one place of the version number."""

__version__ = "0.2.0"
