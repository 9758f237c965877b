"""The paper in code: numpy and scipy only, imports no other room."""

from anymix.core import simplex as simplex
from anymix.core.calibration import Calibration
from anymix.core.calibration import log_responsibilities as log_responsibilities
from anymix.core.combination import Ask as Ask
from anymix.core.combination import Combination, combine, source_weights
from anymix.core.combination import mix as mix
from anymix.core.conformal import Conformal as Conformal
from anymix.core.conformal import check_alpha as check_alpha
from anymix.core.conformal import crossed_bound as crossed_bound
from anymix.core.consulting import Consulting
from anymix.core.coverage import Coverage as Coverage
from anymix.core.coverage import limits_without as limits_without
from anymix.core.cross_fitted import CrossFittedCombination
from anymix.core.error_scale import ErrorScale as ErrorScale
from anymix.core.error_scale import errors_at as errors_at
from anymix.core.error_scale import fewest as fewest
from anymix.core.error_scale import learn_yardstick as learn_yardstick
from anymix.core.evaluated_points import EvaluatedPoints as EvaluatedPoints
from anymix.core.evaluated_points import gap as gap

# `x as x`: for the other rooms of the house, and not part of the public interface.
from anymix.core.guarantees import FOLD_MODELS as FOLD_MODELS
from anymix.core.guarantees import (
    Assumptions,
    Bound,
    Certificate,
    best_hoelder,
    certify,
    gaussian_renyi_ratio,
    mean_upper_bound,
    nearest_mixture,
    renyi_ratio,
    sampled_nearest_mixture,
    sampled_renyi_ratio,
    sampled_renyi_upper_bound,
    worst_mean_upper_bound,
)
from anymix.core.guarantees import BoundOptions as BoundOptions
from anymix.core.guarantees import Evidence as Evidence
from anymix.core.guarantees import LossSummary as LossSummary
from anymix.core.guarantees import Method as Method
from anymix.core.guarantees import Moments as Moments
from anymix.core.guarantees import Points as Points
from anymix.core.guarantees import ReferenceLoss as ReferenceLoss
from anymix.core.guarantees import SourceSample as SourceSample
from anymix.core.guarantees import certify_rows as certify_rows
from anymix.core.guarantees import check_n_sources as check_n_sources
from anymix.core.guarantees import check_stated as check_stated
from anymix.core.guarantees import clip_of as clip_of
from anymix.core.guarantees import facts_of as facts_of
from anymix.core.guarantees import hoelder as hoelder
from anymix.core.guarantees import n_rounded as n_rounded
from anymix.core.guarantees import one_input_example as one_input_example
from anymix.core.guarantees import paper_bounds as paper_bounds
from anymix.core.losses import LOSSES, Loss, get_loss
from anymix.core.losses import loss_from_dict as loss_from_dict
from anymix.core.losses import loss_name as loss_name
from anymix.core.losses import loss_to_dict as loss_to_dict
from anymix.core.losses import losses_at as losses_at
from anymix.core.measures import OwnMeasure as OwnMeasure
from anymix.core.normalised import NormalisedRule as NormalisedRule
from anymix.core.normalised import joint_log_densities as joint_log_densities
from anymix.core.pooling import Pool as Pool
from anymix.core.pooling import learn_pool as learn_pool
from anymix.core.problem import Problem
from anymix.core.records import Fingerprints as Fingerprints
from anymix.core.records import Objective as Objective
from anymix.core.records import Record as Record
from anymix.core.records import Solution, SolverWarning
from anymix.core.records import plain as plain
from anymix.core.records import restored as restored
from anymix.core.set_aside import SetAside as SetAside
from anymix.core.sketch import FingerprintSketch as FingerprintSketch
from anymix.core.solvers import Budget, solve
from anymix.core.solvers.dca import dca as dca
from anymix.core.solvers.penalty import Penalty as Penalty
from anymix.core.solvers.shrinkage import automatic_shrinkage as automatic_shrinkage
from anymix.core.sums import Sums as Sums
from anymix.core.sums import add_sums as add_sums
from anymix.core.units import UNITS as UNITS
from anymix.core.units import Unit as Unit
from anymix.core.units import unit_of as unit_of

__all__ = [
    "LOSSES",
    "Assumptions",
    "Bound",
    "Budget",
    "Calibration",
    "Certificate",
    "Combination",
    "Consulting",
    "CrossFittedCombination",
    "Loss",
    "Problem",
    "Solution",
    "SolverWarning",
    "best_hoelder",
    "certify",
    "combine",
    "gaussian_renyi_ratio",
    "get_loss",
    "mean_upper_bound",
    "nearest_mixture",
    "renyi_ratio",
    "sampled_nearest_mixture",
    "sampled_renyi_ratio",
    "sampled_renyi_upper_bound",
    "solve",
    "source_weights",
    "worst_mean_upper_bound",
]
