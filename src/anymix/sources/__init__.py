"""Sources, the tables they make of a set of points, and the learner over blocks of tables."""

from anymix.sources.block import Block
from anymix.sources.block_queries import QUERIES
from anymix.sources.blocks import Blocks, TrainingFold, in_threads
from anymix.sources.bounded_ridge import BoundedRidge, bounds_of
from anymix.sources.by_sums import (
    LeafClassifier,
    LeafRegressor,
    LinearRows,
    SumsFit,
    fit_by_sums,
    joined_scales,
    shared_columns,
)
from anymix.sources.certification import (
    Grounds,
    certify_learned,
    certify_tables,
    usual_clip,
    usual_cut,
    without_confidence,
)
from anymix.sources.consultation import Consulted, ConsultingGain, consult
from anymix.sources.cross_fitting import (
    N_FOLDS,
    HeldOut,
    assign_folds,
    combined_predictions,
    consulting_gain,
    deal_groups,
    held_out_predictions,
    own_losses,
    predictions_after,
)
from anymix.sources.cross_loss import CrossLoss, make_cross_loss
from anymix.sources.error_measures import (
    ERROR_RATE,
    NEEDS_LABELS,
    NOT_CERTIFIED,
    Measure,
    check_learnable,
    check_measure,
    is_of_labels,
    judge_of,
    measure_of,
    reference_point_losses,
)
from anymix.sources.evaluation import (
    CHUNK_ROWS,
    evaluate,
    log_reference,
    masses_of,
    models_of,
    predictions_of,
)
from anymix.sources.fit_result import FitEvidence, FitResult, GeneralistRecord
from anymix.sources.fold_scores import FoldDensities, FoldScores
from anymix.sources.learning import (
    FoldResult,
    LearningSettings,
    TrainingRows,
    calibrations_of,
    find_z,
    learn,
    learn_fold,
)
from anymix.sources.model_source import PROBABILITY_FLOOR, SecondRound, Source, pool_of_others
from anymix.sources.partitioned import Map, PartitionedProblem, seen_through
from anymix.sources.queries import Arrays, Options, Query, numbers_in, read_average
from anymix.sources.source_influence import FEWEST_SITES, MOST_SOURCES, Influence, find_influence
from anymix.sources.suspicious_rows import (
    Seen,
    add_to_sketch,
    copies,
    joined_groups,
    warn_of_training_rows,
)
from anymix.sources.tables import Novelty, Tables
from anymix.sources.text_tables import lay_out, number
from anymix.sources.torch_predictor import TorchPredictor, at_rest

__all__ = [
    "CHUNK_ROWS",
    "ERROR_RATE",
    "FEWEST_SITES",
    "MOST_SOURCES",
    "NEEDS_LABELS",
    "NOT_CERTIFIED",
    "N_FOLDS",
    "PROBABILITY_FLOOR",
    "QUERIES",
    "Arrays",
    "Block",
    "Blocks",
    "BoundedRidge",
    "Consulted",
    "ConsultingGain",
    "CrossLoss",
    "FitEvidence",
    "FitResult",
    "FoldDensities",
    "FoldResult",
    "FoldScores",
    "GeneralistRecord",
    "Grounds",
    "HeldOut",
    "Influence",
    "LeafClassifier",
    "LeafRegressor",
    "LearningSettings",
    "LinearRows",
    "Map",
    "Measure",
    "Novelty",
    "Options",
    "PartitionedProblem",
    "Query",
    "SecondRound",
    "Seen",
    "Source",
    "SumsFit",
    "Tables",
    "TorchPredictor",
    "TrainingFold",
    "TrainingRows",
    "add_to_sketch",
    "assign_folds",
    "at_rest",
    "bounds_of",
    "calibrations_of",
    "certify_learned",
    "certify_tables",
    "check_learnable",
    "check_measure",
    "combined_predictions",
    "consult",
    "consulting_gain",
    "copies",
    "deal_groups",
    "evaluate",
    "find_influence",
    "find_z",
    "fit_by_sums",
    "held_out_predictions",
    "in_threads",
    "is_of_labels",
    "joined_groups",
    "joined_scales",
    "judge_of",
    "lay_out",
    "learn",
    "learn_fold",
    "log_reference",
    "make_cross_loss",
    "masses_of",
    "measure_of",
    "models_of",
    "number",
    "numbers_in",
    "own_losses",
    "pool_of_others",
    "predictions_after",
    "predictions_of",
    "read_average",
    "reference_point_losses",
    "seen_through",
    "shared_columns",
    "usual_clip",
    "usual_cut",
    "warn_of_training_rows",
    "without_confidence",
]
