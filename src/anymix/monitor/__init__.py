"""Monitor traffic without labels: its mixture, an alarm, the expected loss, and adaptation."""

from anymix.monitor.adaptation import adapt_labelled, adapt_z
from anymix.monitor.alarm import Alarm, Scores, mixture_alarm
from anymix.monitor.mixture import MixtureEstimate, estimate_mixture
from anymix.monitor.scores import novelty_scores
from anymix.monitor.traffic import Monitor, TrafficReport, describe_traffic
from anymix.monitor.unlabelled import ExpectedLoss, expected_loss, with_sentence

__all__ = [
    "Alarm",
    "ExpectedLoss",
    "MixtureEstimate",
    "Monitor",
    "Scores",
    "TrafficReport",
    "adapt_labelled",
    "adapt_z",
    "describe_traffic",
    "estimate_mixture",
    "expected_loss",
    "mixture_alarm",
    "novelty_scores",
    "with_sentence",
]
