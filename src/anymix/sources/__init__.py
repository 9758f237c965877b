"""What an organisation hands over, and the tables that all of them make of a set of points."""

from anymix.sources.apart import Teaching as Teaching
from anymix.sources.apart import learn_apart as learn_apart
from anymix.sources.asking import CHUNK_ROWS as CHUNK_ROWS
from anymix.sources.asking import evaluate
from anymix.sources.asking import log_reference as log_reference
from anymix.sources.asking import masses_of as masses_of
from anymix.sources.beside import blind_values as blind_values
from anymix.sources.beside import n_classes_of as n_classes_of
from anymix.sources.beside import targets_of as targets_of
from anymix.sources.beside import told_beside as told_beside
from anymix.sources.beside import ways_beside as ways_beside
from anymix.sources.certifying import Grounds as Grounds
from anymix.sources.certifying import certify_learned as certify_learned
from anymix.sources.certifying import certify_parts as certify_parts
from anymix.sources.certifying import certify_tables
from anymix.sources.certifying import founded as founded
from anymix.sources.certifying import mean_of_bounds as mean_of_bounds
from anymix.sources.certifying import own_values as own_values
from anymix.sources.certifying import price_of as price_of
from anymix.sources.certifying import terms_of_fit as terms_of_fit
from anymix.sources.certifying import terms_of_rows as terms_of_rows
from anymix.sources.certifying import usual_clip as usual_clip
from anymix.sources.certifying import without_confidence as without_confidence
from anymix.sources.consulting import Consulted, ConsultingGain, consult
from anymix.sources.consulting import consulting_of as consulting_of
from anymix.sources.consulting import crossed as crossed
from anymix.sources.consulting import learn_pools as learn_pools
from anymix.sources.influence import FEWEST_SITES as FEWEST_SITES
from anymix.sources.influence import MOST_SOURCES as MOST_SOURCES
from anymix.sources.influence import Influence
from anymix.sources.influence import find_influence as find_influence
from anymix.sources.learning import Learned, LearningSettings, learn
from anymix.sources.learning import Taught as Taught
from anymix.sources.learning import calibrations as calibrations
from anymix.sources.learning import consulted_for as consulted_for
from anymix.sources.learning import find_z as find_z
from anymix.sources.learning import learn_part as learn_part
from anymix.sources.learning import learn_rows as learn_rows
from anymix.sources.lessons import Lesson as Lesson
from anymix.sources.lessons import Part as Part
from anymix.sources.measures import NEEDS_LABELS as NEEDS_LABELS
from anymix.sources.measures import NOT_CERTIFIED as NOT_CERTIFIED
from anymix.sources.measures import WRONG as WRONG
from anymix.sources.measures import Measure as Measure
from anymix.sources.measures import check_learnable as check_learnable
from anymix.sources.measures import check_measure as check_measure
from anymix.sources.measures import is_of_labels as is_of_labels
from anymix.sources.measures import judge_of as judge_of
from anymix.sources.measures import measure_of as measure_of
from anymix.sources.novelty import Novelty as Novelty
from anymix.sources.parts import FEWEST_ROWS as FEWEST_ROWS
from anymix.sources.parts import N_PARTS as N_PARTS
from anymix.sources.parts import HeldOut
from anymix.sources.parts import advice as advice
from anymix.sources.parts import advice_of as advice_of
from anymix.sources.parts import answers as answers
from anymix.sources.parts import brought as brought
from anymix.sources.parts import by_home as by_home
from anymix.sources.parts import by_source as by_source
from anymix.sources.parts import crossed_answers as crossed_answers
from anymix.sources.parts import deal as deal
from anymix.sources.parts import deal_out as deal_out
from anymix.sources.parts import own_losses as own_losses
from anymix.sources.second_round import SecondRound
from anymix.sources.second_round import pool_of_others as pool_of_others
from anymix.sources.seen import Seeing as Seeing
from anymix.sources.seen import Seen as Seen
from anymix.sources.source import PROBABILITY_FLOOR as PROBABILITY_FLOOR
from anymix.sources.source import Source
from anymix.sources.stated import warn_of_training_rows as warn_of_training_rows
from anymix.sources.tables import Tables
from anymix.sources.torch_predictor import TorchPredictor as TorchPredictor
from anymix.sources.torch_predictor import at_rest as at_rest

__all__ = [
    "Consulted",
    "ConsultingGain",
    "HeldOut",
    "Influence",
    "Learned",
    "LearningSettings",
    "SecondRound",
    "Source",
    "Tables",
    "certify_tables",
    "consult",
    "evaluate",
    "learn",
]
