"""Render records as one HTML page or a model card, for the decision on deployment."""

from anymix.report.card import CARD_BEGIN as CARD_BEGIN
from anymix.report.card import CardFacts, render_card
from anymix.report.page import render, render_html
from anymix.report.record import ReportRecord

__all__ = ["CardFacts", "ReportRecord", "render", "render_card", "render_html"]
