import numpy as np
import pytest
from scipy.special import log_softmax

CENTRES = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])


class Planar:
    """Three unit Gaussians in the plane with their true responsibilities: a model to watch."""

    source_names_ = ("north", "east", "west")

    def log_densities(self, X):
        return -((X - CENTRES[:, None]) ** 2).sum(axis=2) / 2

    def log_responsibilities(self, X):
        return log_softmax(self.log_densities(X), axis=0)

    def novelty(self, X):
        return -self.log_densities(X).max(axis=0)

    def rows(self, domain, rng):
        return rng.normal(CENTRES[domain])


@pytest.fixture
def planar():
    return Planar()
