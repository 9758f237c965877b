"""The paper in code: numpy and scipy only, imports no other room."""

from anymix.core.bounds import Assumptions, Bound
from anymix.core.certificate import Certificate, certify
from anymix.core.combine import combine, source_weights
from anymix.core.confidence import mean_upper_bound, worst_mean_upper_bound
from anymix.core.divergence import gaussian_renyi_ratio, renyi_ratio, sampled_renyi_ratio
from anymix.core.losses import LOSSES, Loss, get_loss
from anymix.core.nearest import nearest_mixture, sampled_nearest_mixture
from anymix.core.problem import Problem
from anymix.core.records import Solution, SolverWarning
from anymix.core.solve import solve

__all__ = [
    "LOSSES",
    "Assumptions",
    "Bound",
    "Certificate",
    "Loss",
    "Problem",
    "Solution",
    "SolverWarning",
    "certify",
    "combine",
    "gaussian_renyi_ratio",
    "get_loss",
    "mean_upper_bound",
    "nearest_mixture",
    "renyi_ratio",
    "sampled_nearest_mixture",
    "sampled_renyi_ratio",
    "solve",
    "source_weights",
    "worst_mean_upper_bound",
]
