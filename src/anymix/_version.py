"""The version number, in one place."""

__version__ = "0.4.0"
