"""Which mixture is today's traffic, is it one at all, and what to do about it."""

from anymix.monitor.mixture import MixtureEstimate, estimate_mixture
from anymix.monitor.novelty import novelty_scores

__all__ = ["MixtureEstimate", "estimate_mixture", "novelty_scores"]
