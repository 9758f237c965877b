"""How steeply an image rises in each of eight directions, summed over cells: nothing is learned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_DIRECTIONS = 8
CELL = 4

Array = NDArray[np.float32]


def slopes(images: NDArray[np.uint8]) -> Array:
    """Features (n, cells · cells · directions) of images (n, side, side), of length 1 each.

    Square root of the sum over a cell of |g| max(0, cos(g, θ))⁴, with g the slope at a pixel, for
    each direction θ: a histogram of slopes with soft bins.

    >>> slopes(np.tile(np.arange(8, dtype=np.uint8), (1, 8, 1))).round(2)[0, :8]
    array([0.41, 0.2 , 0.  , 0.  , 0.  , 0.  , 0.  , 0.2 ], dtype=float32)
    """
    n, side, _ = images.shape
    cells = side // CELL
    found = np.empty((n, cells, cells, N_DIRECTIONS), dtype=np.float32)
    angles = 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    # Blocks stay in the cache.
    for block in (slice(start, start + 100) for start in range(0, n, 100)):
        dy, dx = np.gradient(images[block].astype(np.float32), axis=(1, 2))
        length = np.hypot(dx, dy).clip(1e-6)
        for j, angle in enumerate(angles):
            cosine = (dx * np.float32(np.cos(angle)) + dy * np.float32(np.sin(angle))) / length
            part = length * np.maximum(cosine, 0) ** 4
            found[block, ..., j] = part.reshape(-1, cells, CELL, cells, CELL).sum(axis=(2, 4))
    features = np.sqrt(found).reshape(n, -1)
    return np.asarray(features / np.linalg.norm(features, axis=1, keepdims=True).clip(1e-6))


def coarsen(features: Array) -> Array:
    """Sum features over 2 × 2 cells, (n, 4 d) to (n, d).

    >>> coarsen(np.ones((1, 32), dtype=np.float32))
    array([[4., 4., 4., 4., 4., 4., 4., 4.]], dtype=float32)
    """
    half = int(np.sqrt(features.shape[1] / N_DIRECTIONS)) // 2
    cells = features.reshape(-1, half, 2, half, 2, N_DIRECTIONS)
    return np.asarray(cells.sum(axis=(2, 4)).reshape(len(features), -1))
