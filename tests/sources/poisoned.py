"""Three sites at three levels of the target, one of which may hand in rows that it invented."""

import numpy as np

from anymix import Tables

NAMES = ("north", "south", "west")
LEVELS = np.array([0.0, 70.0, 140.0])
CENTRES = np.array([[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0]])


def honest(n=80, seed=0, spread=1.0):
    """Tables of sources that say their level everywhere, with the true densities."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(3), n)
    X = spread * CENTRES[domain] + rng.normal(size=(3 * n, 2))
    y = LEVELS[domain] + 5.0 * rng.normal(size=3 * n)
    log_masses = -0.5 * ((X[None] - spread * CENTRES[:, None]) ** 2).sum(axis=2)
    predictions = np.repeat(LEVELS[:, None], 3 * n, axis=1)
    return Tables(log_masses, predictions).labelled(y, domain)


def lying(tables, liar=2, victim=0, n=20, size=1e6, share=1 - 1e-9):
    """Put n rows in the place of the liar's: they look like the victim's, whose predictor fails."""
    true = tables.taken(np.flatnonzero(tables.sample_domain != liar))
    log_r = np.full((3, n), np.log((1 - share) / 2))
    log_r[victim] = np.log(share)
    said = np.zeros((3, n))
    said[victim] = size
    invented = Tables(log_r, said).labelled(np.zeros(n), np.full(n, liar))
    return Tables.concatenate([true, invented])


def losses(tables, combination):
    """What a combination loses on the rows of each site, by the prediction itself."""
    h = combination.predict(tables.log_masses, tables.predictions)
    error = (h - tables.targets) ** 2
    return np.array([error[tables.sample_domain == k].mean() for k in range(3)])
