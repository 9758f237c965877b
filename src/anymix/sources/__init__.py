"""What an organisation hands over, and the tables that all of them make of a set of points."""

from anymix.sources.source import Source
from anymix.sources.tables import Tables, evaluate

__all__ = ["Source", "Tables", "evaluate"]
