"""Measures of calibration, by scikit-learn and by hand."""

import numpy as np
from sklearn.metrics import log_loss


def domain_log_loss(log_r, domain, weight):
    """Weighted mean of -log r of each point's own source."""
    return log_loss(domain, np.exp(log_r).T, sample_weight=weight, labels=range(len(log_r)))


def calibration_error(log_r, domain, weight, n_bins=15):
    """Weighted mean over bins of equal width of |share that is right - confidence|."""
    confidence, error = np.exp(log_r).max(axis=0), 0.0
    bins = np.minimum(np.floor(confidence * n_bins), n_bins - 1)
    for one in range(n_bins):
        inside = bins == one
        right = (log_r.argmax(axis=0) == domain)[inside]
        error += abs(np.sum(weight[inside] * (right - confidence[inside])))
    return error / weight.sum()
