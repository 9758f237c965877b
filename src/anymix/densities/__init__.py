"""How likely is this point under each source?  `fit`, `score_samples` in natural logs, `sample`.

A density per source (`GaussianKDE`, `GaussianMixtureDensity`, `ContrastiveDensity`, `TextDensity`,
`BigramModel`, `KnownDensity`) and a classifier of sources (`DomainClassifier`) are interchangeable:
both give log-responsibilities, which `TemperatureScaling` calibrates on held-out points.
"""

from anymix.densities._domain_likelihood import lowest_responsibility, newton
from anymix.densities._domain_sums import AllPoints, DomainRows
from anymix.densities._scales import ScaleWarning
from anymix.densities.bigram import BigramModel
from anymix.densities.boosted_trees import BoostedTrees
from anymix.densities.calibration import (
    CalibrationReport,
    TemperatureScaling,
    balanced_weights,
    fit_temperatures,
)
from anymix.densities.contrastive import ContrastiveDensity
from anymix.densities.domain_classifier import DomainClassifier
from anymix.densities.gaussian_mixture import GaussianMixtureDensity
from anymix.densities.kde import GaussianKDE
from anymix.densities.known import KnownDensity
from anymix.densities.reference import Reference
from anymix.densities.summary import Summary
from anymix.densities.text import SharedVocabulary
from anymix.densities.text_density import TextDensity

__all__ = [
    "AllPoints",
    "BigramModel",
    "BoostedTrees",
    "CalibrationReport",
    "ContrastiveDensity",
    "DomainClassifier",
    "DomainRows",
    "GaussianKDE",
    "GaussianMixtureDensity",
    "KnownDensity",
    "Reference",
    "ScaleWarning",
    "SharedVocabulary",
    "Summary",
    "TemperatureScaling",
    "TextDensity",
    "balanced_weights",
    "fit_temperatures",
    "lowest_responsibility",
    "newton",
]
