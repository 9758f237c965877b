"""Pools of one source as functions of their weights: values, slopes, and what they say."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from anymix._arrays import FloatArray, IntArray
from anymix.core.consulting import pooled_labels
from anymix.core.losses import Loss

MOST_OFFSETS = 50  # classes that have an offset each
TINY = 1e-300


class NumberPools:
    """h' = h_k + Σ_j d_j (h_j − c_j) + b, or the same of logarithms; θ = (d, b).

    d = a − e_k, and c_j is the mean of h_j.  Where errors are all that is known, c_j = h_k takes
    its place, so that the weights sum to 1 and errors are pooled as numbers are.
    """

    products: FloatArray  # of some rows: see `taken`

    def __init__(
        self,
        predictions: FloatArray,
        y: NDArray[Any],
        k: int,
        errors: bool,
        loss: Loss,
        share: FloatArray,
    ):
        self.loss, self.y, self.k, self.errors = loss, np.asarray(y, dtype=float), k, errors
        h = np.log(predictions) if loss.positive else predictions
        self.start, self.means = h[k], h @ share
        away = h - (h[k] if errors else self.means[:, None])
        self.features = np.column_stack([away.T, np.ones(h.shape[1])])
        self.centre = np.zeros(len(h) + 1)
        # The offset is free; a breath of penalty keeps systems of few rows regular.
        self.penalty = np.append(np.ones(len(h)), 1e-6)
        own = float(share @ loss.value(predictions[k], self.y))
        self.scale = own if own > 0 else 1.0

    def taken(self, some: IntArray) -> NumberPools:
        """Return the pools of some of the rows, ready for Newton's steps."""
        part = copy(self)
        part.start, part.y, part.features = self.start[some], self.y[some], self.features[some]
        part.products = _products(part.features)
        return part

    def _at(self, theta: FloatArray) -> FloatArray:
        s = np.asarray(self.start + theta @ self.features.T)
        return np.exp(np.minimum(s, 300.0)) if self.loss.positive else s

    def values(self, theta: FloatArray, mass: FloatArray) -> FloatArray:
        """Σ_i mass_i ℓ(h'_i, y_i) / s for each θ of a stack, (B,)."""
        losses = self.loss.value(self._at(theta), self.y)
        return np.asarray((mass * losses).sum(axis=1) / self.scale)

    def slopes(self, theta: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (B, q) and a Hessian (B, q, q) that Newton can use."""
        h = self._at(theta)
        slope, curvature = self.loss.slope(h, self.y), self.loss.curvature(h, self.y)
        if self.loss.lipschitz is not None:
            # The parabola that touches the loss from above: iteratively reweighted squares.
            away = np.abs(h - self.y)
            curvature = np.maximum(curvature, np.abs(slope) / (away + 1e-3 * away.mean() + TINY))
        if self.loss.positive:
            slope, curvature = slope * h, np.maximum(slope * h + curvature * h * h, 0.0)
        weighed = (mass * curvature / self.scale) @ self.products
        shape = len(theta), self.centre.size, self.centre.size
        return (mass * slope / self.scale) @ self.features, weighed.reshape(shape)

    def said(self, theta: FloatArray) -> FloatArray:
        """h' at each row by a θ of its own, (n, q) -> (n,)."""
        s = self.start + np.einsum("nq,nq->n", theta, self.features)
        return np.asarray(np.exp(s) if self.loss.positive else s)

    def weights(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a_k and b_k, (p,) and ()."""
        moved, own = theta[:-1], np.eye(len(self.means))[self.k]
        if self.errors:
            return own + moved - own * moved.sum(), np.asarray(theta[-1])
        return own + moved, np.asarray(theta[-1] - moved @ self.means)


class LabelPools:
    """log h' = Σ_j a_j log h_j + b_y, normalised over classes; θ = (a, b), by likelihood.

    Where there are many classes their own rows are too few to learn b from, and where the classes
    stand in another order in each row there is nothing to learn: it stays 0.
    """

    products: FloatArray

    def __init__(self, predictions: FloatArray, y: NDArray[Any], k: int, errors: bool = False):
        p, n, c = predictions.shape
        logs = np.log(predictions)
        # Only differences between classes count, and centred ones make better systems.
        self.logs = logs - logs.mean(axis=2, keepdims=True)
        self.features = np.ascontiguousarray(np.moveaxis(self.logs, 0, -1))
        self.hit = np.zeros((n, c))
        self.hit[np.arange(n), y] = 1.0
        self.n_offsets = c if c <= MOST_OFFSETS and not errors else 0
        self.centre = np.append(np.eye(p)[k], np.zeros(self.n_offsets))
        self.penalty = np.ones(self.centre.size)

    def taken(self, some: IntArray) -> LabelPools:
        """Return the pools of some of the rows, ready for Newton's steps."""
        part = copy(self)
        part.logs, part.hit = self.logs[:, some], self.hit[some]
        part.features = self.features[some]
        part.products = _products(part.features.reshape(-1, len(self.logs)))
        return part

    def _scores(self, theta: FloatArray) -> FloatArray:
        (n, c, p), a = self.features.shape, theta[:, : len(self.logs)]
        scores = (a @ self.features.reshape(n * c, p).T).reshape(-1, n, c)
        return np.asarray(scores + theta[:, None, p:] if self.n_offsets else scores)

    def values(self, theta: FloatArray, mass: FloatArray) -> FloatArray:
        """−Σ_i mass_i log h'(x_i, y_i) for each θ of a stack, (B,)."""
        scores = self._scores(theta)
        told = logsumexp(scores, axis=2) - np.einsum("bnc,nc->bn", scores, self.hit)
        return np.asarray((mass * told).sum(axis=1))

    def slopes(self, theta: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (B, q) and Hessian (B, q, q) = Σ_i mass_i [F'PF − (F'p)(F'p)'], F = (log h, I).

        The parts of log h and of the offsets are found apart: those of the offsets are sparse.
        """
        (n, c, p), B = self.features.shape, len(theta)
        proba = softmax(self._scores(theta), axis=2)
        weighed, missed = mass[:, :, None] * proba, mass[:, :, None] * (proba - self.hit)
        mean = np.matmul(proba.transpose(1, 0, 2), self.features).transpose(1, 0, 2)
        gradient = missed.reshape(B, n * c) @ self.features.reshape(n * c, p)
        spread = np.matmul((mass[:, :, None] * mean).transpose(0, 2, 1), mean)
        hessian = (weighed.reshape(B, n * c) @ self.products).reshape(B, p, p) - spread
        if not self.n_offsets:
            return gradient, hessian
        across = np.einsum("bnc,ncp->bpc", weighed, self.features, optimize=True)
        across -= np.matmul(mean.transpose(0, 2, 1), weighed)
        offsets = -np.matmul(proba.transpose(0, 2, 1), weighed)
        offsets[:, np.arange(c), np.arange(c)] += weighed.sum(axis=1)
        top = np.concatenate([hessian, across], axis=2)
        bottom = np.concatenate([across.transpose(0, 2, 1), offsets], axis=2)
        whole = np.concatenate([gradient, missed.sum(axis=1)], axis=1)
        return whole, np.concatenate([top, bottom], axis=1)

    def said(self, theta: FloatArray) -> FloatArray:
        """h' at each row by a θ of its own, (n, q) -> (n, c)."""
        p = len(self.logs)
        offset = theta[:, p:] if self.n_offsets else 0.0
        return pooled_labels(self.logs * theta[:, :p].T[:, :, None], np.ones(p), offset)

    def weights(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a_k and b_k, (p,) and (c,)."""
        p, offset = len(self.logs), np.zeros(self.hit.shape[1])
        if self.n_offsets:
            offset = theta[p:] - theta[p:].mean()
        return theta[:p], offset


def _products(features: FloatArray) -> FloatArray:
    """f_q f_r for each row: a Hessian is then one matrix product for all θ of a stack."""
    rows, q = features.shape
    return (features[:, :, None] * features[:, None, :]).reshape(rows, q * q)
