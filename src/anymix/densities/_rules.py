"""What the parameters of densities may be; see `anymix._parameters`."""

from __future__ import annotations

from collections.abc import Mapping

from anymix._parameters import Either, Number, Rule, Words, seed_rule
from anymix.densities.bigram_table import SMOOTHINGS

ONE_OR_MORE = Number(1, whole=True)
KERNELS: Mapping[str, Rule] = {
    "bandwidth": Either(Words("cv", "loo", "scott", "silverman"), Number(above=0)),
    "n_folds": Number(2, whole=True),
    "centres": Either(None, ONE_OR_MORE),
    "random_state": seed_rule,
}
MIXTURE: Mapping[str, Rule] = {
    "max_components": ONE_OR_MORE,
    "covariance_type": Words("full", "tied", "diag", "spherical"),
    "regularisation": Number(0),
    "background": Number(0),
    "random_state": seed_rule,
}
CONTRASTIVE: Mapping[str, Rule] = {
    "n_draws": Number(above=0),
    "least_draws": ONE_OR_MORE,
    "random_state": seed_rule,
}
DOMAINS: Mapping[str, Rule] = {
    "C": Number(above=0),
    "max_iter": ONE_OR_MORE,
    "tol": Number(above=0),
}
BIGRAMS: Mapping[str, Rule] = {
    "smoothing": Words(*SMOOTHINGS),
    "unknown": Words("drop", "map"),
    "min_count": ONE_OR_MORE,
}
VOCABULARY: Mapping[str, Rule] = {
    "output": Words("counts", "tokens"),
    "words": Words("every", "any"),
    "min_count": ONE_OR_MORE,
}
# Without a prior separable points would send a temperature to 0.
TEMPERATURES: Mapping[str, Rule] = {
    "temperature": Words("own", "shared"),
    "prior": Number(above=0),
    "doubt": Number(0),
    "max_iter": ONE_OR_MORE,
    "tol": Number(above=0),
}
