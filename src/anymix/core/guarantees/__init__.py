"""The answer: theorems as numbers, bounds with confidence, divergences, the certificate."""

from anymix.core.guarantees.bounds import Assumptions, Bound, hoelder
from anymix.core.guarantees.candidates import check_number, n_rounded
from anymix.core.guarantees.certificate import Certificate, certify
from anymix.core.guarantees.confidence import mean_upper_bound, worst_mean_upper_bound
from anymix.core.guarantees.divergence import (
    gaussian_renyi_ratio,
    renyi_ratio,
    sampled_renyi_ratio,
)
from anymix.core.guarantees.nearest import nearest_mixture, sampled_nearest_mixture

__all__ = [
    "Assumptions",
    "Bound",
    "Certificate",
    "certify",
    "check_number",
    "gaussian_renyi_ratio",
    "hoelder",
    "mean_upper_bound",
    "n_rounded",
    "nearest_mixture",
    "renyi_ratio",
    "sampled_nearest_mixture",
    "sampled_renyi_ratio",
    "worst_mean_upper_bound",
]
