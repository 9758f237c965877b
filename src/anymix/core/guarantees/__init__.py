"""Theorems as numbers, confidence bounds, divergences, and the certificate."""

from anymix.core.guarantees.bounds import (
    best_hoelder,
    hoelder,
    one_input_example,
    paper_bounds,
)
from anymix.core.guarantees.certificate import (
    FOLD_MODELS,
    Certificate,
    ReferenceLoss,
    certify,
    certify_rows,
    check_n_sources,
    check_stated,
    n_rounded,
)
from anymix.core.guarantees.confidence import (
    Method,
    Moments,
    mean_upper_bound,
    worst_mean_upper_bound,
)
from anymix.core.guarantees.divergence import (
    gaussian_renyi_ratio,
    renyi_ratio,
    sampled_renyi_ratio,
    sampled_renyi_upper_bound,
)
from anymix.core.guarantees.loss_summary import (
    BoundKind,
    LossSummary,
    SourceSample,
    clip_of,
    clip_shares,
    largest_value,
)
from anymix.core.guarantees.nearest import nearest_mixture, sampled_nearest_mixture
from anymix.core.guarantees.premises import Assumptions, Bound, TheoremSums, facts_of
from anymix.core.guarantees.sentence import clipping
from anymix.core.guarantees.upper_bounds import BoundOptions

__all__ = [
    "FOLD_MODELS",
    "Assumptions",
    "Bound",
    "BoundKind",
    "BoundOptions",
    "Certificate",
    "LossSummary",
    "Method",
    "Moments",
    "ReferenceLoss",
    "SourceSample",
    "TheoremSums",
    "best_hoelder",
    "certify",
    "certify_rows",
    "check_n_sources",
    "check_stated",
    "clip_of",
    "clip_shares",
    "clipping",
    "facts_of",
    "gaussian_renyi_ratio",
    "hoelder",
    "largest_value",
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
