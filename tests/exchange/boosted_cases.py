"""Tables of numbers, categories and gaps, and boosted trees that were fitted to them."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

CATEGORIES = {1: 255, 3: 40, 4: 5}  # of these columns
RNG = np.random.default_rng(0)
EFFECTS = RNG.normal(size=256)


def table(n, seed, gaps=0.1):
    """Numbers and categories with gaps, and what depends on all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    for j, many in CATEGORIES.items():
        X[:, j] = rng.integers(0, many, n)
    z = X[:, 0] + X[:, 2] * EFFECTS[X[:, 4].astype(int)]
    z += EFFECTS[X[:, 1].astype(int)] + EFFECTS[X[:, 3].astype(int)]
    X[rng.random(X.shape) < gaps] = np.nan
    return X, z + np.isnan(X[:, 2])


def asked(n, seed):
    """Rows with categories that were never seen, gaps, and numbers without bounds."""
    X, _ = table(n, seed)
    X[::7, 1], X[::11, 3], X[::13, 4], X[::17, 4] = 5000, 2.5, -1, 1e300
    X[::19, 0], X[::23, 2], X[::29, 2] = np.inf, np.inf, -np.inf
    return X


X, Z = table(4000, 1)
POSITIVE = np.exp(Z / 2)
LABELS = np.array(["d", "a", "c", "b"])[np.digitize(Z, [-1, 0, 1])]
MIXED = {"categorical_features": list(CATEGORIES), "max_iter": 20}
CASES = {
    "two classes": (HistGradientBoostingClassifier(**MIXED), Z > 0),
    "four classes": (HistGradientBoostingClassifier(**MIXED), LABELS),
    "numbers alone": (HistGradientBoostingClassifier(max_iter=20), (Z > 0).astype(int)),
    "squared": (HistGradientBoostingRegressor(**MIXED), Z),
    "absolute": (HistGradientBoostingRegressor(loss="absolute_error", **MIXED), 1e5 * Z),
    "quantile": (HistGradientBoostingRegressor(loss="quantile", quantile=0.3, **MIXED), Z),
    "poisson": (HistGradientBoostingRegressor(loss="poisson", **MIXED), POSITIVE),
    "gamma": (HistGradientBoostingRegressor(loss="gamma", **MIXED), POSITIVE),
}


def fitted(name):
    model, y = CASES[name]
    return model.fit(X, y)
