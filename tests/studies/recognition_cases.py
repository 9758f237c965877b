"""Features and images made up to stand in for Office and the digits."""

import numpy as np

from anymix.studies.loaders import Features, Images


def made_up_features(n_classes=4, n_per_cell=20, seed=0):
    """Three domains, far apart; each turns the same classes another way."""
    rng = np.random.default_rng(seed)
    domain, y = (i.ravel() for i in np.indices((3, n_classes * n_per_cell)))
    y = y % n_classes
    angle = 2 * np.pi * (y / n_classes + domain / 3)
    centre = np.column_stack([np.cos(angle), np.sin(angle), 3.0 * domain, np.ones(len(y))])
    X = (centre + rng.normal(0, 0.3, centre.shape)).astype(np.float32)
    return Features(X, y, domain)


def made_up_images(n_train=80, n_test=30, seed=0):
    """Ten classes as ten directions of a slope, drawn with another contrast in each domain."""
    rng = np.random.default_rng(seed)
    grid = np.indices((32, 32)) - 15.5

    def draw(n, contrast, noise):
        y = np.arange(n) % 10
        angle = 2 * np.pi * y / 10
        ramp = np.tensordot(np.column_stack([np.sin(angle), np.cos(angle)]), grid, axes=1)
        x = 128 + contrast * ramp + rng.normal(0, noise, ramp.shape)
        return x.clip(0, 255).astype(np.uint8), y

    return {
        name: Images(*draw(n_train, contrast, noise), *draw(n_test, contrast, noise))
        for name, contrast, noise in [("svhn", 2, 4), ("mnist", 5, 0.5), ("usps", -3, 1)]
    }
