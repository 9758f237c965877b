"""The paper's experiments: seeds in, records out, and from these tables and pictures."""

from experiments.runner import STUDIES, ProgressLine, Result, rehearse_study, run_study
from experiments.tables import render

__all__ = ["STUDIES", "ProgressLine", "Result", "rehearse_study", "render", "run_study"]
