"""Densities per source: `fit`, `score_samples` in natural logarithms, `sample`.

A density per source (`GaussianKDE`, `GaussianMixtureDensity`, `ContrastiveDensity`, `TextDensity`,
`BigramModel`, `KnownDensity`) and a classifier of sources (`DomainClassifier`) are interchangeable:
both give log-responsibilities, which `TemperatureScaling` calibrates on held-out points.
"""

from anymix.densities.agreement import SiteColumn, likely_mistakes, site_columns
from anymix.densities.bandwidth import ScaleWarning
from anymix.densities.bigram import BigramModel
from anymix.densities.boosted_leaves import joined_trees, leaf_columns
from anymix.densities.boosted_trees import BoostedTrees, SplitTree
from anymix.densities.contrastive import ContrastiveDensity
from anymix.densities.counted_texts import CountedTexts, ask, counted, fit_on, taken
from anymix.densities.density import KnownDensity
from anymix.densities.domain_classifier import DomainClassifier
from anymix.densities.domain_likelihood import (
    CalibrationReport,
    DomainRows,
    balanced_weights,
    floored_responsibilities,
    newton,
)
from anymix.densities.gaussian_mixture import GaussianMixtureDensity
from anymix.densities.kde import GaussianKDE
from anymix.densities.public_reference import Reference
from anymix.densities.site_summary import Summary
from anymix.densities.temperature_scaling import TemperatureScaling
from anymix.densities.text_density import SharedVocabulary, TextDensity
from anymix.densities.word_reference import WordReference, WordSummary

__all__ = [
    "BigramModel",
    "BoostedTrees",
    "CalibrationReport",
    "ContrastiveDensity",
    "CountedTexts",
    "DomainClassifier",
    "DomainRows",
    "GaussianKDE",
    "GaussianMixtureDensity",
    "KnownDensity",
    "Reference",
    "ScaleWarning",
    "SharedVocabulary",
    "SiteColumn",
    "SplitTree",
    "Summary",
    "TemperatureScaling",
    "TextDensity",
    "WordReference",
    "WordSummary",
    "ask",
    "balanced_weights",
    "counted",
    "fit_on",
    "floored_responsibilities",
    "joined_trees",
    "leaf_columns",
    "likely_mistakes",
    "newton",
    "site_columns",
    "taken",
]
