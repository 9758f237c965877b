"""The answer: theorems as numbers, bounds with confidence, divergences, the certificate."""

from anymix.core.guarantees.bounds import Assumptions, Bound, hoelder, paper_bounds
from anymix.core.guarantees.candidates import check_n_sources, n_rounded
from anymix.core.guarantees.certificate import FOLD_MODELS, Certificate, ReferenceLoss
from anymix.core.guarantees.certifying import certify, certify_rows, check_stated
from anymix.core.guarantees.confidence import Method, mean_upper_bound, worst_mean_upper_bound
from anymix.core.guarantees.divergence import (
    gaussian_renyi_ratio,
    renyi_ratio,
    sampled_renyi_ratio,
)
from anymix.core.guarantees.evidence import Evidence, LossSummary, SourceSample
from anymix.core.guarantees.facts import Points, facts_of
from anymix.core.guarantees.lower_bounds import one_input_example
from anymix.core.guarantees.moments import Moments
from anymix.core.guarantees.nearest import nearest_mixture, sampled_nearest_mixture
from anymix.core.guarantees.orders import best_hoelder
from anymix.core.guarantees.sampled import sampled_renyi_upper_bound
from anymix.core.guarantees.statements import BoundOptions, clip_of

__all__ = [
    "FOLD_MODELS",
    "Assumptions",
    "Bound",
    "BoundOptions",
    "Certificate",
    "Evidence",
    "LossSummary",
    "Method",
    "Moments",
    "Points",
    "ReferenceLoss",
    "SourceSample",
    "best_hoelder",
    "certify",
    "certify_rows",
    "check_n_sources",
    "check_stated",
    "clip_of",
    "facts_of",
    "gaussian_renyi_ratio",
    "hoelder",
    "mean_upper_bound",
    "n_rounded",
    "nearest_mixture",
    "one_input_example",
    "paper_bounds",
    "renyi_ratio",
    "sampled_nearest_mixture",
    "sampled_renyi_ratio",
    "sampled_renyi_upper_bound",
    "worst_mean_upper_bound",
]
