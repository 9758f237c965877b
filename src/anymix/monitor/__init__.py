"""Which mixture is today's traffic, is it one at all, what does it cost, and which z follows."""

from anymix.monitor.adapt import adapt_labelled, adapt_z
from anymix.monitor.alarm import Alarm, Scores, mixture_alarm
from anymix.monitor.estimate import MixtureEstimate, estimate_mixture
from anymix.monitor.monitor import Monitor, TrafficReport
from anymix.monitor.monitor import describe as describe
from anymix.monitor.novelty import novelty_scores
from anymix.monitor.unlabelled import ExpectedLoss, expected_loss
from anymix.monitor.unlabelled import spoken as spoken

__all__ = [
    "Alarm",
    "ExpectedLoss",
    "MixtureEstimate",
    "Monitor",
    "Scores",
    "TrafficReport",
    "adapt_labelled",
    "adapt_z",
    "estimate_mixture",
    "expected_loss",
    "mixture_alarm",
    "novelty_scores",
]
