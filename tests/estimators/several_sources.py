"""Small problems from several sources, for tests of estimators."""

import numpy as np


def regression(n=40, seed=0):
    """Two sources at −2 and 2 with |x| as target: a line is right at home and wrong elsewhere."""
    rng = np.random.default_rng(seed)
    X = np.r_[rng.normal(-2, 0.8, (n, 2)), rng.normal(2, 0.8, (n, 2))]
    return X, np.abs(X[:, 0]) + 0.05 * rng.normal(size=2 * n), np.repeat(["north", "south"], n)


def classification(n=40, seed=0):
    """Three sources with their own boundary each, labels "far" and "near"."""
    rng = np.random.default_rng(seed)
    centres = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 5.0]])
    domain = np.repeat(np.arange(3), n)
    X = centres[domain] + rng.normal(size=(3 * n, 2))
    side = (X - centres[domain]) @ np.array([1.0, 1.0]) * np.array([1, -1, 1])[domain]
    y = np.where(side + 0.5 * rng.normal(size=3 * n) > 0, "far", "near")
    return X, y, np.array(["a", "b", "c"])[domain]
