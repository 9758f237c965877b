"""scikit-learn estimators, baselines and comparisons."""

from anymix.estimators._automatic import DensityChoice as DensityChoice
from anymix.estimators._inspection import certification_cut
from anymix.estimators._kmm_qp import BoxAndBand as BoxAndBand
from anymix.estimators._kmm_qp import MeanMatching as MeanMatching
from anymix.estimators._kmm_qp import solve_qp as solve_qp
from anymix.estimators._learner_choice import LearnerChoice, choose_estimator
from anymix.estimators._learners import candidate_estimators, default_estimator
from anymix.estimators._row_checks import check_domains
from anymix.estimators.baselines import (
    HardRouter,
    Joint,
    LambdaComb,
    SingleSource,
    Stacking,
    Uniform,
    VolumeWeighted,
)
from anymix.estimators.comparison import Comparison, compare, compare_tables, usual_methods
from anymix.estimators.distribution_weighted import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
)
from anymix.estimators.model_summary import summarise, summarise_tables
from anymix.estimators.pooled_comparison import (
    PooledComparison,
    compare_fitted_with_pooled,
    compare_with_pooled,
)
from anymix.estimators.reweighting import GroupDRO, KernelMeanMatching
from anymix.estimators.rival_verdicts import Rival as Rival
from anymix.estimators.rival_verdicts import Verdict, verdicts
from anymix.sources import CrossLoss

__all__ = [
    "Comparison",
    "CrossLoss",
    "DensityChoice",
    "DistributionWeightedClassifier",
    "DistributionWeightedRegressor",
    "GroupDRO",
    "HardRouter",
    "Joint",
    "KernelMeanMatching",
    "LambdaComb",
    "LearnerChoice",
    "PooledComparison",
    "SingleSource",
    "Stacking",
    "Uniform",
    "Verdict",
    "VolumeWeighted",
    "candidate_estimators",
    "certification_cut",
    "check_domains",
    "choose_estimator",
    "compare",
    "compare_fitted_with_pooled",
    "compare_tables",
    "compare_with_pooled",
    "default_estimator",
    "summarise",
    "summarise_tables",
    "usual_methods",
    "verdicts",
]
