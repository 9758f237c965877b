"""Which mixture is today's traffic, is it one at all, and which z follows from it."""

from anymix.monitor.adapt import adapt_labelled, adapt_z
from anymix.monitor.alarm import Alarm, Scores, mixture_alarm
from anymix.monitor.estimate import MixtureEstimate, estimate_mixture
from anymix.monitor.monitor import Monitor, TrafficReport
from anymix.monitor.monitor import describe as describe
from anymix.monitor.novelty import novelty_scores

__all__ = [
    "Alarm",
    "MixtureEstimate",
    "Monitor",
    "Scores",
    "TrafficReport",
    "adapt_labelled",
    "adapt_z",
    "estimate_mixture",
    "mixture_alarm",
    "novelty_scores",
]
