"""Records to one HTML page, for a person who decides whether to deploy the model."""

from anymix.report.page import render, render_html
from anymix.report.record import ReportRecord

__all__ = ["ReportRecord", "render", "render_html"]
