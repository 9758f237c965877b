"""The paper's experiments: records in, tables and pictures out."""

from anymix.studies.runner import STUDIES, ProgressLine, Result, run_study
from anymix.studies.tables import render

__all__ = ["STUDIES", "ProgressLine", "Result", "render", "run_study"]
