"""Small problems of numbers and of labels, whole and in parts."""

import numpy as np

from anymix.sources import Tables


def numbers(n=200, seed=0, p=3, weight=False):
    """Numbers: each source's model is the tangent of a sine at home."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(p), n + 20 * np.arange(p))
    x = rng.normal(3.0 * domain, 1.0)
    log_masses = np.stack([-((x - 3.0 * k) ** 2) / 2 for k in range(p)])
    said = np.stack([np.sin(3.0 * k) + np.cos(3.0 * k) * (x - 3.0 * k) for k in range(p)])
    y = np.sin(x) + 0.3 * rng.normal(size=x.size)
    w = rng.uniform(0.5, 2.0, x.size) if weight else None
    return Tables(log_masses, said).labelled(y, domain, w)


def labels(n=200, seed=0, p=3, c=3):
    """Labels: each source knows its own slope best, others' logits are noisier."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(p), n + 20 * np.arange(p))
    x = rng.normal(2.0 * domain, 1.0)
    log_masses = np.stack([-((x - 2.0 * k) ** 2) / 2 for k in range(p)])
    scores = np.stack([x, np.cos(x), 1.0 - x], axis=1)[:, :c]
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(c, p=row) for row in truth])
    noise = 0.2 + np.abs(x - 2.0 * np.arange(p)[:, None])
    logits = scores + 0.5 * noise[:, :, None] * rng.normal(size=(p, x.size, c))
    said = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return Tables(log_masses, said, classes=np.arange(c)).labelled(y, domain)


def at_home(tables):
    """Each source's rows in a part of their own."""
    p = len(tables.log_masses)
    return [tables.taken(np.flatnonzero(tables.sample_domain == k)) for k in range(p)]


def in_chunks(tables, n, seed=0):
    """All rows, in n chunks by chance."""
    order = np.random.default_rng(seed).permutation(tables.n_points)
    return [tables.taken(np.sort(rows)) for rows in np.array_split(order, n)]
